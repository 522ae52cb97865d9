"""Section S5: a conversation that outgrows its model is shortened by whole exchanges, and nothing is lost on record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from doubles.fake_model import Break, Pause, call, end, say
from doubles.reader import Reader, length
from doubles.records import DONE, TOOL_USE
from doubles.rules import violations
from doubles.schedule import run_seeded
from doubles.spoken import PROTOCOLS
from doubles.world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import histories

from novacode.authority.hooks import NoHooks
from novacode.engine.limits import Limits
from novacode.protocols.summary import codec_for
from novacode.values.compaction import compacted
from novacode.values.events import (
    CallReady,
    CallSettled,
    Compacted,
    Level,
    Notice,
    RunBegan,
    RunEnded,
    RunStatus,
    TextDelta,
    TurnCommitted,
    UserAdded,
)
from novacode.values.failure import FailureKind
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, Image, Text, ToolCall, User
from novacode.values.request import ModelRequest, StopReason
from novacode.values.results import Outcome, ToolResult

WINDOW = 8_000


def working(turns: int, gives: int = 3_000, name: str = "work", says: str = "working") -> list[Sequence[Any]]:
    """Return the replies of a model that makes a call with a long result, turn after turn, and then ends."""
    replies = [[say(says), call(f"c{turn}", name, 1, gives=gives), TOOL_USE] for turn in range(turns)]
    return [*replies, DONE]


def world_of(model: Reader, **more: Any) -> World:
    world = World(services={"model": model} | more.pop("services", {}), **{"window": WINDOW} | more)
    world.model = model
    return world


def warnings(world: World) -> list[str]:
    return [notice.text for notice in world.of(Notice) if notice.level is Level.WARNING]


async def test_a_run_that_outgrows_its_model_goes_on_to_its_end(autojump_clock: Any) -> None:
    """The provider never has to refuse; every request fits, and every call has its one result."""
    model = Reader(working(60), limit=WINDOW)
    world = world_of(model)
    ended = await world.agent.run("go")
    assert (ended.status, ended.text, ended.turns, model.refused) == (RunStatus.COMPLETED, "done", 61, 0)
    assert max(map(length, model.requests)) <= WINDOW
    assert [event.result.outcome for event in world.of(CallSettled)] == [Outcome.OK] * 60
    done = world.of(Compacted)
    assert 2 <= len(done) <= 20
    assert all(event.after_tokens < event.before_tokens for event in done)


async def test_outputs_are_shortened_before_a_summary_is_asked_for(autojump_clock: Any) -> None:
    """Head and tail stay, with a note; the last exchanges stay as they are; no request is made for it."""
    model = Reader(working(5, gives=6_000), limit=WINDOW)
    world = world_of(model)
    await world.agent.run("go")
    assert model.asked_for_summaries == []
    [event] = world.of(Compacted)
    assert (event.summary, event.kept) == ("", 0)
    exchanges = list(world.talk.history.exchanges)
    assert len(exchanges) == 6
    first, last = exchanges[0].results[0].text, exchanges[-2].results[0].text
    assert len(first) < 1_300
    assert first.startswith("HEAD")
    assert first.endswith("TAIL")
    assert "shortened to save room" in first
    assert len(last) > 6_000


async def test_a_summary_replaces_the_older_exchanges_and_keeps_what_the_person_said(autojump_clock: Any) -> None:
    """Messages of the person stay word for word and first; then the summary; then the end of the conversation."""
    model = Reader(working(40, gives=0, says="x" * 1_000), limit=WINDOW)
    world = world_of(model)
    await world.agent.run("go, but never touch setup.py")
    items = world.talk.history.items
    assert items[0] == User.said("go, but never touch setup.py")
    assert isinstance(items[1], User)
    assert items[1].origin == "runtime"
    assert "The task is to go. Work was done." in items[1].text
    assert all(isinstance(item, Exchange) for item in items[2:])
    asked = model.asked_for_summaries[0]
    assert asked.tools == ()
    assert "never touch setup.py" in asked.history.items[0].text  # type: ignore[union-attr]
    assert "CALL work" in asked.history.items[0].text  # type: ignore[union-attr]


async def test_instructions_and_tools_are_in_every_request_but_those_for_summaries(autojump_clock: Any) -> None:
    """They are no part of the history, so nothing can take them out."""
    model = Reader(working(40, gives=0, says="x" * 1_000), limit=WINDOW)
    make = World().services.request
    world = world_of(
        model,
        services={"request": lambda history, left: _with_system(make(history, left))},
    )
    await world.agent.run("go")
    assert {request.system for request in model.asked} == {"Never touch setup.py."}
    assert model.asked_for_summaries


def _with_system(request: ModelRequest) -> ModelRequest:
    return ModelRequest(request.model, "Never touch setup.py.", request.history, request.tools)


async def test_nothing_of_a_summary_is_shown_as_an_answer(autojump_clock: Any) -> None:
    """Faces and journal get the event and a notice with the numbers, and no part of the reply."""
    world = world_of(Reader(working(40, gives=0, says="x" * 1_000), limit=WINDOW))
    ended = await world.agent.run("go")
    assert "The task is to go" not in "".join(event.text for event in world.of(TextDelta))
    assert ended.text == "done"
    event = world.of(Compacted)[0]
    told = f"the conversation was shortened from about {event.before_tokens} to {event.after_tokens} tokens"
    assert any(text.startswith(told) for text in warnings(world))


async def test_a_summary_is_paid_for_and_no_turn(autojump_clock: Any) -> None:
    """Its tokens count for the run's limits and its bill."""
    model = Reader(working(40, gives=0, says="x" * 1_000), limit=WINDOW)
    world = world_of(model)
    ended = await world.agent.run("go")
    assert ended.turns == len(model.asked) == 41
    assert ended.usage.output == 5 * len(model.requests)


async def test_hooks_hear_of_it_first(autojump_clock: Any) -> None:
    """`PreCompact` with the trigger `auto`, before anything has changed."""
    heard: list[tuple[str, int]] = []

    class Hooks(NoHooks):
        async def pre_compact(self, trigger: str, instructions: str = "") -> None:
            heard.append((trigger, len(world.of(Compacted))))

    world = world_of(Reader(working(9), limit=WINDOW), services={"hooks": Hooks()})
    await world.agent.run("go")
    assert heard == [("auto", 0)]


# --- BR-137 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=40)
@given(history=histories(), summary=st.booleans(), prompts=st.integers(0, 3))
def test_br_137_every_cut_is_paired_and_begins_with_the_user(
    protocol: str, history: History, summary: bool, prompts: int
) -> None:
    """For every number of items kept: items are exchanges, so there is no cut between a call and its result."""
    codec = codec_for(protocol)
    odd = violations(protocol, codec.encode(ModelRequest("m", "", history)).body)  # which the history has anyway
    for kept in range(len(history.items) + 2):
        trimmed = dict.fromkeys(history.call_ids, kept + 2)
        shorter = compacted(history, Compacted(kept, "What was done." if summary else "", prompts, trimmed))
        assert len(violations(protocol, codec.encode(ModelRequest("m", "", shorter)).body)) <= len(odd)
        left = history.items[len(history.items) - min(kept, len(history.items)) :] if summary else history.items
        assert [exchange.message for exchange in shorter.exchanges] == [
            item.message for item in left if isinstance(item, Exchange)
        ]
        assert not summary or isinstance(shorter.items[0], User)


def test_shortening_takes_pictures_out_and_keeps_the_identity() -> None:
    """Outcome, exit code and what is for people stay as they are."""
    one = ToolCall(CallId("c1"), 0, "read", {})
    result = ToolResult(
        one.id, "read", Outcome.OK, True, (Text("a" * 9_000), Image("image/png", "aGk=")), "note", None, "diff"
    )
    history = History((User.said("go"), Exchange(Assistant((one,)), (result,))))
    [exchange] = compacted(history, Compacted(trimmed={one.id: 100})).exchanges
    [short] = exchange.results
    assert (short.call_id, short.name, short.outcome, short.note, short.diff) == (
        "c1",
        "read",
        Outcome.OK,
        "note",
        "diff",
    )
    assert "1 picture(s) left out" in short.text
    assert len(short.text) < 400
    assert compacted(history, Compacted()) == history


# --- BR-138 -------------------------------------------------------------------------------------------------------


async def test_br_138_it_waits_for_the_calls_of_the_turn(autojump_clock: Any) -> None:
    """The response is over the border while its call still runs: the next request has the call with its real result."""
    model = Reader([*working(12, gives=2_900)[:-1], [call("slow", "work", 1, takes=2), TOOL_USE], DONE], limit=WINDOW)
    world = world_of(model)
    await world.agent.run("go")
    assert world.of(Compacted)
    settled = {event.result.call_id: event.result.text for event in world.of(CallSettled)}
    assert settled["slow"] == "done"
    last = model.asked[-1].history.items[-1]
    assert isinstance(last, Exchange)
    assert [(result.call_id, result.text) for result in last.results] == [("slow", "done")]
    moments = [type(stamped.event) for stamped in world.events]
    for place, kind in enumerate(moments):
        if kind is Compacted:
            before = world.events[:place]
            opened = sum(isinstance(stamped.event, CallReady) for stamped in before)
            assert opened == sum(isinstance(stamped.event, CallSettled) for stamped in before)


# --- BR-139 -------------------------------------------------------------------------------------------------------


async def test_br_139_what_cannot_shrink_is_tried_once(autojump_clock: Any) -> None:
    """The provider says 3,900 of 4,000 whatever it is sent: one warning with the numbers, and no endless requests."""
    model = Reader(working(6, gives=0), counts=lambda _: 3_900)
    world = world_of(model, window=4_000)
    ended = await world.agent.run("hi")
    assert (ended.status, ended.turns) == (RunStatus.COMPLETED, 7)
    assert len(model.asked_for_summaries) <= 1
    assert len(world.of(Compacted)) <= 1
    given_up = [text for text in warnings(world) if "not tried again" in text]
    assert len(given_up) == 1
    assert all(number in given_up[0] for number in ("4000", "3200", "about 4"))
    again = world_of(model, window=4_000)
    again.agent = world.agent
    await world.agent.run("hi again")
    assert len([text for text in warnings(world) if "not tried again" in text]) == 1


async def test_br_139_one_output_nearly_as_large_as_the_window_each_time(autojump_clock: Any) -> None:
    """Each is cut to a part of the window as a last resort, and the run gets to its end."""
    model = Reader(working(8, gives=int(0.9 * 4 * WINDOW)), limit=WINDOW)
    world = world_of(model)
    ended = await world.agent.run("hi")
    assert (ended.status, model.refused) == (RunStatus.COMPLETED, 0)
    assert len(model.asked_for_summaries) <= 8


async def test_a_prompt_that_is_too_large_by_itself_has_an_ending_of_its_own(autojump_clock: Any) -> None:
    """Nothing in it may be shortened: the run says so, with numbers and what to do, and does not ask again."""
    model = Reader([DONE], limit=WINDOW)
    world = world_of(model)
    ended = await world.agent.run("read this: " + "word " * 20_000)
    assert (ended.status, ended.reason, len(model.requests)) == (RunStatus.FAILED, "prompt_too_large", 1)
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.CONTEXT_TOO_LONG
    assert "Give it less" in ended.failure.message
    assert len(world.talk.history.items) == 1


# --- BR-141 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [None, 1_000_000], ids=["window not known", "window known wrongly"])
async def test_br_141_a_refusal_leads_to_one_compaction_and_one_retry(window: int | None, autojump_clock: Any) -> None:
    """The provider's own word decides, whatever the table says; no call runs twice."""
    model = Reader(working(12), limit=WINDOW)
    world = world_of(model, window=window)
    ended = await world.agent.run("go")
    assert (ended.status, ended.text) == (RunStatus.COMPLETED, "done")
    assert model.refused == len(world.of(Compacted)) >= 1
    begun = [entry for entry in world.log if entry.startswith("begin")]
    assert len(begun) == len(set(begun)) == 12


async def test_br_141_a_second_overflow_ends_the_run(autojump_clock: Any) -> None:
    """It says too long for ever: one compaction, one retry, and a clear error."""
    too_long = [Break(FailureKind.CONTEXT_TOO_LONG, retryable=False)]
    model = Reader([*working(8)[:-1], too_long, too_long, DONE])
    world = world_of(model, window=None)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "context_too_long")
    assert len(world.of(Compacted)) == 1
    assert model.replies == [DONE]


async def test_br_141_other_refusals_do_not_compact(autojump_clock: Any) -> None:
    """A request that is wrong in another way is not made right by being shorter."""
    model = Reader([*working(8)[:-1], [Break(FailureKind.INVALID_REQUEST, retryable=False)], DONE])
    world = world_of(model, window=None)
    ended = await world.agent.run("go")
    assert (ended.reason, world.of(Compacted)) == ("invalid_request", [])


# --- BR-142 -------------------------------------------------------------------------------------------------------

BAD = {
    "a call": [call("tu_9", "work", 0), TOOL_USE],
    "nothing": [end()],
    "blank": [say(" \n"), end()],
    "half": [say("The task is"), end(StopReason.OUTPUT_LIMIT)],
    "refused": [say("I cannot"), end(StopReason.REFUSAL)],
}


@pytest.mark.parametrize("bad", BAD)
async def test_br_142_a_bad_summary_is_rejected_and_the_old_history_stays(bad: str, autojump_clock: Any) -> None:
    """Three tries, one warning, no more; nothing is executed, nothing is left open, the run goes on as it can."""
    model = Reader(working(30, gives=0, says="x" * 1_000), summaries=[BAD[bad]] * 9)
    world = world_of(model)
    ended = await world.agent.run("go")
    assert (ended.status, len(model.asked_for_summaries)) == (RunStatus.COMPLETED, 3)
    assert world.of(Compacted) == []
    assert "begin tu_9" not in world.log
    assert "tu_9" not in {event.call.id for event in world.of(CallReady)}
    assert len([text for text in warnings(world) if "no summary could be had" in text]) == 1
    assert len(list(world.talk.history.exchanges)) == 31


async def test_br_142_a_later_try_may_be_good(autojump_clock: Any) -> None:
    """A call first, then a summary."""
    good = [say("The task is to go."), end()]
    model = Reader(working(12, gives=0, says="x" * 2_000), limit=WINDOW, summaries=[BAD["a call"], *[good] * 9])
    world = world_of(model)
    ended = await world.agent.run("go")
    assert ended.status is RunStatus.COMPLETED
    assert "The task is to go." in world.of(Compacted)[0].summary


async def test_a_model_that_cannot_be_asked_ends_the_run_as_in_any_turn(autojump_clock: Any) -> None:
    """The key was withdrawn meanwhile: that is what the run says, and the history is whole."""
    model = Reader(
        working(30, gives=0, says="x" * 1_000), summaries=[[Break(FailureKind.AUTHENTICATION, retryable=False)]]
    )
    world = world_of(model)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, world.of(Compacted)) == (RunStatus.FAILED, "authentication", [])


# --- stopping -----------------------------------------------------------------------------------------------------


async def test_a_cancel_while_the_summary_is_written_changes_nothing(autojump_clock: Any) -> None:
    """At once, with the history as it was; and the next run works."""
    model = Reader(working(30, gives=0, says="x" * 1_000), summaries=[[say("The task"), Pause(1_000), end()]])
    world = world_of(model)

    async def cancel_when_asked() -> None:
        await model.asked_for_one.wait()
        await trio.sleep(1)
        before.append((trio.current_time(), world.talk.history))
        world.agent.cancel("SIGINT")

    before: list[tuple[float, History]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when_asked)
        ended = await world.agent.run("go")
    assert (ended.status, ended.reason, world.talk.history) == (RunStatus.CANCELLED, "SIGINT", before[0][1])
    assert trio.current_time() - before[0][0] == 0.5  # the sweep of this world
    model.summaries = None
    assert (await world.agent.run("again")).status is RunStatus.COMPLETED


async def test_a_limit_that_a_summary_uses_up_ends_the_run(autojump_clock: Any) -> None:
    """Output tokens of a summary are output tokens."""
    model = Reader(working(40, gives=0, says="x" * 1_000), limit=WINDOW)
    first = world_of(model)
    await first.agent.run("go")
    turns = next(number for number, request in enumerate(model.requests) if request in model.asked_for_summaries)
    model = Reader(working(40, gives=0, says="x" * 1_000), limit=WINDOW)
    world = world_of(model, limits=Limits(max_output_tokens=5 * turns + 3))
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.LIMIT, "max_output_tokens")
    assert isinstance(world.events[-1].event, RunEnded)
    assert len(world.of(Compacted)) == 1


# --- attacked -----------------------------------------------------------------------------------------------------


def _carried_out(step: int | None) -> tuple[int, World, bool]:
    """Run to the end, or cancel at `step` and run again; return the steps it took."""
    made: list[World] = []
    struck: list[bool] = []

    async def main() -> None:
        model = Reader(working(7, gives=0, says="x" * 4_000), limit=WINDOW)
        made.append(world_of(model))
        await made[0].agent.run("go")
        if step is not None:
            await made[0].agent.run("again")

    def act() -> None:
        if made and not made[0].of(RunEnded):
            struck.append(made[0].agent.cancel("SIGINT"))

    steps = run_seeded(main, 1, step, act)
    return steps, made[0], any(struck)


@pytest.mark.timeout(120)
def test_cancelled_at_every_step_the_history_is_what_the_events_say() -> None:
    """Compacted or not, never half: what a resume would read is what the run had, and the next run works."""
    steps, world, _ = _carried_out(None)
    assert [event.summary != "" for event in world.of(Compacted)] == [True]
    for step in range(1, steps + 1):
        _, world, struck = _carried_out(step)
        assert _folded(world) == world.talk.history
        ended = world.of(RunEnded)
        assert [run.status for run in ended][1:] == [RunStatus.COMPLETED]
        assert not struck or ended[0].status in (RunStatus.CANCELLED, RunStatus.COMPLETED)


def _folded(world: World) -> History:
    history = History()
    for stamped in world.events:
        match stamped.event:
            case RunBegan(prompt=user) | UserAdded(user=user):
                history = history.with_user(user)
            case TurnCommitted(exchange=exchange):
                history = history.with_exchange(exchange)
            case Compacted() as event:
                history = compacted(history, event)
            case _:
                pass
    return history
