"""Which calls may run at the same time.

Tickets are taken in call order. A ticket waits for earlier ones that are not yet released and whose claims conflict
with its own; so there is no cycle, and calls that touch the same file run in call order. The one exception is a call
whose claims a hook has replaced: later calls may have gone ahead of it by the old ones. It waits for them, which wait
for nothing any more.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from pathlib import Path
from typing import assert_never

import attrs
import trio

from novacode.tools.base import Claims
from novacode.values.ids import CallId

__all__ = ["Gate", "Overlap", "Ticket", "conflict"]


class Overlap(enum.StrEnum):
    """Which calls of one run may overlap: those whose claims do not conflict, all, or none."""

    DECLARED = "declared"
    ALL = "all"
    NONE = "none"


@attrs.define(eq=False, repr=False)
class Ticket:
    """A call's place in the queue. `claims` may be replaced (a hook rewrote the arguments); the place is kept."""

    call_id: CallId
    claims: Claims
    passed: bool = False  # it waits for nothing any more
    released: trio.Event = attrs.field(factory=trio.Event)


class Gate:
    """The queue of one run."""

    def __init__(self, overlap: Overlap = Overlap.DECLARED) -> None:
        self._overlap = overlap
        self._waiting: list[Ticket] = []  # in call order; released ones are removed

    def take(self, call_id: CallId, claims: Claims) -> Ticket:
        """Return the next place in the queue. Synchronous: whoever asks first is first, whatever the scheduler does."""
        ticket = Ticket(call_id, claims)
        self._waiting.append(ticket)
        return ticket

    def blockers(self, ticket: Ticket) -> tuple[Ticket, ...]:
        """Return the tickets that `ticket` has to wait for now: earlier ones, and later ones that went ahead."""
        place = self._waiting.index(ticket)
        before = self._waiting[:place] + [later for later in self._waiting[place + 1 :] if later.passed]
        return tuple(other for other in before if self._conflict(other.claims, ticket.claims))

    async def wait(self, ticket: Ticket) -> None:
        """Wait until nothing that comes first conflicts with `ticket`. A checkpoint only where something does."""
        while blocking := self.blockers(ticket):
            await blocking[0].released.wait()
        ticket.passed = True

    def release(self, ticket: Ticket) -> None:
        """Give the place up; harmless when it was given up before."""
        if not ticket.released.is_set():
            self._waiting.remove(ticket)
            ticket.released.set()

    def _conflict(self, one: Claims, other: Claims) -> bool:
        match self._overlap:
            case Overlap.ALL:
                return False
            case Overlap.NONE:
                return True
            case Overlap.DECLARED:
                return conflict(one, other)
            case _:
                assert_never(self._overlap)


def conflict(one: Claims, other: Claims) -> bool:
    """Whether one writes what the other reads or writes: the same path, or a folder and something in it."""
    return _meet(one.writes, other.writes) or _meet(one.writes, other.reads) or _meet(one.reads, other.writes)


def _meet(some: Iterable[Path], others: Iterable[Path]) -> bool:
    others = tuple(others)
    return any(a == b or a in b.parents or b in a.parents for a in some for b in others)
