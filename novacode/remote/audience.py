"""Who watches a session, and what they are told: events gathered into frames, each encoded once for all."""

from __future__ import annotations

from collections import deque

import trio

from novacode.remote import protocol
from novacode.remote.states import batch_of
from novacode.remote.watcher import Batch, Watcher
from novacode.sessions.record import is_kept, json_line
from novacode.values import events
from novacode.values.events import Stamped
from novacode.values.parts import JSON
from novacode.values.serial import dump_stamped

__all__ = ["Audience"]

_SOON = 0.02
"""Seconds in which events are gathered into one frame; a little more for each watcher."""

_MORE = 0.004
_TAIL = 4 << 20
"""Bytes of fragments of the turn under way that are kept for who comes in the middle of it."""


class Audience:
    """The watchers of one session. Synchronous but for `flush_soon`: nobody waits for a watcher."""

    def __init__(self, session: str, last_seq: int) -> None:
        self.last_seq = last_seq
        self.watchers: list[Watcher] = []
        self.tail: deque[tuple[int, bytes]] = deque()
        """The fragments of the turn under way: what no journal holds."""
        self._session = session
        self._tail_size = 0
        self._pending: list[tuple[int, bytes]] = []
        self._some = trio.Event()

    def take(self, stamped: Stamped) -> None:
        """Take an event of the session."""
        self.last_seq = stamped.seq
        kept = is_kept(stamped.event)
        if self.watchers or not kept:
            text = json_line(dump_stamped(stamped))[:-1]
            if not kept:
                self._remember(stamped.seq, text)
            if not self._pending:
                self._some.set()
            self._pending.append((stamped.seq, text))
        if isinstance(stamped.event, events.TurnCommitted | events.RunEnded | events.AttemptDropped):
            self.tail.clear()  # the record of it has the sum of them, or they are void
            self._tail_size = 0

    def tell(self, message: dict[str, JSON]) -> None:
        """Send `message` to all watchers, after the events before it."""
        self.flush()
        if self.watchers:
            self._to_all(Batch(protocol.encode(message)))

    def flush(self) -> None:
        """Hand on the events that were gathered."""
        pending, self._pending = self._pending, []
        if pending and self.watchers:
            self._to_all(batch_of(self._session, pending))

    async def flush_soon(self) -> None:
        """Hand on events a moment after they came, until cancelled."""
        while True:
            await self._some.wait()
            self._some = trio.Event()
            await trio.sleep(_SOON + _MORE * len(self.watchers))
            self.flush()

    def went_on_to(self, seq: int) -> None:
        """Take note that the session went on elsewhere, to the event `seq`: watchers get that from the journal."""
        if seq > self.last_seq:
            self.last_seq = seq
            for watcher in self.watchers:
                watcher.again()

    def _to_all(self, batch: Batch) -> None:
        for watcher in self.watchers:
            watcher.put(batch)

    def _remember(self, seq: int, text: bytes) -> None:
        self.tail.append((seq, text))
        self._tail_size += len(text)
        while self._tail_size > _TAIL:
            self._tail_size -= len(self.tail.popleft()[1])
