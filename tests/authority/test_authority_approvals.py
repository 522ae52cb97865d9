"""The questions of one run: each is closed once, and an answer reaches its own question or none."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing
from doubles.schedule import run_seeded
from hypothesis import given, settings
from hypothesis import strategies as st

from novacode.authority.approvals import NOBODY, Answer, ApprovalDesk, Question, Receipt, Scope
from novacode.values.events import ApprovalAsked, ApprovalClosed, RunEvent
from novacode.values.ids import ApprovalId, CallId, IdSource, RunId, SessionId
from novacode.values.parts import ToolCall

RUN = RunId("s-r1")
YES = Answer(allowed=True, by="you", scope=Scope.SESSION, rules=("work",))
NO = Answer(allowed=False, by="you", words="not that")


def question(call_id: str = "a", **more: str) -> Question:
    return Question(ToolCall(CallId(call_id), 0, "work", {"x": call_id}), "a reason", **more)


def made(somebody: bool = True) -> tuple[ApprovalDesk, list[RunEvent]]:
    told: list[RunEvent] = []
    return ApprovalDesk(RUN, IdSource(SessionId("s")), told.append, somebody=somebody), told


def closed(approval_id: str, call_id: str, decision: str, by: str) -> ApprovalClosed:
    return ApprovalClosed(ApprovalId(approval_id), CallId(call_id), "work", decision, by)


async def ask_all(desk: ApprovalDesk, nursery: trio.Nursery, *call_ids: str) -> dict[str, Answer]:
    """Ask for each call in a task of its own, in this order; the answers come into what is returned."""
    answers: dict[str, Answer] = {}

    async def one(call_id: str) -> None:
        answers[call_id] = await desk.ask(question(call_id))

    for call_id in call_ids:
        nursery.start_soon(one, call_id)
        await trio.testing.wait_all_tasks_blocked()
    return answers


async def test_a_question_is_told_with_all_it_needs_and_answered() -> None:
    desk, told = made()
    asked = ApprovalAsked(ApprovalId("s-r1-a1"), question().call, "a reason", "sum", "det", "rule")
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            assert await desk.ask(question(summary="sum", details="det", rule="rule")) is YES

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert desk.pending == (asked,)
        assert desk.answer("s-r1", "s-r1-a1", YES) is Receipt.ACCEPTED
        assert desk.pending == ()
    assert told == [asked, closed("s-r1-a1", "a", "allow", "you")]


async def test_br_059_each_answer_reaches_its_own_question() -> None:
    desk, told = made()
    async with trio.open_nursery() as nursery:
        answers = await ask_all(desk, nursery, "a", "b")
        assert desk.answer("s-r1", "s-r1-a2", YES) is Receipt.ACCEPTED
        await trio.testing.wait_all_tasks_blocked()
        assert answers == {"b": YES}
        assert desk.answer("s-r1", "s-r1-a1", NO) is Receipt.ACCEPTED
    assert answers == {"b": YES, "a": NO}
    assert told[2:] == [closed("s-r1-a2", "b", "allow", "you"), closed("s-r1-a1", "a", "deny", "you")]


@pytest.mark.parametrize(
    ("run_id", "approval_id", "receipt"),
    [
        ("s-r0", "s-r1-a1", Receipt.STALE_RUN),
        ("s-r2", "s-r2-a1", Receipt.STALE_RUN),
        ("", "", Receipt.STALE_RUN),
        ("S-R1", "s-r1-a1", Receipt.STALE_RUN),
        ("s-r1", "s-r0-a1", Receipt.UNKNOWN),
        ("s-r1", "s-r1-a2", Receipt.UNKNOWN),
        ("s-r1", "", Receipt.UNKNOWN),
        ("s-r1", "*", Receipt.UNKNOWN),
        ("s-r1", "s-r1-a1\n", Receipt.UNKNOWN),
        ("s-r1", "\x00" * 10_000, Receipt.UNKNOWN),
    ],
)
async def test_br_058_anything_else_changes_nothing(run_id: str, approval_id: str, receipt: Receipt) -> None:
    desk, told = made()
    async with trio.open_nursery() as nursery:
        await ask_all(desk, nursery, "a")
        before = (desk.pending, list(told))
        assert desk.answer(run_id, approval_id, YES) is receipt
        assert (desk.pending, told) == before
        nursery.cancel_scope.cancel()


async def test_br_060_the_first_answer_counts() -> None:
    desk, told = made()
    async with trio.open_nursery() as nursery:
        answers = await ask_all(desk, nursery, "a")
        receipts = [desk.answer("s-r1", "s-r1-a1", answer) for answer in (NO, *[YES] * 9, NO)]
    assert receipts == [Receipt.ACCEPTED, *[Receipt.ALREADY] * 10]
    assert answers == {"a": NO}
    assert len([event for event in told if isinstance(event, ApprovalClosed)]) == 1


async def test_cancelling_withdraws_one_question_and_no_other() -> None:
    desk, told = made()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            scope.cancel()
            await desk.ask(question("a"))
        assert told[-1] == closed("s-r1-a1", "a", "abandoned", "the run")
        await ask_all(desk, nursery, "b")
        assert desk.answer("s-r1", "s-r1-a1", YES) is Receipt.ALREADY
        assert [asked.call.id for asked in desk.pending] == ["b"]
        nursery.cancel_scope.cancel()


async def test_closing_withdraws_everything_for_good() -> None:
    desk, told = made()
    async with trio.open_nursery() as nursery:
        answers = await ask_all(desk, nursery, "a", "b")
        desk.close()
    assert [(answer.allowed, answer.words) for answer in answers.values()] == [
        (False, "The question was withdrawn.")
    ] * 2
    assert desk.answer("s-r1", "s-r1-a1", YES) is Receipt.STALE_RUN
    late = await desk.ask(question("c"))
    assert (late.allowed, late.by) == (False, NOBODY)
    assert len(told) == 4


async def test_nobody_is_a_no_at_once_and_without_a_checkpoint() -> None:
    desk, told = made(somebody=False)
    with trio.testing.assert_no_checkpoints():
        answer = await desk.ask(question(would_allow="--allow 'work' would."))
    assert answer == Answer(
        allowed=False, by=NOBODY, words="nobody can be asked in this run, and a reason. --allow 'work' would."
    )
    assert (await desk.ask(question())).words == "nobody can be asked in this run, and a reason."
    assert told == []


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 6))
def test_an_accepted_answer_in_the_moment_of_a_cancel_is_still_the_answer(seed: int, count: int) -> None:
    """Whatever the schedule: what was told as allowed is what the asker got, or it was cancelled later."""

    async def main() -> None:
        desk, told = made()
        got: dict[str, Answer] = {}
        async with trio.open_nursery() as nursery:

            async def one(call_id: str) -> None:
                got[call_id] = await desk.ask(question(call_id))

            for number in range(count):
                nursery.start_soon(one, str(number))
            await trio.testing.wait_all_tasks_blocked()
            for asked in desk.pending[::2]:
                assert desk.answer(RUN, asked.approval_id, YES) is Receipt.ACCEPTED
            nursery.cancel_scope.cancel()
        ends = {event.call_id: event.decision for event in told if isinstance(event, ApprovalClosed)}
        assert len(ends) == count
        assert {call_id for call_id, decision in ends.items() if decision == "allow"} == set(got)

    run_seeded(main, seed)


# One step of a program: ask; answer, cancel or look twice at the n-th question; answer something else; close.
_steps = st.one_of(
    st.just(("ask", 0)),
    st.just(("ask", 0)),
    st.tuples(st.sampled_from(["allow", "deny", "stale", "cancel"]), st.integers(0, 5)),
    st.tuples(st.just("odd"), st.text(max_size=8)),
    st.just(("close", 0)),
)


@attrs.define
class Model:
    """What must be true of a desk: by approval id, who asks, how it was closed, and what the asker must get."""

    desk: ApprovalDesk
    told: list[RunEvent]
    scopes: dict[str, trio.CancelScope] = attrs.field(factory=dict)
    closed: dict[str, str] = attrs.field(factory=dict)
    got: dict[str, Answer] = attrs.field(factory=dict)
    over: bool = False

    async def ask(self) -> None:
        """Ask one question to its end; its id is the next one of the counter."""
        approval_id = f"{RUN}-a{len(self.scopes) + 1}"
        with trio.CancelScope() as scope:
            if not self.over:
                self.scopes[approval_id] = scope
            answer = await self.desk.ask(question(approval_id))
            self.got[approval_id] = answer

    async def step(self, word: str, which: Any, nursery: trio.Nursery) -> None:
        """Do one step, and compare what the desk says with what it must."""
        ids = list(self.scopes)
        target = ids[which % len(ids)] if isinstance(which, int) and ids else ""
        match word:
            case "ask":
                nursery.start_soon(self.ask)
            case "allow" | "deny":
                assert self.desk.answer(RUN, target, YES if word == "allow" else NO) is self._expected(target)
                if target and not self.over:
                    self.closed.setdefault(target, word)
            case "stale":
                assert self.desk.answer("s-r0", target, YES) is Receipt.STALE_RUN
            case "odd" if which not in self.scopes:
                assert self.desk.answer(RUN, which, YES) is self._expected(which)
            case "cancel" if target:
                self.scopes[target].cancel()
                self.closed.setdefault(target, "abandoned")
            case "close":
                self.desk.close()
                self.over = True
                self.closed = dict.fromkeys(ids, "abandoned") | self.closed

    def _expected(self, target: str) -> Receipt:
        if self.over:
            return Receipt.STALE_RUN
        if target not in self.scopes:
            return Receipt.UNKNOWN
        return Receipt.ALREADY if target in self.closed else Receipt.ACCEPTED

    def check(self) -> None:
        """Each question is open, or closed exactly once and as it was decided."""
        ends = [(event.approval_id, event.decision) for event in self.told if isinstance(event, ApprovalClosed)]
        assert len(ends) == len(dict(ends))
        assert dict(ends) == self.closed
        assert {asked.approval_id for asked in self.desk.pending} == set(self.scopes) - set(self.closed)
        for approval_id, decision in self.closed.items():
            if decision != "abandoned":
                assert self.got[approval_id] is (YES if decision == "allow" else NO)
            elif approval_id in self.got:
                assert not self.got[approval_id].allowed


@settings(max_examples=80, deadline=None)
@given(st.lists(_steps, max_size=25), st.integers(0, 2**16))
def test_any_order_of_asking_answering_cancelling_and_closing(program: list[tuple[str, Any]], seed: int) -> None:
    async def main() -> None:
        model = Model(*made())
        async with trio.open_nursery() as nursery:
            for word, which in program:
                await model.step(word, which, nursery)
                await trio.testing.wait_all_tasks_blocked()
                model.check()
            nursery.cancel_scope.cancel()
        assert model.desk.pending == ()

    run_seeded(main, seed)
