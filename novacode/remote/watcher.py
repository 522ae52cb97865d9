"""One client that watches a session: what is still to be sent to it, bounded, and what to do when it is too slow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs
import trio

__all__ = ["Batch", "Watcher"]

_MOST = 4 << 20
"""Bytes that wait for one client; a megabyte is 5,000 events or so."""


@attrs.frozen
class Batch:
    """A frame for every watcher, encoded once. `last` is the `seq` of its last event, 0 for what is no event.

    `count` is how many events are in it.
    """

    text: str
    last: int = 0
    first: int = 0
    count: int = 0


class Watcher:
    """A queue between the room and one connection. The room puts synchronously, and never waits.

    Where more waits than `most`, the events that wait are dropped, and `missed` counts them: whoever sends has to say
    so, and read what is missing from the journal. What is no event (questions, states, receipts) is kept; where even
    that is too much nobody reads at all, and `broken` is set.
    """

    def __init__(self, client: str, most: int = _MOST) -> None:
        self.client = client
        self.sent = 0
        """The `seq` of the last event that was handed to the connection."""
        self.missed = 0
        self.resync = False
        self.closed = False
        self.broken = False
        self._from = 0
        self._most = most
        self._size = 0
        self._queue: deque[Batch] = deque()
        self._news = trio.Event()

    def begin(self, cut: int) -> None:
        """Take live events from those after `cut` on: the others come from the journal. Drops what waits of them."""
        self._from = cut
        self.missed, self.resync = 0, False
        self._keep(lambda batch: not batch.count or batch.last > cut)

    def put(self, batch: Batch) -> None:
        """Take a frame for this client."""
        if self.closed or (batch.count and batch.last <= self._from):
            return
        if batch.count and (self.missed or self.resync):
            self.missed += batch.count if self.missed else 0  # it comes from the journal, with the rest
            return
        self._queue.append(batch)
        self._size += len(batch.text)
        if self._size > self._most:
            self.missed += sum(one.count for one in self._queue)
            self._keep(lambda one: not one.count)
            self.broken = self._size > self._most
        self._news.set()

    def again(self) -> None:
        """Have everything after what was sent read from the journal: the session went on elsewhere."""
        self.resync = True
        self._keep(lambda one: not one.count)
        self._news.set()

    def close(self) -> None:
        """End: what waits is still sent."""
        self.closed = True
        self._news.set()

    async def wait(self) -> None:
        """Wait until there is something to do."""
        while not (self._queue or self.missed or self.resync or self.closed or self.broken):
            self._news = trio.Event()
            await self._news.wait()

    def take(self) -> Batch | None:
        """Return the next frame; `None` where there is none."""
        if not self._queue:
            return None
        batch = self._queue.popleft()
        self._size -= len(batch.text)
        return batch

    def _keep(self, wanted: Callable[[Batch], bool]) -> None:
        self._queue = deque(batch for batch in self._queue if wanted(batch))
        self._size = sum(len(batch.text) for batch in self._queue)
