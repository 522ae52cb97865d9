"""Every call is settled once, and closing leaves no gap."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from novacode.engine.gate import Gate
from novacode.engine.ledger import Ledger, Slot, Stopping
from novacode.tools.base import Claims
from novacode.values.events import CallMoved, CallSettled, Phase, RunEvent
from novacode.values.ids import CallId
from novacode.values.parts import BrokenCall, ToolCall
from novacode.values.results import Outcome, ToolResult


class Book:
    """A ledger with a clock that stands still until it is set."""

    def __init__(self) -> None:
        self.told: list[RunEvent] = []
        self.now = 0.0
        self.gate = Gate()
        self.stopping = Stopping()
        self.ledger = Ledger(self.told.append, self.gate, lambda: self.now, self.stopping)

    def submit(self, call_id: str, index: int = 0) -> Slot:
        return self.ledger.submit(ToolCall(CallId(call_id), index, "work", {}), Claims())

    def start(self, slot: Slot) -> None:
        for phase in (Phase.AUTHORISING, Phase.QUEUED, Phase.RUNNING):
            slot.to(phase)

    def seconds(self) -> list[float]:
        return [event.seconds for event in self.told if isinstance(event, CallSettled)]


def ok(call_id: str) -> ToolResult:
    return ToolResult(CallId(call_id), "work", Outcome.OK, began=True, content=())


async def test_closing_settles_what_is_left_and_gives_all_results_in_call_order() -> None:
    book = Book()
    for call_id, index in (("c", 3), ("a", 1)):
        book.submit(call_id, index)
    book.ledger.refuse(BrokenCall(CallId("b"), 2, "work", "{", "torn"))
    done = book.submit("d", 4)
    book.start(done)
    done.settle(ok("d"))
    results = book.ledger.close()
    assert [(result.call_id, result.outcome) for result in results] == [
        ("a", Outcome.CANCELLED),
        ("b", Outcome.BROKEN),
        ("c", Outcome.CANCELLED),
        ("d", Outcome.OK),
    ]
    assert book.ledger.cut_off == 2
    assert book.ledger.open == ()


async def test_closing_again_changes_nothing() -> None:
    book = Book()
    book.submit("a")
    first, told = book.ledger.close(), list(book.told)
    assert book.ledger.close() == first
    assert (book.told, book.ledger.cut_off) == (told, 1)


def test_the_first_result_wins() -> None:
    book = Book()
    slot = book.submit("a")
    assert slot.settle(ToolResult.of(slot.call, Outcome.DENIED, "no"))
    assert not slot.settle(ok("a"))
    assert [event.result.outcome for event in book.told if isinstance(event, CallSettled)] == [Outcome.DENIED]


def test_the_time_is_that_of_the_tool_also_where_the_clock_begins() -> None:
    """Held at time 0 and settled at 5, after its hooks: the tool took no time."""
    book = Book()
    slot = book.submit("a")
    book.start(slot)
    slot.hold(ok("a"))
    book.now = 5.0
    slot.settle(ok("a"))
    assert book.seconds() == [0.0]


async def test_the_time_of_a_call_that_was_cut_off_runs_until_then() -> None:
    book = Book()
    book.now = 2.0
    book.start(book.submit("a"))
    book.submit("b")
    book.now = 5.0
    book.ledger.close()
    assert book.seconds() == [3.0, 0.0]


async def test_why_a_call_was_cut_off(autojump_clock: Any) -> None:
    stopping = Stopping()
    assert (stopping.why, stopping.limit) == ("the run was cancelled", False)
    stopping.scope.deadline = trio.current_time() + 1
    with stopping.scope:
        await trio.sleep(2)
    assert (stopping.why, stopping.limit) == ("the time limit of the run", True)
    stopping.reason = "SIGINT"
    assert (stopping.why, stopping.limit) == ("SIGINT", False)


def test_stopping_a_call_that_is_not_there() -> None:
    book = Book()
    slot = book.submit("a")
    assert not book.ledger.stop(CallId("b"))
    assert book.ledger.stop(CallId("a"))
    assert slot.scope.cancel_called


@pytest.mark.parametrize("phase", [Phase.ASKING, Phase.QUEUED, Phase.RUNNING, Phase.SUBMITTED])
def test_jumps_are_bugs_and_leave_the_call_where_it_is(phase: Phase) -> None:
    book = Book()
    slot = book.submit("a")
    with pytest.raises(RuntimeError, match=f"work a cannot go from submitted to {phase}"):
        slot.to(phase)
    assert slot.phase is Phase.SUBMITTED
    assert [event.phase for event in book.told if isinstance(event, CallMoved)] == [Phase.SUBMITTED]
