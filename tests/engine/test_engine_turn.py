"""Section T of the specification: calls run while the model still speaks. All times are virtual seconds."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from doubles.fake_model import Break, Pause, broken, call, end, say
from doubles.records import DONE, TOOL_USE, phases, results, times
from doubles.world import World

from novacode.authority.approvals import Answer
from novacode.engine.gate import Overlap
from novacode.values.events import (
    ApprovalAsked,
    AttemptDropped,
    CallMoved,
    CallReady,
    CallSettled,
    Level,
    Notice,
    Phase,
    RunEnded,
    RunStatus,
    TurnBegan,
    TurnCommitted,
    UsageSeen,
)
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange
from novacode.values.parts import Assistant, Text, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome

SWEEP = 0.5  # what the sweep of the world takes


def running(world: World) -> dict[str, float]:
    """When each call was entered."""
    return {
        s.event.call_id: s.at for s in world.events if isinstance(s.event, CallMoved) and s.event.phase == "running"
    }


async def took(world: World) -> float:
    await world.agent.run("go")
    return world.events[-1].at - SWEEP


async def test_a_tool_runs_while_the_model_still_speaks(autojump_clock: Any) -> None:
    """A tool of 2 s, complete at once, and a stream that goes on for 2 s take 2 s together, not 4."""
    world = World([[call("a", "work", 1, takes=2), Pause(2), TOOL_USE], DONE])
    assert await took(world) == 2


async def test_calls_overlap_with_each_other(autojump_clock: Any) -> None:
    calls = [call(f"c{n}", "work", n, takes=1) for n in range(1, 5)]
    assert await took(World([[*calls, TOOL_USE], DONE])) == 1


@pytest.mark.parametrize(("overlap", "seconds"), [(Overlap.ALL, 1), (Overlap.DECLARED, 3), (Overlap.NONE, 4)], ids=str)
async def test_overlap_setting(overlap: Overlap, seconds: float, autojump_clock: Any) -> None:
    """Three calls write one file, one touches nothing."""
    calls = [call(f"c{n}", "work", n, takes=1, writes=["x"]) for n in range(1, 4)]
    world = World([[*calls, call("c4", "work", 4, takes=1), TOOL_USE], DONE], overlap=overlap)
    assert await took(world) == seconds


async def test_writes_of_one_file_run_in_call_order(autojump_clock: Any) -> None:
    """T6: whatever the scheduler does; and each waiting call names what it waits for."""
    calls = [call(f"c{n}", "work", n, takes=1, writes=["x"]) for n in range(1, 4)]
    world = World([[*calls, TOOL_USE], DONE])
    await world.agent.run("go")
    assert running(world) == {"c1": 0, "c2": 1, "c3": 2}
    waits = {e.call_id: set(e.waits_for) for e in world.of(CallMoved) if e.phase is Phase.QUEUED}
    assert waits["c3"] <= {"c1", "c2"}
    assert waits["c3"]


async def test_reads_of_one_file_overlap_and_a_write_waits_for_them(autojump_clock: Any) -> None:
    world = World(
        [
            [
                call("r1", "work", 1, takes=2, reads=["d/x"]),
                call("r2", "work", 2, takes=1, reads=["d/x"]),
                call("w", "work", 3, takes=1, writes=["d"]),
                call("r3", "work", 4, takes=1, reads=["d/y"]),
                TOOL_USE,
            ],
            DONE,
        ]
    )
    await world.agent.run("go")
    assert running(world) == {"r1": 0, "r2": 0, "w": 2, "r3": 3}


async def test_a_call_that_waits_for_a_person_holds_up_only_what_conflicts(autojump_clock: Any) -> None:
    """T2: early dispatch never skips the question, and the others go on."""
    world = World(
        [
            [
                call("a", "asks", 1, takes=1, writes=["x"]),
                call("b", "work", 2, takes=1),
                call("c", "work", 3, takes=1, writes=["x"]),
                Pause(5),
                TOOL_USE,
            ],
            DONE,
        ]
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(3)
        assert phases(world, "a")[-1] is Phase.ASKING
        assert running(world) == {"b": 0}
        asked = world.of(ApprovalAsked)[0]
        active = world.agent.active
        assert active is not None
        active.answer(active.id, asked.approval_id, Answer(allowed=True, by="you"))
    assert running(world) == {"b": 0, "a": 3, "c": 4}
    assert times(world, CallSettled) == {"b": 1, "a": 4, "c": 5}


async def test_br_005_results_come_in_call_order(autojump_clock: Any) -> None:
    """A slow call, one that is denied at once and one nobody knows: 1, 2, 3 in history and in the next request."""
    world = World(
        [
            [
                call("a", "work", 1, takes=3),
                call("b", "denied", 2),
                call("c", "nothing", 3),
                broken("d", "work", 4),
                call("e", "work", 5, takes=1),
                TOOL_USE,
            ],
            DONE,
        ]
    )
    await world.agent.run("go")
    assert list(results(world))[-2:] == ["e", "a"]
    last = world.model.requests[1].history.items[-1]
    assert isinstance(last, Exchange)
    assert [(result.call_id, result.outcome) for result in last.results] == [
        ("a", Outcome.OK),
        ("b", Outcome.DENIED),
        ("c", Outcome.UNKNOWN_TOOL),
        ("d", Outcome.BROKEN),
        ("e", Outcome.OK),
    ]


async def test_calls_opened_in_one_order_and_complete_in_another_keep_the_first(autojump_clock: Any) -> None:
    """E5: the position in the response counts, not the moment of completion."""
    world = World([[call("late", "work", 2), call("early", "work", 1), TOOL_USE], DONE])
    await world.agent.run("go")
    exchange = next(world.talk.history.exchanges)
    assert [part.id for part in exchange.message.calls] == ["early", "late"]
    assert [result.call_id for result in exchange.results] == ["early", "late"]


async def test_the_model_is_asked_again_only_when_every_call_has_its_result(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=4), call("b", "work", 2, takes=1), TOOL_USE], DONE])
    await world.agent.run("go")
    asked_again = [stamped.at for stamped in world.events if isinstance(stamped.event, TurnBegan)][1]
    assert asked_again == max(times(world, CallSettled).values()) == 4


# --- broken streams ----------------------------------------------------------------------------------------------


async def test_br_092_a_stream_lost_before_a_call_is_asked_for_again(autojump_clock: Any) -> None:
    world = World([[say("part"), Pause(1), Break()], [say("whole"), end()]])
    ended = await world.agent.run("go")
    lost = Failure(FailureKind.NETWORK, "network: planned by the test", retryable=True)
    assert world.of(AttemptDropped) == [AttemptDropped(lost, 1, 1.0)]
    assert (ended.status, ended.text, ended.turns) == (RunStatus.COMPLETED, "whole", 1)
    assert [exchange.message.text for exchange in world.talk.history.exchanges] == ["whole"]


async def test_retries_are_bounded_and_what_came_last_is_kept(autojump_clock: Any) -> None:
    world = World([[say("part"), Break()]] * 5, retries=2)
    ended = await world.agent.run("go")
    assert len(world.model.requests) == 3
    assert [dropped.attempt for dropped in world.of(AttemptDropped)] == [1, 2]
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "network")
    assert ended.failure == Failure(FailureKind.NETWORK, "network: planned by the test", retryable=True)
    assert [exchange.message.text for exchange in world.talk.history.exchanges] == ["part"]


async def test_a_failure_that_trying_again_cannot_mend_is_not_tried_again(autojump_clock: Any) -> None:
    world = World([[Break(FailureKind.AUTHENTICATION, retryable=False)]])
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, len(world.model.requests)) == (RunStatus.FAILED, "authentication", 1)
    assert world.talk.history.items == (User.said("go"),)


async def test_br_095_a_stream_lost_after_a_call_is_never_asked_for_again(autojump_clock: Any) -> None:
    """T8: the call ends, what came is committed, the person is told, and the next request goes on from there."""
    world = World([[say("p"), call("a", "work", 1, takes=2), Pause(1), Break()], [say("went on"), end()]])
    ended = await world.agent.run("go")
    assert world.of(AttemptDropped) == []
    assert world.log.count("begin a") == 1
    assert results(world)["a"].outcome is Outcome.OK
    told = "the response broke off (network: planned by the test); going on from what came in 1 s"
    assert Notice(Level.WARNING, told) in world.of(Notice)
    assert [commit.stop for commit in world.of(TurnCommitted)] == [None, StopReason.END]
    assert world.model.requests[1].history.items[1:] == tuple(world.talk.history.exchanges)[:1]
    assert (ended.status, ended.text, ended.turns) == (RunStatus.COMPLETED, "went on", 2)


async def test_a_stream_that_is_lost_after_every_call_ends_the_run(autojump_clock: Any) -> None:
    lost = [[call(f"c{n}", "work", 1), Break()] for n in range(9)]
    world = World(lost, retries=2)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, ended.turns) == (RunStatus.FAILED, "network", 3)
    assert [world.log.count(f"begin c{n}") for n in range(4)] == [1, 1, 1, 0]


async def test_a_good_response_renews_the_patience_with_broken_ones(autojump_clock: Any) -> None:
    lost = [[call(f"c{n}", "work", 1), Break()] for n in range(2)]
    good = [call("g", "work", 1), TOOL_USE]
    again = [[call(f"d{n}", "work", 1), Break()] for n in range(2)]
    world = World([*lost, good, *again, DONE], retries=2)
    assert (await world.agent.run("go")).status is RunStatus.COMPLETED


async def test_a_stream_lost_after_a_broken_call_goes_on_with_its_result(autojump_clock: Any) -> None:
    world = World([[broken("a", "work"), Break()], DONE])
    ended = await world.agent.run("go")
    assert (ended.status, len(world.model.requests)) == (RunStatus.COMPLETED, 2)
    assert results(world)["a"].outcome is Outcome.BROKEN


# --- output limit, pauses, emptiness, refusal ----------------------------------------------------------------------

CUT = end(StopReason.OUTPUT_LIMIT)


async def test_a_cut_text_is_continued_and_counts_as_one_answer(autojump_clock: Any) -> None:
    world = World([[say("first "), CUT], [say("second "), CUT], [say("third"), end()]])
    ended = await world.agent.run("go")
    assert (ended.status, ended.text) == (RunStatus.COMPLETED, "first second third")
    nudges = [item for item in world.talk.history.items if isinstance(item, User) and item.origin == "runtime"]
    assert [nudge.text for nudge in nudges] == [
        "Your answer was cut off by the output limit. Go on exactly where it stopped."
    ] * 2


async def test_br_070_a_cut_call_is_broken_and_the_others_keep_their_results(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=1), broken("b", "work", 2), CUT], DONE])
    ended = await world.agent.run("go")
    assert [result.outcome for result in next(world.talk.history.exchanges).results] == [Outcome.OK, Outcome.BROKEN]
    nudge = world.model.requests[1].history.items[-1]
    assert nudge == User.said("Your call was cut off by the output limit. Work in smaller pieces.", "runtime")
    assert (ended.status, ended.text) == (RunStatus.COMPLETED, "done")


async def test_calls_that_are_whole_are_not_called_cut(autojump_clock: Any) -> None:
    world = World([[say("then"), call("a", "work", 1), CUT], DONE])
    await world.agent.run("go")
    nudge = world.model.requests[1].history.items[-1]
    assert isinstance(nudge, User)
    assert nudge.text.startswith("Your answer was cut off")


async def test_cuts_are_bounded(autojump_clock: Any) -> None:
    world = World([[say("more"), CUT]] * 9)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, ended.turns) == (RunStatus.LIMIT, "output_limit", 4)


async def test_a_cut_response_without_a_word_is_asked_for_again(autojump_clock: Any) -> None:
    """All of the output went into reasoning: nothing becomes history, and the run goes on."""
    world = World([[CUT], DONE])
    ended = await world.agent.run("go")
    assert (ended.status, ended.text) == (RunStatus.COMPLETED, "done")


async def test_work_done_renews_the_patience_with_cuts(autojump_clock: Any) -> None:
    cut = [[say("more"), CUT]] * 3
    world = World([*cut, [call("a", "work", 1), TOOL_USE], *cut, DONE])
    assert (await world.agent.run("go")).status is RunStatus.COMPLETED


async def test_br_073_a_paused_response_is_sent_back_without_a_word(autojump_clock: Any) -> None:
    paused = end(StopReason.PAUSED)
    world = World([[say("looking"), paused], [say("found"), end()]])
    ended = await world.agent.run("go")
    assert world.model.requests[1].history.items[-1] == Exchange(Assistant((Text("looking"),), "fake"))
    assert (ended.status, ended.text) == (RunStatus.COMPLETED, "found")


async def test_pauses_are_bounded(autojump_clock: Any) -> None:
    world = World([[say("looking"), end(StopReason.PAUSED)]] * 99)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, ended.turns) == (RunStatus.LIMIT, "paused", 11)


@pytest.mark.parametrize("blank", ["", " ", "\n\n"], ids=repr)
async def test_br_079_empty_answers_are_bounded_and_leave_no_message(blank: str, autojump_clock: Any) -> None:
    world = World([[say(blank), end()]] * 99)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, len(world.model.requests)) == (RunStatus.FAILED, "empty_reply", 3)
    assert world.talk.history.items == (User.said("go"),)
    world.model.replies = [DONE]
    assert (await world.agent.run("again")).status is RunStatus.COMPLETED


async def test_br_079_cancelling_gets_out_of_empty_answers(autojump_clock: Any) -> None:
    world = World([[Pause(1), end()]] * 99)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1.5)
        world.agent.cancel("enough")
    assert len(world.model.requests) == 2
    assert world.of(RunEnded)[0].reason == "enough"


async def test_br_074_a_refusal_is_one_request_and_its_own_status(autojump_clock: Any) -> None:
    world = World([[end(StopReason.REFUSAL, "content_filter")], DONE])
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, len(world.model.requests)) == (RunStatus.REFUSED, "refusal", 1)
    assert world.talk.history.items == (User.said("go"),)
    assert Notice(Level.WARNING, "the model refused to answer") in world.of(Notice)
    assert (await world.agent.run("something else")).status is RunStatus.COMPLETED


async def test_br_080_an_unknown_stop_is_told_with_its_own_word(autojump_clock: Any) -> None:
    world = World([[say("Half"), end(StopReason.UNKNOWN, "brand_new_reason")]])
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, ended.text) == (RunStatus.COMPLETED, "unknown_stop", "Half")
    assert world.of(TurnCommitted)[0].raw_stop == "brand_new_reason"
    assert Notice(Level.WARNING, "the provider stopped for 'brand_new_reason'") in world.of(Notice)


async def test_br_080_complete_calls_before_an_unknown_stop_count(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1), end(StopReason.UNKNOWN, "brand_new_reason")], DONE])
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, ended.text) == (RunStatus.COMPLETED, "completed", "done")


async def test_usage_within_a_response_is_the_last_and_between_responses_the_sum(autojump_clock: Any) -> None:
    first = [UsageSeen(Usage(100, 1)), call("a", "work", 1), UsageSeen(Usage(100, 7, 90, 2, 3)), *TOOL_USE[1:]]
    second = [say("x"), UsageSeen(Usage(10, 5, 50, 4, input_counts_cache=False)), *end()[1:]]
    ended = await World([first, second]).agent.run("go")
    assert ended.usage == Usage(100 + 10 + 50 + 4, 7 + 5, 90 + 50, 2 + 4, 3)


async def test_what_dropped_attempts_used_is_counted(autojump_clock: Any) -> None:
    world = World([[UsageSeen(Usage(100, 1)), say("x"), Break()], [say("y"), end()]])
    ended = await world.agent.run("go")
    assert (ended.usage.input, ended.usage.output) == (110, 6)
    assert world.of(TurnCommitted)[0].usage == Usage(10, 5)


async def test_a_cancelled_turn_counts_with_what_it_used(autojump_clock: Any) -> None:
    world = World([[UsageSeen(Usage(100, 1)), call("a", "work", 1, takes=9), TOOL_USE]])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        world.agent.cancel("enough")
    ended = world.of(RunEnded)[0]
    assert (ended.turns, ended.usage) == (1, Usage(10, 5, 0, 0, 0))
    assert world.of(TurnCommitted)[0].usage == Usage(10, 5)


async def test_a_turn_of_many_calls_keeps_its_order(autojump_clock: Any) -> None:
    calls = [call(f"c{n}", "work", n, takes=(n * 7919) % 13) for n in range(300)]
    world = World([[*calls, TOOL_USE], DONE])
    await world.agent.run("go")
    exchange = next(world.talk.history.exchanges)
    assert [result.call_id for result in exchange.results] == [f"c{n}" for n in range(300)]
    assert len(world.of(CallReady)) == len(world.of(CallSettled)) == 300


async def test_the_commit_cannot_be_interrupted_half_way(autojump_clock: Any) -> None:
    """Settling what is left and growing the history are one step, also for a `KeyboardInterrupt`."""
    world = World([[call("a", "work", 1, takes=9), TOOL_USE]])
    protected: list[tuple[str, bool]] = []

    def on(stamped: Any) -> None:
        if isinstance(stamped.event, TurnCommitted | CallSettled | TurnBegan):
            protected.append((type(stamped.event).__name__, trio.lowlevel.currently_ki_protected()))

    world.bus.subscribe(on)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        world.agent.cancel("enough")
    assert protected == [("TurnBegan", False), ("CallSettled", True), ("TurnCommitted", True)]
