"""Answers as a machine: right, wrong, old, missing and repeated ids, at any step of runs that are stopped and begun.

Hypothesis chooses what happens, and how many scheduler steps the loop makes before the next thing does. One seed gives
one order of tasks, so that what is found can be found again.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import outcome
import pytest
import trio
import trio.testing
from doubles.fake_model import call, end, say
from doubles.world import World
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from remote.remote_stage import Sent, opened_room, send

from novacode.app.scheduling import Uniform, scheduled_by
from novacode.authority.approvals import Answer, Receipt
from novacode.authority.modes import Mode
from novacode.engine.agent import Agent
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.lab.faults import planted
from novacode.remote.room import Room
from novacode.values.events import ApprovalAsked, RunBegan, Stamped
from novacode.values.ids import IdSource, SessionId
from novacode.values.request import StopReason

_WORDS = ("allow", "allow", "allow", "allowAlways", "allowSession", "deny", "Allow", "", "yes")
_MADE_UP = 1000
_TAKEN: Counter[str] = Counter()


class Loop:
    """An event loop in a thread, on a virtual clock. It stands still except while something is done in it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._clock = trio.testing.MockClock()
        self._todo: queue.SimpleQueue[tuple[Callable[[], Any], int | None] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[outcome.Outcome[Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with scheduled_by(Uniform(self._seed)):
            trio.run(self._main, clock=self._clock)

    async def _main(self) -> None:
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            # Getting blocks the whole loop: between two acts nothing happens.
            while (todo := self._todo.get()) is not None:
                act, steps = todo
                result = outcome.capture(act)
                for _ in range(steps or 0):
                    await trio.lowlevel.checkpoint()
                if steps is None:
                    await trio.testing.wait_all_tasks_blocked()
                self._done.put(result)
            self._clock.autojump_threshold = 0  # clean-ups take time
            nursery.cancel_scope.cancel()

    def do(self, act: Callable[[], Any], steps: int | None = 0) -> Any:
        """Return what `act` returns after so many steps; `None` until everything rests."""
        self._todo.put((act, steps))
        return self._done.get(timeout=30).unwrap()

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self.do(lambda: self._clock.jump(seconds), None)

    def close(self) -> None:
        """End it, and everything in it."""
        self._todo.put(None)
        self._thread.join(20)
        assert not self._thread.is_alive()


@attrs.define
class Life:
    """A server from its start to its end: an agent that goes on with the session, and its room."""

    world: World
    agent: Agent
    room: Room
    scope: trio.CancelScope
    busy: bool = False


class StaleAnswers(RuleBasedStateMachine):
    """One session; several lives of the server."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = Loop(0)
        self.sent: list[Sent] = []
        self.known: list[tuple[str, str]] = []
        self.asked: dict[str, str] = {}
        self.runs = 0
        self.seq = 0
        self.calls = 0
        self.life = self.loop.do(self._new_life)

    def _new_life(self) -> Life:
        world = World(somebody=True)
        world.permissions.policy = attrs.make_class("P", ["mode"])(Mode.DEFAULT)
        bus = Bus(trio.current_time, self.seq)
        agent = Agent(world.services, Conversation(), bus, IdSource(SessionId("s"), self.runs), world.agent.options)
        bus.subscribe(self._note)
        room = opened_room(agent, bus)
        return Life(world, agent, room, trio.CancelScope())

    def _note(self, stamped: Stamped) -> None:
        self.seq = stamped.seq
        match stamped.event:
            case RunBegan():
                self.runs += 1
            case ApprovalAsked(approval_id=id, call=asked):
                self.known.append((id, stamped.run_id))
                self.asked[asked.id] = id
            case _:
                pass

    @precondition(lambda self: bool(self.known))
    @rule(word=st.sampled_from(_WORDS), steps=st.integers(0, 6))
    def answer_rightly(self, word: str, steps: int) -> None:
        """Answer the last question there was, with its own ids."""
        self.answer(-1, "same", word, 1, steps)

    @precondition(lambda self: not self.life.busy)
    @rule(questions=st.integers(1, 3), steps=st.integers(0, 12))
    def run(self, questions: int, steps: int) -> None:
        """Start a run with so many questions."""
        _TAKEN["run"] += 1
        life = self.life
        calls = []
        for index in range(questions):
            self.calls += 1
            calls.append(call(f"c{self.calls}", "asks", index + 1, takes=1))
        life.world.model.replies = [[*calls, end(StopReason.TOOL_USE)], [say("done"), end()]]
        life.busy, life.scope = True, trio.CancelScope()

        async def drive() -> None:
            with life.scope:
                await life.agent.run("go")
            life.busy = False

        self.loop.do(lambda: self.loop.nursery.start_soon(drive), steps)

    @rule(steps=st.integers(0, 12))
    def step(self, steps: int) -> None:
        """Let the loop go on a little."""
        self.loop.do(lambda: None, steps)

    @rule()
    def pass_time(self) -> None:
        """Let tools and clean-ups come to their end."""
        for _ in range(4):
            self.loop.jump(1)

    @rule(steps=st.integers(0, 8))
    def cancel(self, steps: int) -> None:
        """Stop the run."""
        _TAKEN["cancel"] += 1
        self.loop.do(lambda: self.life.agent.cancel("the test"), steps)

    @rule(steps=st.integers(0, 8), really=st.sampled_from([False, False, False, True]))
    def restart(self, steps: int, really: bool) -> None:
        """Kill the server, now and then, and start another one on the same session."""
        if not really:
            return
        _TAKEN["restart"] += 1
        old = self.life
        self.loop.do(old.scope.cancel, None)
        self.pass_time()
        self.life = self.loop.do(self._new_life, steps)

    @rule(
        id=st.one_of(st.integers(-4, -1), st.integers(0, 3), st.sampled_from([None, _MADE_UP])),
        run=st.one_of(
            st.sampled_from(["same", "same", "active", "", "s-r0"]), st.none(), st.integers(-4, -1), st.just("same")
        ),
        word=st.sampled_from(_WORDS),
        times=st.sampled_from([1, 1, 1, 2, 3]),
        steps=st.integers(0, 6),
    )
    def answer(self, id: int | None, run: int | str | None, word: str, times: int, steps: int) -> None:
        """Answer: a question by its age, or none; for its own run, another one's, or none; once or several times."""
        chosen = self._at(id)
        given: dict[str, Any] = {"response": word}
        if chosen is not None:
            given["id"] = chosen[0]
        elif id == _MADE_UP:
            given["id"] = f"s-r{self.runs}-a99"
        if run == "same" and chosen is not None:
            given["runId"] = chosen[1]
        elif isinstance(run, int) and (other := self._at(run)) is not None:
            given["runId"] = other[1]
        elif run == "active":
            given["runId"] = f"s-r{self.runs}"
        elif isinstance(run, str) and run != "same":
            given["runId"] = run
        sent = self.loop.do(lambda: [send(self.life.room, **given) for _ in range(times)], steps)
        _TAKEN.update(f"{one.reply['type']} {one.reply.get('reason', '')}" for one in sent)
        self.sent += sent

    def _at(self, place: int | None) -> tuple[str, str] | None:
        if place is None or not self.known or not -len(self.known) <= place < len(self.known):
            return None
        return self.known[place]

    @invariant()
    def every_sender_has_a_receipt(self) -> None:
        """And it says that an answer counted exactly where its own question was open; a rule needs one to keep."""
        for sent in self.sent:
            match sent.reply["type"]:
                case "receipt":
                    assert sent.was_open
                    assert sent.reply["decision"] == ("allow" if sent.response.startswith("allow") else "deny")
                case "ignored":
                    assert not sent.was_open
                    assert sent.reply["text"]
                case other:
                    raise AssertionError((other, sent))

    @invariant()
    def nothing_ran_that_was_not_allowed(self) -> None:
        """Each call that ran has an accepted answer with its own id and an allowing word."""
        allowed = {sent.id for sent in self.sent if sent.reply.get("decision") == "allow"}
        ran = self.loop.do(lambda: [*self.life.world.ran])
        assert [id for id in ran if self.asked[id] not in allowed] == []

    @invariant()
    def no_question_counts_twice(self) -> None:
        """At most one answer to each."""
        counted = Counter(sent.id for sent in self.sent if sent.reply["type"] == "receipt")
        assert [id for id, times in counted.items() if times > 1] == []

    def teardown(self) -> None:
        """The next run works, whatever was before: its question is open, and its own answer counts."""
        try:
            self.loop.do(lambda: None, None)  # a run that was just started has to begin before it can be stopped
            self.loop.do(lambda: self.life.agent.cancel("the test"), None)
            self.pass_time()
            assert not self.life.busy
            self.run(1, 0)
            self.loop.do(lambda: None, None)
            id, run_id = self.known[-1]
            last = self.loop.do(lambda: send(self.life.room, id=id, runId=run_id, response="allow"), None)
            assert last.reply["type"] == "receipt", last
            self.pass_time()
            assert f"c{self.calls}" in self.life.world.ran
        finally:
            self.loop.close()


def _run_machine(examples: int, steps: int) -> None:
    _TAKEN.clear()
    run_state_machine_as_test(
        StaleAnswers,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(180)
def test_no_answer_releases_a_call_that_it_was_not_given_for() -> None:
    """A few hundred stories of up to thirty steps; all kinds of things have happened in them."""
    _run_machine(100, 30)
    wanted = {"run", "cancel", "restart", "receipt ", "ignored stale_run", "ignored unknown", "ignored already"}
    assert wanted <= set(_TAKEN), _TAKEN


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_answer_in_many_stories() -> None:
    """The same, longer."""
    _run_machine(1500, 50)
    print(f"\n{dict(_TAKEN)}")


@pytest.mark.timeout(120)
def test_the_machine_finds_answers_that_are_bound_to_nothing() -> None:
    """It is worth something only if it finds a desk that takes any answer for its oldest question."""
    with _unbound(), pytest.raises((AssertionError, ExceptionGroup)):
        _run_machine(200, 30)


@contextmanager
def _unbound() -> Iterator[None]:
    with planted("answers-not-bound"), pytest.MonkeyPatch.context() as patch:
        # The room looks before it asks the desk; here it does not, so that the desk alone decides.
        patch.setattr("novacode.remote.questions.Questions.answer", _straight)
        yield


def _straight(_: Any, agent: Agent, given: Any, by: str) -> dict[str, Any]:
    receipt = agent.answer(given.run_id, given.id, Answer(allowed=True, by=by))
    if receipt is Receipt.ACCEPTED:
        return {"type": "receipt", "decision": "allow", "ref": ""}
    return {"type": "ignored", "reason": receipt.value, "text": "no", "ref": ""}
