"""A session as a machine: runs, answers, stops, crashes, compactions and resumes in any order, judged after each.

Hypothesis chooses the steps. The session runs on a virtual clock in a thread of its own; after each step everything
has come to rest before it is looked at: every task waits for an answer, for time, or for nothing at all.
"""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from doubles.fake_model import Pause, call, say
from doubles.records import DONE, TOOL_USE
from doubles.world import World
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from novacode.authority.approvals import Answer, Receipt
from novacode.engine.agent import Agent
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.sessions.fold import Fold
from novacode.sessions.loaded import Loaded
from novacode.sessions.record import Header, encode, is_kept, read_lines
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallBroken,
    CallReady,
    CallSettled,
    Compacted,
    RunEnded,
    Stamped,
)
from novacode.values.ids import IdSource, SessionId
from novacode.values.results import REFUSED, Outcome

SESSION = SessionId("s")
DONE_SO_FAR: Counter[str] = Counter()
"""How often each kind of step was taken, over all examples of a test."""

_calls = st.lists(
    st.tuples(
        st.sampled_from(["asks", "asks", "asks", "work", "denied", "nothing"]),
        st.sampled_from([0, 1, 3]),
        st.sampled_from([0, 2]),
        st.sampled_from([[], ["x"], ["y"]]),
        st.sampled_from(["", "", "tool", "swallow", "cleanup"]),
    ),
    min_size=1,
    max_size=4,
)
_turns = st.lists(st.tuples(_calls, st.sampled_from([0, 0, 1, 2])), min_size=1, max_size=4)


class Process:
    """NovaCode from its start to its end or its death; what it wrote is in `lines`."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self.world = World(somebody=True)
        self.loaded = folded(lines)
        self.alive = True
        world, loaded = self.world, self.loaded
        self.bus = Bus(trio.current_time, loaded.last_seq)
        for stamped in loaded.repair:
            self._write(stamped)
        self.bus.seq = loaded.last_seq + len(loaded.repair)
        self.bus.subscribe(self._write)
        self.bus.subscribe(world._note)
        world.talk = Conversation(loaded.history)
        world.agent = Agent(world.services, world.talk, self.bus, IdSource(SESSION, loaded.runs), world.agent.options)

    def _write(self, stamped: Stamped) -> None:
        if self.alive and is_kept(stamped.event):
            self.lines.append(encode(stamped))


def folded(lines: list[bytes]) -> Loaded:
    fold = Fold("memory")
    for record in read_lines(io.BytesIO(b"".join(lines))):
        fold.feed(record)
    return fold.close()


class Loop:
    """An event loop on a virtual clock, and the way to do something in it and wait until everything rests."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._main,), kwargs={"clock": trio.testing.MockClock()})
        self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            self._ready.set()
            await trio.sleep_forever()

    def do(self, act: Callable[[], Any]) -> Any:
        """Return what `act` returns, once everything that follows from it at this moment has happened."""

        async def step() -> Any:
            result = act()
            await trio.testing.wait_all_tasks_blocked()
            return result

        return trio.from_thread.run(step, trio_token=self._token)

    def wait(self, seconds: float) -> None:
        """Let time pass, a quarter of a second at a time."""

        def jump() -> None:
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, trio.testing.MockClock)
            clock.jump(0.25)

        for _ in range(int(seconds * 4)):
            self.do(jump)

    def close(self) -> None:
        """End it, once every run has ended."""
        self._token.run_sync_soon(self.nursery.cancel_scope.cancel)
        self._thread.join(20)
        assert not self._thread.is_alive()


class Session(RuleBasedStateMachine):
    """The person, the clock and death, against one session."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = Loop()
        self.lines = [encode(Header(SESSION, "/w", 1.0))]
        self.process = self.loop.do(lambda: Process(self.lines))
        self.older: list[Process] = []
        self.closed: list[tuple[str, str]] = []  # run and approval of every question that is not open any more
        self.calls = 0
        self.began: Counter[str] = Counter()
        self.lived = False  # whether anything has happened since the last resume

    def teardown(self) -> None:
        self.loop.do(lambda: self.world.agent.cancel("the test is over"))
        self.loop.wait(3)
        self.loop.close()

    # --- what is so now ---

    @property
    def world(self) -> World:
        return self.process.world

    @property
    def idle(self) -> bool:
        return self.world.agent.active is None

    @property
    def questions(self) -> list[tuple[str, str]]:
        """Run and id of each open question."""
        gone = {event.approval_id for event in self.world.of(ApprovalClosed)}
        asked = [stamped for stamped in self.world.events if isinstance(stamped.event, ApprovalAsked)]
        return [(one.run_id, one.event.approval_id) for one in asked if one.event.approval_id not in gone]

    def open_calls(self) -> list[str]:
        settled = {event.result.call_id for event in self.world.of(CallSettled)}
        return [event.call.id for event in self.world.of(CallReady) if event.call.id not in settled]

    # --- what may happen ---

    @precondition(lambda self: self.idle)
    @rule(turns=_turns)
    def start_a_run(self, turns: list[Any]) -> None:
        """The third check: a new run can always start."""
        self.world.model.replies = [*(self._reply(*turn) for turn in turns), DONE]
        self.loop.do(lambda: self.loop.nursery.start_soon(self.world.agent.run, "go"))
        assert self.world.agent.active is not None or self.world.of(RunEnded)
        self.lived = True
        DONE_SO_FAR["runs"] += 1

    @precondition(lambda self: self.idle and self.lived)
    @rule(pause=st.sampled_from([0, 2]), usable=st.booleans())
    def shorten(self, pause: float, usable: bool) -> None:
        """What was said becomes a summary, or stays as it is; it can be stopped, and die, like any run."""
        summary = [say("What was done."), Pause(pause), DONE[-1]]
        self.world.model.replies = [summary] if usable else [[Pause(pause), DONE[-1]]] * 3
        before = len(self.world.of(Compacted))
        self.loop.do(lambda: self.loop.nursery.start_soon(self.world.agent.compact))
        DONE_SO_FAR["shortened"] += len(self.world.of(Compacted)) - before

    def _reply(self, calls: list[Any], pause: float) -> list[Any]:
        said: list[Any] = [say("working")]
        for index, (name, takes, cleanup, writes, fails) in enumerate(calls, 1):
            self.calls += 1
            arguments = {"takes": takes, "cleanup": cleanup, "writes": writes, "fails": fails}
            said += [call(f"c{self.calls}", name, index, **arguments), Pause(pause)]
        return [*said, TOOL_USE]

    @precondition(lambda self: self.questions)
    @rule(which=st.integers(0, 9))
    def allow(self, which: int) -> None:
        """The most usual of all answers."""
        self.answer(True, which)

    @precondition(lambda self: self.questions)
    @rule(allowed=st.booleans(), which=st.integers(0, 9))
    def answer(self, allowed: bool, which: int) -> None:
        """An answer that names an open question of the active run counts, once."""
        question = self.questions[which % len(self.questions)]
        given = Answer(allowed=allowed, by="the person")
        assert self.loop.do(lambda: self.world.agent.answer(*question, given)) is Receipt.ACCEPTED
        DONE_SO_FAR["approvals"] += 1

    @precondition(lambda self: self.closed)
    @rule(which=st.integers(0, 999))
    def answer_late(self, which: int) -> None:
        """One that names any other changes nothing."""
        question = self.closed[which % len(self.closed)]
        seen = len(self.world.events)
        receipt = self.loop.do(lambda: self.world.agent.answer(*question, Answer(allowed=True, by="an old page")))
        assert receipt is not Receipt.ACCEPTED
        assert len(self.world.events) == seen
        DONE_SO_FAR["late answers"] += 1

    @precondition(lambda self: not self.idle)
    @rule()
    def cancel(self) -> None:
        """Ctrl-C. The run is over at once, or when its clean-up is."""
        requests = len(self.world.model.requests)
        self.loop.do(lambda: self.world.agent.cancel("SIGINT"))
        self.loop.wait(3)
        assert self.idle
        assert len(self.world.model.requests) == requests
        DONE_SO_FAR["cancellations"] += 1

    @precondition(lambda self: self.open_calls())
    @rule(which=st.integers(0, 9))
    def stop_one_call(self, which: int) -> None:
        """Just that call; the run goes on."""
        name = self.open_calls()[which % len(self.open_calls())]
        active = self.world.agent.active
        assert active is not None
        assert self.loop.do(lambda: active.stop_call(name))  # type: ignore[arg-type]
        DONE_SO_FAR["stopped calls"] += 1

    @rule(seconds=st.sampled_from([0.5, 1, 4]))
    def time_passes(self, seconds: float) -> None:
        self.loop.wait(seconds)

    @precondition(lambda self: self.lived)
    @rule(repeated=st.booleans())
    def die_and_resume(self, repeated: bool) -> None:
        """The process is gone in the middle of whatever it did; what it wrote is all that is left."""
        old = self.process
        self._note_closed(open_too=True)
        old.alive = False
        self.loop.do(lambda: old.world.agent.cancel("it is dead"))
        self.loop.wait(4)  # its fakes must not work on beside the new ones
        self.began.update(entry.removeprefix("begin ") for entry in old.world.log if entry.startswith("begin "))
        for _ in range(1 + repeated):  # mending what was mended changes nothing
            self.process = self.loop.do(lambda: Process(self.lines))
        assert not folded(self.lines).repair
        self.lived = False
        DONE_SO_FAR["resumes"] += 1

    # --- the three checks, and that nothing is lost ---

    @invariant()
    def calls_and_results_are_one_to_one(self) -> None:
        self._note_closed()
        submitted = [one.event.call.id for one in self.world.events if isinstance(one.event, CallReady | CallBroken)]
        settled = [event.result.call_id for event in self.world.of(CallSettled)]
        assert len(settled) == len(set(settled))
        assert set(settled) <= set(submitted)
        if self.idle:
            assert sorted(settled) == sorted(submitted)
        for request in self.world.model.requests:
            for exchange in request.history.exchanges:
                assert [one.id for one in exchange.message.calls] == [one.call_id for one in exchange.results]

    @invariant()
    def a_refusal_executed_nothing_and_nothing_ran_twice(self) -> None:
        began = Counter(entry.removeprefix("begin ") for entry in self.world.log if entry.startswith("begin "))
        assert all(number == 1 for number in (began + self.began).values())
        for event in self.world.of(CallSettled):
            result = event.result
            assert result.began == (result.call_id in began)
            assert not (result.outcome in REFUSED and result.call_id in began)

    @invariant()
    def after_a_run_nothing_of_it_is_left(self) -> None:
        if self.idle:
            assert self.world.alive == set()
            assert self.world.model.open == 0
            assert self.questions == []

    @invariant()
    def what_is_on_record_is_what_happened(self) -> None:
        """A resume at this moment would lose nothing that was committed, and would mark what was open as lost."""
        loaded = folded(self.lines)
        history = self.world.talk.history
        assert loaded.history.items[: len(history.items)] == history.items
        more = loaded.history.items[len(history.items) :]
        assert len(more) <= 1
        if self.idle:
            assert not more
        for exchange in more:
            made_up = [result for result in exchange.results if result.outcome in (Outcome.LOST, Outcome.SKIPPED)]  # type: ignore[union-attr]
            began = {entry.removeprefix("begin ") for entry in self.world.log if entry.startswith("begin ")}
            assert all((result.outcome is Outcome.LOST) == (result.call_id in began) for result in made_up)

    def _note_closed(self, *, open_too: bool = False) -> None:
        still = set() if open_too else set(self.questions)
        asked = [stamped for stamped in self.world.events if isinstance(stamped.event, ApprovalAsked)]
        known = set(self.closed)
        for one in asked:
            question = (one.run_id, one.event.approval_id)
            if question not in still and question not in known:
                self.closed.append(question)


def _play(examples: int, steps: int) -> Counter[str]:
    DONE_SO_FAR.clear()
    run_state_machine_as_test(
        Session,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return Counter(DONE_SO_FAR)


@pytest.mark.timeout(120)
def test_the_three_checks_hold_after_every_step() -> None:
    """A few sessions of many steps each; all kinds of steps occur."""
    taken = _play(examples=12, steps=40)
    assert all(taken[kind] for kind in ("runs", "approvals", "late answers", "cancellations", "resumes"))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_thousand_approvals_cancellations_and_resumes() -> None:
    """The same until there were more than a thousand of them together, and some hundreds of each."""
    taken = _play(examples=250, steps=60)
    assert taken["approvals"] + taken["cancellations"] + taken["resumes"] >= 1_000
    assert min(taken["approvals"], taken["cancellations"], taken["resumes"]) >= 200
    assert taken["shortened"] >= 20
