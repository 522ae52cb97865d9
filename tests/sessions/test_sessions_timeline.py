"""The time-line of a run, from its events: what each task was doing, and what the stop cost."""

import pytest
from doubles.fake_model import Pause, call, end, say
from doubles.world import World
from session_events import stamped, text_run

from novacode.cli.timeline_html import timeline_page
from novacode.cli.timeline_text import lines
from novacode.sessions.record import is_kept
from novacode.sessions.timeline import Kind, Lane, Span, Timeline, timelines
from novacode.values.request import StopReason


def rounded(timeline):
    return {
        lane.title: [(span.kind.value, round(span.begin, 3), round(span.end, 3)) for span in lane.spans]
        for lane in timeline.lanes
    }


async def recorded(script, *, cancel_after=None, answers=True):
    """Run a script on the virtual clock and return the time-line of what the journal would keep."""
    import trio

    world = World([script])
    if answers:
        world.answer_all(allowed=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        if cancel_after is not None:
            await trio.sleep(cancel_after)
            world.agent.cancel("SIGINT")
    [timeline] = timelines([one for one in world.events if is_kept(one.event)])
    return timeline


async def test_what_overlaps_is_seen(autojump_clock):
    """Two calls run beside the stream; a third waits for the path that the second writes."""
    script = [
        say("I look."),
        call("c1", "work", 1, takes=4),
        call("c2", "work", 2, takes=2, writes=["f"]),
        call("c3", "work", 3, takes=1, writes=["f"]),
        Pause(1),
        end(StopReason.TOOL_USE),
    ]
    timeline = await recorded(script)
    assert rounded(timeline) == {
        "turn 1": [("stream", 0.0, 1.0)],
        "work c1": [("running", 0.0, 4.0)],
        "work c2": [("running", 0.0, 2.0)],
        "work c3": [("queued", 0.0, 2.0), ("running", 2.0, 3.0)],
        "turn 2": [("stream", 4.0, 4.0)],
    }
    assert [lane.outcome for lane in timeline.lanes] == ["tool_use", "ok", "ok", "ok", "end"]
    assert (timeline.prompt, timeline.status, timeline.stop_at) == ("go", "completed", None)


async def test_the_stop_and_its_tail_are_seen(autojump_clock):
    """Cancelled at 3 s: one call needs 2 s to clean up, another was still being asked about."""
    script = [
        call("c1", "work", 1, takes=60, cleanup=2),
        call("c2", "asks", 2),
        end(StopReason.TOOL_USE),
    ]
    timeline = await recorded(script, cancel_after=3, answers=False)
    assert timeline.stop_at == pytest.approx(3.0)
    assert (timeline.status, timeline.reason) == ("cancelled", "SIGINT")
    lanes = rounded(timeline)
    assert lanes["work c1"] == [("running", 0.0, 3.0), ("stopping", 3.0, 5.0)]
    assert lanes["asks c2"] == [("asking", 0.0, 3.0), ("stopping", 3.0, 5.0)]


def test_a_run_without_an_end_is_drawn_to_its_last_event():
    made, cut = timelines([*stamped(text_run(1)), *stamped(text_run(2)[:3], first=6, run="s-x-r2")])
    assert (made.status, made.seconds) == ("completed", 4.0)
    assert (cut.status, cut.seconds, cut.run_id) == ("", 2.0, "s-x-r2")


DRAWN = Timeline(
    "s-x-r1",
    "fix <it> \x1b[31m",
    0.0,
    10.0,
    (
        Lane("turn 1", (Span(Kind.ASKED, 0, 2), Span(Kind.STREAM, 2, 5)), "tool_use"),
        Lane("shell c1", (Span(Kind.ASKING, 4, 6), Span(Kind.RUNNING, 6, 8), Span(Kind.STOPPING, 8, 10)), "cancelled"),
        Lane("read c2", (Span(Kind.RUNNING, 9.99, 9.99),), "ok"),
    ),
    "cancelled",
    "SIGINT",
    8.0,
)


def test_bars_are_to_one_scale_and_nothing_is_too_short_to_be_seen():
    drawn = [line.plain for line in lines(DRAWN, 52, plain=True)]
    assert drawn == [
        "s-x-r1: fix <it> \\x1b[31m",
        "10.0 s, cancelled (SIGINT); asked to stop at 8.000 s, quiet 2.000 s later",
        f"turn 1   {'....======':<20}  5.000 s tool_use",
        f"shell c1 {'        ????####xxxx':<20}  6.000 s cancelled",
        f"read c2  {'#':>20}  0.000 s ok",
        "== answering  ?? a person is asked  ## running  xx stopping  ",
    ]


@pytest.mark.parametrize("width", [20, 200])
def test_any_width_can_be_drawn(width):
    assert len(list(lines(DRAWN, width))) == 6


def test_the_page_is_whole_in_itself_and_safe():
    page = timeline_page(DRAWN)
    assert "<it>" not in page
    assert "fix &lt;it&gt; \\x1b[31m" in page
    assert "\x1b" not in page
    assert "http" not in page
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert page.count("<rect") == 6
    assert "<td>shell c1</td><td></td><td></td><td>2.000</td><td>2.000</td><td>2.000</td><td>cancelled</td>" in page


def test_a_run_that_took_no_time_can_be_drawn():
    nothing = Timeline("r", "", 0.0, 0.0, (Lane("turn 1", (Span(Kind.STREAM, 0, 0),)),))
    assert "<svg" in timeline_page(nothing)
    assert len(list(lines(nothing, 80))) == 4
