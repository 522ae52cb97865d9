"""From one emitter to many subscribers, without ever waiting for one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs
import trio

from novacode.errors import SessionError
from novacode.values.events import Emit, RunEvent, Stamped
from novacode.values.ids import RunId

__all__ = ["Bus", "Feed", "Lagged", "Sink"]

Sink = Callable[[Stamped], None]


@attrs.frozen
class Lagged:
    """A feed's reader was too slow: this many events were left out before the next one."""

    missed: int


class Bus:
    """Stamps events and hands each to every sink in the order they subscribed; the journal subscribes first.

    A sink is synchronous and quick. Where one does something that emits again (it answers a question, say), that event
    is handed out after the one under way, so every sink sees the same order. `SessionError` out of a sink (the journal
    cannot be written) does not hit the code that emitted: the first is kept in `failure` and told to `on_failure`,
    which stops the run. Any other exception, a bug of a face, is told to `on_bug` in the same way; without one it comes
    out where the event was emitted.
    """

    def __init__(self, clock: Callable[[], float], seq: int = 0) -> None:
        self.seq = seq
        self.failure: SessionError | None = None
        self.on_failure: Callable[[SessionError], None] = lambda _: None
        self.on_bug: Callable[[Exception], None] | None = None
        self._clock = clock
        self._sinks: list[Sink] = []
        self._queue: deque[Stamped] = deque()
        self._busy = False

    def subscribe(self, sink: Sink) -> None:
        """Hand every later event to `sink`, too."""
        self._sinks.append(sink)

    def unsubscribe(self, sink: Sink) -> None:
        """Hand `sink` no more events."""
        self._sinks.remove(sink)

    def fail(self, error: SessionError) -> None:
        """Take note that what happens is on no record any more: no matter when that was found out, the run stops."""
        if self.failure is None:
            self.failure = error
            self.on_failure(error)

    def emitter(self, run_id: RunId) -> Emit:
        """Return the `Emit` of one run."""

        def emit(event: RunEvent) -> None:
            self.seq += 1
            self._queue.append(Stamped(self.seq, run_id, self._clock(), event))
            if self._busy:
                return
            self._busy = True
            try:
                while self._queue:
                    self._hand_out(self._queue.popleft())
            finally:
                self._busy = False

        return emit

    def _hand_out(self, stamped: Stamped) -> None:
        for sink in tuple(self._sinks):
            try:
                sink(stamped)
            except SessionError as error:
                self.fail(error)
            except Exception as bug:
                if self.on_bug is None:
                    raise
                self.on_bug(bug)


class Feed:
    """A bounded queue between the bus and a face that has to wait for something (a terminal, a socket).

    Subscribe its `put`. Where the reader lags by more than `capacity` events the oldest are dropped, and it is told.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._queue: deque[Stamped] = deque()
        self._capacity = capacity
        self._missed = 0
        self._closed = False
        self._news = trio.Event()

    def put(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe."""
        if len(self._queue) >= self._capacity:
            self._queue.popleft()
            self._missed += 1
        self._queue.append(stamped)
        self._news.set()

    def close(self) -> None:
        """End the feed: the reader gets what is queued, then `None`."""
        self._closed = True
        self._news.set()

    async def receive(self) -> Stamped | Lagged | None:
        """Return the next event, or how many were missed before it; `None` after `close`. A checkpoint."""
        while not (self._queue or self._closed):
            self._news = trio.Event()
            await self._news.wait()
        await trio.lowlevel.checkpoint()
        if self._missed:
            missed, self._missed = self._missed, 0
            return Lagged(missed)
        return self._queue.popleft() if self._queue else None
