"""Section C of the specification: a run is over when everything it started has stopped, and says so last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from doubles.fake_model import Break, Pause, call, end, say
from doubles.records import DONE, TOOL_USE, results, trace
from doubles.world import Quiet, World

from novacode.authority.approvals import Answer, Receipt
from novacode.engine.groups import RunBroken
from novacode.engine.limits import Limits
from novacode.errors import CredentialsError, ReplayMismatch, SessionError, UsageError
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallMoved,
    CallOutput,
    CallSettled,
    Level,
    Notice,
    Phase,
    Reaped,
    RunBegan,
    RunEnded,
    RunEvent,
    RunStatus,
    Stamped,
    TextDelta,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.failure import FailureKind
from novacode.values.parts import Text, User
from novacode.values.request import StopReason
from novacode.values.results import Outcome


async def stopped_after(world: World, seconds: float, act: Callable[[], object]) -> RunEnded:
    """Run, do `act` at `seconds`, and return how the run ended."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(seconds)
        act()
    ended: RunEnded = world.of(RunEnded)[0]
    assert world.events[-1].event == ended
    assert len(world.of(RunEnded)) == 1
    assert world.alive == set()
    assert world.agent.active is None
    return ended


# --- stopping a run ----------------------------------------------------------------------------------------------


async def test_a_plain_run_is_told_from_begin_to_end(autojump_clock: Any) -> None:
    world = World([[say("hello"), end()]])
    ended = await world.agent.run("go")
    assert ended == RunEnded(
        RunStatus.COMPLETED,
        "completed",
        text="hello",
        turns=1,
        usage=attrs.evolve(ended.usage, input=10, output=5),
        calls={"total": 0},
    )
    kinds = [type(stamped.event).__name__ for stamped in world.events]
    assert kinds == [
        *("RunBegan", "TurnBegan", "Started", "TextDelta", "UsageSeen", "Finished", "TurnCommitted", "RunEnded")
    ]
    assert world.of(RunBegan) == [RunBegan(User.said("go"), "fake")]
    assert [stamped.seq for stamped in world.events] == list(range(1, len(kinds) + 1))
    assert {stamped.run_id for stamped in world.events} == {"s-r1"}


async def test_br_004_what_was_cut_off_says_so_and_keeps_its_output(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=30, prints="partial"), call("b", "denied", 2), TOOL_USE], DONE])
    ended = await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    assert (ended.status, ended.reason) == (RunStatus.CANCELLED, "ctrl-c")
    assert results(world)["a"].text == (
        "Started, then interrupted before it ended (ctrl-c). What it did until then stays done.\n"
        "Output so far:\npartial"
    )
    assert (results(world)["a"].outcome, results(world)["a"].began) == (Outcome.CANCELLED, True)
    assert results(world)["b"].outcome is Outcome.DENIED
    assert ended.calls == {"total": 2, "cancelled": 1, "denied": 1}
    assert Notice(Level.INFO, "cancelled: ctrl-c") in world.of(Notice)


async def test_br_006_finished_calls_keep_their_results(autojump_clock: Any) -> None:
    world = World(
        [
            [
                call("a", "work", 1),
                call("b", "work", 2, takes=60, writes=["x"]),
                call("c", "work", 3, writes=["x"]),
                TOOL_USE,
            ]
        ]
    )
    await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    exchange = next(world.talk.history.exchanges)
    assert [(result.outcome, result.began) for result in exchange.results] == [
        (Outcome.OK, True),
        (Outcome.CANCELLED, True),
        (Outcome.CANCELLED, False),
    ]
    assert exchange.results[2].text == "Cancelled before it started (ctrl-c). Nothing was executed."
    world.model.replies = [DONE]
    await world.agent.run("next question")
    assert [exchange.results for exchange in world.talk.history.exchanges] == [exchange.results, ()]


async def test_c3_cleanup_is_awaited_before_the_run_is_over(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=30, cleanup=4), call("b", "work", 2, takes=30, cleanup=7), TOOL_USE]])
    ended = await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    assert world.events[-1].at == 1 + 7 + 0.5  # side by side, then the sweep
    assert ended.reaped == Reaped(tasks=2, ms=7500)
    assert world.log[-3:] == ["sweep begins", "sweep ends", "run ended"]


async def test_br_017_a_cleanup_that_never_ends_is_bounded(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=30, cleanup=9999), TOOL_USE]])
    await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    assert world.events[-1].at <= 1 + 30 + 0.5


async def test_a_sweep_that_never_ends_is_bounded(autojump_clock: Any) -> None:
    class Endless(Quiet):
        async def sweep(self) -> None:
            await trio.sleep_forever()

    world = World([DONE], services={"processes": Endless([])})
    assert (await world.agent.run("go")).status is RunStatus.COMPLETED
    assert trio.current_time() == 5.0


async def test_what_outlived_everything_is_named(autojump_clock: Any) -> None:
    """Only what this run took is counted, and only its own survivors are told."""

    class Stubborn(Quiet):
        counted = Reaped(processes=3, escalated=1, survivors=(7,))

        async def sweep(self) -> None:
            self.counted = Reaped(processes=8, escalated=2, survivors=(7, 4711))

        @property
        def reaped(self) -> Reaped:
            return self.counted

    world = World([DONE], services={"processes": Stubborn([])})
    ended = await world.agent.run("go")
    assert ended.reaped == Reaped(processes=5, escalated=1, survivors=(4711,))
    assert Notice(Level.WARNING, "process 4711 could not be stopped and is still alive") in world.of(Notice)


@pytest.mark.parametrize("fails", ["swallow", "group"])
async def test_br_023_a_tool_cannot_hold_a_cancelled_run(fails: str, autojump_clock: Any) -> None:
    """One tool swallows the cancellation, one answers it with a failure: cancelled all the same, no request after."""
    world = World([[call("a", "work", 1, takes=30, fails=fails), TOOL_USE], DONE])
    ended = await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    assert (ended.status, len(world.model.requests)) == (RunStatus.CANCELLED, 1)
    told = [notice.text for notice in world.of(Notice) if "boom" in notice.text]
    assert bool(told) == (fails == "group")


@pytest.mark.parametrize("how", ["run", "call", "timeout"])
async def test_a_failing_cleanup_does_not_turn_an_interrupted_call_into_a_failed_one(
    how: str, autojump_clock: Any
) -> None:
    """What the clean-up raised is told; the result says that the call was interrupted, and by what."""
    timeout = 1 if how == "timeout" else None
    world = World([[call("a", "work", 1, takes=30, fails="cleanup", prints="half"), TOOL_USE], DONE], timeout=timeout)
    stop = {"run": lambda: world.agent.cancel("ctrl-c"), "call": lambda: world.agent.active.stop_call("a")}  # type: ignore[union-attr,arg-type]
    await stopped_after(world, 1, stop.get(how, lambda: None))
    result = results(world)["a"]
    assert result.outcome is (Outcome.TIMEOUT if how == "timeout" else Outcome.CANCELLED)
    assert "half" in result.text
    assert [notice.text for notice in world.of(Notice) if "clean-up failed" in notice.text] == [
        "work a, while it was being cancelled: The tool failed: OSError: the clean-up failed"
    ]


async def test_cancelling_twice_keeps_the_first_reason(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=30, cleanup=2), TOOL_USE]])

    def twice() -> None:
        assert world.agent.cancel("first")
        assert world.agent.cancel("second")

    assert (await stopped_after(world, 1, twice)).reason == "first"
    assert world.agent.cancel("third") is False


async def test_a_cancel_during_a_wait_before_another_attempt_is_immediate(autojump_clock: Any) -> None:
    world = World([[say("part"), Break()]] * 3)
    await stopped_after(world, 0.5, lambda: world.agent.cancel("ctrl-c"))
    assert world.events[-1].at == 1.0
    assert world.talk.history.items == (User.said("go"),)


async def test_what_was_said_before_a_cancel_is_kept(autojump_clock: Any) -> None:
    world = World([[say("one "), say("two"), Pause(9), end()]])
    ended = await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    assert ended.text == "one two"
    assert next(world.talk.history.exchanges).message.parts == (Text("one two"),)
    assert world.of(TurnCommitted)[0].stop is None


async def test_a_cancel_before_anything_was_said_commits_nothing(autojump_clock: Any) -> None:
    world = World([[Pause(9), say("late"), end()]])
    ended = await stopped_after(world, 1, lambda: world.agent.cancel("ctrl-c"))
    assert (ended.text, world.talk.history.items) == ("", (User.said("go"),))


async def test_cancelled_goes_on_upwards_when_it_comes_from_outside(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=30, cleanup=2), TOOL_USE], DONE])
    went_on = False
    with trio.move_on_after(1) as scope:
        await world.agent.run("go")
        went_on = True
    assert (scope.cancelled_caught, went_on) == (True, False)
    ended = world.of(RunEnded)
    assert [(one.status, one.reason) for one in ended] == [(RunStatus.CANCELLED, "cancelled")]
    assert world.events[-1].at == 3.5
    assert results(world)["a"].text.startswith("Started, then interrupted before it ended (the run was cancelled)")
    assert (await world.agent.run("again")).status is RunStatus.COMPLETED


async def test_a_second_run_at_the_same_time_is_refused(autojump_clock: Any) -> None:
    world = World([[Pause(2), say("x"), end()], DONE])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        with pytest.raises(UsageError, match="run s-r1 is still under way; wait for its end or cancel it first"):
            await world.agent.run("me too")
    assert len(world.of(RunBegan)) == 1
    assert (await world.agent.run("now")).status is RunStatus.COMPLETED
    assert world.events[-1].run_id == "s-r2"


async def test_a_run_can_be_given_a_whole_message(autojump_clock: Any) -> None:
    world = World([DONE])
    user = User((Text("look"), Text("here")))
    await world.agent.run(user)
    assert world.of(RunBegan)[0].prompt == user


# --- questions ---------------------------------------------------------------------------------------------------


async def test_br_018_cancelling_withdraws_the_question(autojump_clock: Any) -> None:
    world = World([[call("a", "asks", 1), TOOL_USE], [say("hello"), end()]])
    ended = await stopped_after(world, 1, lambda: world.agent.cancel("esc"))
    asked = world.of(ApprovalAsked)[0]
    assert world.of(ApprovalClosed) == [ApprovalClosed(asked.approval_id, "a", "asks", "abandoned", "the run")]  # type: ignore[arg-type]
    assert (ended.status, results(world)["a"].began) == (RunStatus.CANCELLED, False)
    assert trace(world, "a") == ["pre"]
    assert (await world.agent.run("hello")).text == "hello"


async def test_br_058_an_old_answer_never_lands_on_a_new_question(autojump_clock: Any) -> None:
    """BR-007 too: a run that is given up leaves a dead question behind."""
    first = [call("a", "asks", 1), TOOL_USE]
    world = World([first, [call("b", "asks", 1, takes=1), TOOL_USE], DONE])
    await stopped_after(world, 1, lambda: world.agent.cancel("new prompt"))
    old = world.of(ApprovalAsked)[0].approval_id
    yes = Answer(allowed=True, by="an old page")
    assert world.agent.answer("s-r1", old, yes) is Receipt.STALE_RUN
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "again")
        await trio.sleep(1)
        new = world.of(ApprovalAsked)[1].approval_id
        tries = [
            ("s-r1", old),
            ("s-r2", old),
            ("s-r1", new),
            ("", ""),
            ("s-r2", ""),
            ("s-r2", "*"),
            ("s-r2", new + " "),
        ]
        receipts = [world.agent.answer(run, approval, yes) for run, approval in tries]
        await trio.sleep(1)
        assert "begin b" not in world.log
        assert world.agent.answer("s-r2", new, yes) is Receipt.ACCEPTED
    assert receipts == [
        Receipt.STALE_RUN,
        Receipt.UNKNOWN,
        Receipt.STALE_RUN,
        Receipt.STALE_RUN,
        Receipt.UNKNOWN,
        Receipt.UNKNOWN,
        Receipt.UNKNOWN,
    ]
    assert results(world)["b"].outcome is Outcome.OK


async def test_br_060_the_first_of_many_answers_counts_and_the_call_runs_once(autojump_clock: Any) -> None:
    world = World([[call("a", "asks", 1), TOOL_USE], DONE])
    receipts: list[Receipt] = []

    def click(stamped: Stamped, *, allowed: bool = True) -> None:
        assert isinstance(stamped.event, ApprovalAsked)
        answer = Answer(allowed=allowed, by="you")
        receipts.append(world.agent.answer(stamped.run_id, stamped.event.approval_id, answer))

    def on(stamped: Stamped) -> None:
        if isinstance(stamped.event, ApprovalAsked):
            for _ in range(10):
                trio.lowlevel.current_trio_token().run_sync_soon(click, stamped)
            trio.lowlevel.current_trio_token().run_sync_soon(lambda: click(stamped, allowed=False))
        elif isinstance(stamped.event, CallSettled):
            asked = next(one for one in world.events if isinstance(one.event, ApprovalAsked))
            trio.lowlevel.current_trio_token().run_sync_soon(click, asked)

    world.bus.subscribe(on)
    await world.agent.run("go")
    assert receipts == [Receipt.ACCEPTED, *[Receipt.ALREADY] * 11]
    assert world.log.count("begin a") == 1


async def test_an_answer_from_within_an_event_works_and_is_told_in_order(autojump_clock: Any) -> None:
    """A face that answers in its sink: everybody sees the question before its end."""
    world = World([[call("a", "asks", 1), TOOL_USE], DONE])
    world.bus.unsubscribe(world._note)

    def on(stamped: Stamped) -> None:
        if isinstance(stamped.event, ApprovalAsked):
            world.agent.answer(stamped.run_id, stamped.event.approval_id, Answer(allowed=True, by="a policy"))

    world.bus.subscribe(on)
    world.bus.subscribe(world._note)
    await world.agent.run("go")
    kinds = [type(stamped.event) for stamped in world.events]
    assert kinds.index(ApprovalAsked) < kinds.index(ApprovalClosed)
    assert [stamped.seq for stamped in world.events] == list(range(1, len(kinds) + 1))
    assert results(world)["a"].outcome is Outcome.OK


# --- one call only -----------------------------------------------------------------------------------------------


async def test_stopping_one_call_leaves_the_others_and_the_run_alone(autojump_clock: Any) -> None:
    world = World(
        [
            [
                call("a", "work", 1, takes=9, cleanup=1, prints="so far", writes=["x"]),
                call("b", "work", 2, takes=3),
                call("c", "work", 3, takes=1, writes=["x"]),
                call("d", "asks", 4),
                TOOL_USE,
            ],
            DONE,
        ]
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        active = world.agent.active
        assert active is not None
        assert active.stop_call("a")  # type: ignore[arg-type]
        assert active.stop_call("d")  # type: ignore[arg-type]
        assert active.stop_call("nobody") is False  # type: ignore[arg-type]
    got = results(world)
    assert got["a"].text.startswith("Started, then interrupted before it ended (only this call was stopped).")
    assert got["a"].text.endswith("Output so far:\nso far")
    assert got["d"].text == "Cancelled before it started (only this call was stopped). Nothing was executed."
    assert {name: result.outcome for name, result in got.items()} == {
        "a": Outcome.CANCELLED,
        "b": Outcome.OK,
        "c": Outcome.OK,
        "d": Outcome.CANCELLED,
    }
    began = {stamped.event.call_id: stamped.at for stamped in world.events if _is_running(stamped)}
    assert began == {"a": 0, "b": 0, "c": 2}
    assert world.of(RunEnded)[0].status is RunStatus.COMPLETED


def _is_running(stamped: Stamped) -> bool:
    return isinstance(stamped.event, CallMoved) and stamped.event.phase is Phase.RUNNING


async def test_a_call_that_is_over_cannot_be_stopped(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1), Pause(2), TOOL_USE], DONE])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        active = world.agent.active
        assert active is not None
        assert active.stop_call("a") is False  # type: ignore[arg-type]


# --- limits ------------------------------------------------------------------------------------------------------

WORKS = [[call(f"c{n}", "work", 1), TOOL_USE] for n in range(9)]


@pytest.mark.parametrize(
    ("limits", "reason", "requests", "text"),
    [
        (Limits(max_turns=2), "max_turns", 2, "the limit of 2 turns is reached (2 used)"),
        (Limits(max_turns=0), "max_turns", 0, "the limit of 0 turns is reached (0 used)"),
        (Limits(max_output_tokens=12), "max_output_tokens", 3, "the limit of 12 output tokens is reached (15 used)"),
        (Limits(max_budget_usd=0.5), "max_budget_usd", 2, "the limit of 0.5 US dollars is reached (0.5 used)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_limit_ends_the_run_in_its_own_words(
    limits: Limits, reason: str, requests: int, text: str, autojump_clock: Any
) -> None:
    world = World(WORKS, limits=limits)
    world.agent.options = attrs.evolve(world.agent.options, cost=lambda usage: 0.25)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, ended.turns) == (RunStatus.LIMIT, reason, requests)
    assert len(world.model.requests) == requests
    assert Notice(Level.WARNING, text) in world.of(Notice)
    assert ended.cost_usd == (0.25 * requests or None)


async def test_a_response_may_have_only_the_tokens_that_are_left(autojump_clock: Any) -> None:
    world = World(WORKS, limits=Limits(max_output_tokens=12))
    await world.agent.run("go")
    assert [request.max_output_tokens for request in world.model.requests] == [12, 7, 2]


async def test_a_run_at_its_limit_is_not_nudged_any_more(autojump_clock: Any) -> None:
    """The last of the tokens cut the answer: the history ends with the answer, not with the runtime's words."""
    world = World([[say("half"), end(StopReason.OUTPUT_LIMIT)]], limits=Limits(max_output_tokens=5))
    ended = await world.agent.run("go")
    assert (ended.reason, ended.text) == ("max_output_tokens", "half")
    assert len(world.talk.history.items) == 2


async def test_time_includes_waiting_for_a_provider_that_is_busy(autojump_clock: Any) -> None:
    """Retries count: a limit of wall time is one of wall time."""
    world = World([[Break(FailureKind.RATE_LIMIT)]] * 99, limits=Limits(max_seconds=2.5), retries=99)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason, world.events[-1].at) == (RunStatus.LIMIT, "max_seconds", 2.5 + 0.5)


@pytest.mark.parametrize("seconds", [5.0, 0.0])
async def test_time_includes_waiting_for_people_and_skips_what_had_not_begun(
    seconds: float, autojump_clock: Any
) -> None:
    calls = [call("a", "asks", 1, writes=["x"]), call("b", "work", 2, takes=60), call("c", "work", 3, writes=["x"])]
    world = World([[*calls, TOOL_USE], DONE], limits=Limits(max_seconds=seconds))
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.LIMIT, "max_seconds")
    assert world.events[-1].at == seconds + 0.5
    assert Notice(Level.WARNING, f"the limit of {seconds:g} s is reached") in world.of(Notice)
    if seconds:
        assert {name: result.outcome for name, result in results(world).items()} == {
            "a": Outcome.SKIPPED,
            "b": Outcome.CANCELLED,
            "c": Outcome.SKIPPED,
        }
        assert results(world)["a"].text == (
            "Skipped: the run ended before this call could start (the time limit of the run). Nothing was executed."
        )
        assert [closed.decision for closed in world.of(ApprovalClosed)] == ["abandoned"]


# --- failures of ours --------------------------------------------------------------------------------------------


class FailingModel:
    """Raises what it is told to when it is asked."""

    issuer = "fake"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @asynccontextmanager
    async def stream(self, request: Any) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        raise self._error
        yield


async def test_a_bug_is_one_error_and_the_run_still_ends_well(autojump_clock: Any) -> None:
    world = World(services={"model": FailingModel(ZeroDivisionError("one by zero"))})
    with pytest.raises(RunBroken, match="the run was ended by a bug: ZeroDivisionError: one by zero"):
        await world.agent.run("go")
    assert [(one.status, one.reason) for one in world.of(RunEnded)] == [(RunStatus.FAILED, "internal_error")]
    assert world.log[-2:] == ["sweep ends", "run ended"]
    assert world.agent.active is None


async def test_an_error_of_ours_keeps_its_class(autojump_clock: Any) -> None:
    world = World(services={"model": FailingModel(CredentialsError("no key"))})
    with pytest.raises(CredentialsError, match="no key"):
        await world.agent.run("go")
    assert len(world.of(RunEnded)) == 1


async def test_d3_a_request_that_is_not_on_the_tape_ends_the_run(autojump_clock: Any) -> None:
    world = World(services={"model": FailingModel(ReplayMismatch("first difference: messages[2]"))})
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "replay_mismatch")
    assert Notice(Level.WARNING, "first difference: messages[2]") in world.of(Notice)


async def test_a_sweep_that_fails_does_not_hide_the_end(autojump_clock: Any) -> None:
    class Broken(Quiet):
        async def sweep(self) -> None:
            raise OSError("no /proc")

    world = World([DONE], services={"processes": Broken([])})
    with pytest.raises(OSError, match="no /proc"):
        await world.agent.run("go")
    assert len(world.of(RunEnded)) == 1


class Journal:
    """A journal whose disk is full from the n-th event on; like the real one it says so once."""

    def __init__(self, room: int) -> None:
        self.kept: list[RunEvent] = []
        self.said = False
        self._room = room

    def append(self, stamped: Stamped) -> None:
        if len(self.kept) < self._room:
            self.kept.append(stamped.event)
        elif not self.said:
            self.said = True
            raise SessionError("disk full")


@pytest.mark.parametrize("room", range(12))
async def test_a_journal_that_cannot_be_written_stops_the_run(room: int, autojump_clock: Any) -> None:
    """Wherever it fails: everything stops, the end says why, and no run goes on without a record."""
    world = World([[say("x"), call("a", "work", 1, takes=9, cleanup=1), TOOL_USE], DONE])
    world.bus._sinks.insert(0, Journal(room).append)
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "session_error")
    assert Notice(Level.WARNING, "the session cannot be written: disk full") in world.of(Notice)
    assert world.alive == set()
    assert len(world.model.requests) <= 1
    with pytest.raises(SessionError, match="no run can start: disk full"):
        await world.agent.run("again")


async def test_a_journal_that_fails_at_the_very_end_is_told_all_the_same(autojump_clock: Any) -> None:
    world = World([DONE])
    world.bus.subscribe(Journal(6).append)  # TurnCommitted is the seventh event
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "session_error")


async def test_an_agent_at_rest_takes_a_failing_journal_calmly() -> None:
    world = World()
    world.bus.subscribe(Journal(0).append)
    world.bus.emitter("s-r0")(TextDelta(0, "x"))  # type: ignore[arg-type]
    assert str(world.bus.failure) == "disk full"
    assert world.of(TurnBegan) == []


async def test_what_a_limit_cost_is_counted_from_the_deadline(autojump_clock: Any) -> None:
    """Nobody asked for this stop; `ms` still is the time from the moment it was due until everything was quiet."""
    replies = [[call("a", "work", 1, takes=9, cleanup=2), TOOL_USE], DONE]
    world = World(replies, limits=Limits(max_seconds=3))
    ended = await world.agent.run("go")
    assert (ended.reason, ended.reaped) == ("max_seconds", Reaped(tasks=1, ms=2500))  # clean-up 2 s, sweep 0.5 s


async def test_live_output_is_decoded_as_one_stream(autojump_clock: Any) -> None:
    """A character that lies across two chunks is shown once, whole."""
    world = World([[call("a", "work", 1, prints="\u00e9!"), TOOL_USE], DONE])
    tool = world.tools[0]
    whole = tool.run

    async def in_halves(permit: Any, ctx: Any) -> Any:
        def output(data: bytes) -> None:
            for byte in data:
                ctx.output(bytes([byte]))

        return await whole(permit, attrs.evolve(ctx, output=output))

    tool.run = in_halves  # type: ignore[method-assign]
    await world.agent.run("go")
    assert [event.text for event in world.of(CallOutput)] == ["\u00e9", "!"]


async def test_a_face_that_fails_comes_in_between_no_call_and_its_record(autojump_clock: Any) -> None:
    """It raised out of the closing of the ledger, and two calls that had begun were in no history."""
    world = World([[call("a", "work", 1, takes=50.0), call("b", "work", 2, takes=50.0), TOOL_USE], DONE])
    running: list[str] = []

    def face(stamped: Stamped) -> None:
        if isinstance(stamped.event, CallMoved) and stamped.event.phase is Phase.RUNNING:
            running.append(stamped.event.call_id)
            if len(running) == 2:
                trio.lowlevel.current_trio_token().run_sync_soon(world.agent.cancel, "test")
        if isinstance(stamped.event, CallSettled):
            raise ValueError("the face is broken")

    world.bus.subscribe(face)
    with pytest.raises(RunBroken, match="ValueError: the face is broken"):
        await world.agent.run("go")
    exchange = next(world.talk.history.exchanges)
    assert [(result.outcome, result.began) for result in exchange.results] == [(Outcome.CANCELLED, True)] * 2
    world.bus.unsubscribe(face)
    assert (await world.agent.run("again")).status is RunStatus.COMPLETED
