"""The calls of one turn: submitted in order, settled exactly once, closed without a gap.

Everything in here is synchronous, so no cancellation and no other task comes between a decision and its record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import trio

from novacode.engine import texts
from novacode.engine.gate import Gate, Ticket
from novacode.tools.base import Claims
from novacode.values.clip import Clip
from novacode.values.events import CallMoved, CallSettled, Emit, Phase
from novacode.values.ids import CallId
from novacode.values.parts import BrokenCall, ToolCall
from novacode.values.results import Outcome, ToolResult

__all__ = ["NEXT", "Ledger", "Slot", "Stopping"]

NEXT: Mapping[Phase, frozenset[Phase]] = {
    Phase.SUBMITTED: frozenset({Phase.AUTHORISING, Phase.SETTLED}),
    Phase.AUTHORISING: frozenset({Phase.ASKING, Phase.QUEUED, Phase.SETTLED}),
    Phase.ASKING: frozenset({Phase.QUEUED, Phase.SETTLED}),
    Phase.QUEUED: frozenset({Phase.RUNNING, Phase.SETTLED}),
    Phase.RUNNING: frozenset({Phase.SETTLED}),
    Phase.SETTLED: frozenset(),
}
"""Where a call may go from where it is. The diagram in the docs is drawn from this table."""

_PARTIAL = 16_000  # bytes of live output kept for a call that never gets to say what its output was


@attrs.define(eq=False, repr=False)
class Stopping:
    """The scope of a run, and why it was cancelled: the words in the results of what that cuts off."""

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    reason: str | None = None

    @property
    def limit(self) -> bool:
        """Whether the run's own deadline ended it: nobody called `cancel`, and still its scope is cancelled."""
        return self.reason is None and self.scope.cancel_called

    @property
    def why(self) -> str:
        """The reason, for people and for the model."""
        return self.reason or ("the time limit of the run" if self.limit else "the run was cancelled")


class Slot:
    """One call on its way to its one result."""

    def __init__(self, call: ToolCall | BrokenCall, ticket: Ticket, emit: Emit, clock: Callable[[], float]) -> None:
        self.call = call
        self.ticket = ticket
        self.scope = trio.CancelScope()  # cancelling it stops just this call
        self.phase = Phase.SUBMITTED
        self.result: ToolResult | None = None
        self.output = Clip(_PARTIAL)
        self._emit = emit
        self._clock = clock
        self._held: ToolResult | None = None
        self.began = False  # whether the tool's own code was entered
        self._began_at = self._ended_at = 0.0
        emit(CallMoved(call.id, call.name, Phase.SUBMITTED))

    def to(self, phase: Phase, waits_for: tuple[CallId, ...] = ()) -> None:
        """Move along the table `NEXT`; anything else is a bug and raises `RuntimeError`."""
        if phase not in NEXT[self.phase]:
            raise RuntimeError(f"{self.call.name} {self.call.id} cannot go from {self.phase} to {phase}")
        self.phase = phase
        if phase is Phase.RUNNING:
            self.began = True
            self._began_at = self._clock()
        self._emit(CallMoved(self.call.id, self.call.name, phase, waits_for))

    def hold(self, result: ToolResult) -> None:
        """Keep what the tool gave, before anything can come between: it is the result even if the rest is cut off."""
        self._held = result
        self._ended_at = self._clock()

    def settle(self, result: ToolResult) -> bool:
        """Give the call its result; the first one wins, and whether this was it is returned."""
        if self.result is not None:
            return False
        if (result.call_id, result.name) != (self.call.id, self.call.name):
            raise RuntimeError(f"{result.name} {result.call_id} is no result of {self.call.name} {self.call.id}")
        self.result = result
        ran_until = self._clock() if self._held is None else self._ended_at
        seconds = ran_until - self._began_at if self.began else 0.0
        self.phase = Phase.SETTLED
        self._emit(CallSettled(result, seconds))
        return True

    def cut_off(self, why: str, *, limit: bool = False) -> ToolResult:
        """Return the result of a call that is stopped where it is: its real one where it had one already."""
        if self._held is not None:
            return self._held
        if self.began:
            return ToolResult.of(self.call, Outcome.CANCELLED, texts.interrupted(why, self.output.text()), began=True)
        if limit:
            return ToolResult.of(self.call, Outcome.SKIPPED, texts.skipped(why))
        return ToolResult.of(self.call, Outcome.CANCELLED, texts.never_began(why))


class Ledger:
    """All calls of one turn, in the order the model opened them."""

    def __init__(self, emit: Emit, gate: Gate, clock: Callable[[], float], stopping: Stopping) -> None:
        self._emit = emit
        self._gate = gate
        self._clock = clock
        self._stopping = stopping
        self._slots: list[Slot] = []
        self.cut_off = 0  # calls that had no result when the turn was closed

    @property
    def open(self) -> tuple[Slot, ...]:
        """The calls that have no result yet."""
        return tuple(slot for slot in self._slots if slot.result is None)

    def submit(self, call: ToolCall, claims: Claims) -> Slot:
        """Take a call in: its slot and its ticket, at once, in the task that reads the stream."""
        slot = Slot(call, self._gate.take(call.id, claims), self._emit, self._clock)
        self._slots.append(slot)
        return slot

    def refuse(self, call: BrokenCall) -> None:
        """Take a broken call in and settle it: it has an identity and a result, and is never executed."""
        slot = Slot(call, self._gate.take(call.id, Claims()), self._emit, self._clock)
        self._slots.append(slot)
        slot.settle(ToolResult.of(call, Outcome.BROKEN, texts.broken(call)))
        self._gate.release(slot.ticket)

    def stop(self, call_id: CallId) -> bool:
        """Cancel just this call; whether there was one to cancel."""
        for slot in self.open:
            if slot.call.id == call_id:
                slot.scope.cancel()
                return True
        return False

    def close(self) -> tuple[ToolResult, ...]:
        """Settle what is left and return every result, in call order. No checkpoint; safe to call again."""
        for slot in self.open:
            self.cut_off += 1
            slot.settle(slot.cut_off(self._stopping.why, limit=self._stopping.limit))
            self._gate.release(slot.ticket)
        ordered = sorted(self._slots, key=lambda slot: slot.call.index)
        return tuple(slot.result for slot in ordered if slot.result is not None)
