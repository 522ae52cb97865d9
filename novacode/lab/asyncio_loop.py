"""An asyncio event loop on virtual time that counts its steps: asyncio's own order, and nothing real behind it."""

from __future__ import annotations

import asyncio  # noqa: TID251 - what trio is compared with runs on it
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from typing import Any, cast

__all__ = ["VirtualLoop"]

_MOST_STEPS = 100_000
_HORIZON = 1e6  # seconds of virtual time; longer than anything a scenario may take


class VirtualLoop:
    """Runs callbacks first come first served, as asyncio does, and moves its clock on when there is none.

    A step is one callback: a task that goes on, or a future that tells of its end. `acts` are called before the steps
    they stand for, counted from 1. It has of an event loop what tasks, futures and timeouts ask for, and no files,
    sockets, threads or signals.
    """

    def __init__(self, acts: Mapping[int, Callable[[], object]] | None = None) -> None:
        self.steps = 0
        self.hung = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.complaints: list[str] = []
        self._acts = {} if acts is None else acts
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = itertools.count()
        self._loop = cast("asyncio.AbstractEventLoop", self)

    def play(self, until: Callable[[], bool]) -> None:
        """Take steps until `until` holds or nothing is left to be done; `hung` where it came to no end."""
        asyncio._set_running_loop(self._loop)
        try:
            while not until() and not self.hung and (self._ready or self._wind()):
                self._step()
        finally:
            asyncio._set_running_loop(None)

    @property
    def unfinished(self) -> list[asyncio.Task[Any]]:
        """The tasks that have been made and have not ended."""
        return [task for task in self.tasks if not task.done()]

    def put_away(self) -> None:
        """End what never ends by itself, so that nothing is left for the garbage collector to complain about."""
        for _ in range(3):
            for task in self.unfinished:
                task.cancel()
            self.play(lambda: not self.unfinished)

    def _step(self) -> None:
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        self.steps += 1
        self.hung = self.steps >= _MOST_STEPS
        if self.steps in self._acts:
            self._acts[self.steps]()
        handle._run()

    def _wind(self) -> bool:
        """Move the clock on to what comes next; whether there is anything."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            return False
        self._now = max(self._now, self._timers[0][0])
        self.hung = self._now > _HORIZON
        while self._timers and self._timers[0][0] <= self._now:
            handle = heapq.heappop(self._timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)
        return True

    # What tasks, futures and timeouts ask of a loop.

    def time(self) -> float:
        """Return seconds of virtual time."""
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Put `callback` behind everything that is ready."""
        handle = asyncio.Handle(callback, args, self._loop, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back when `delay` seconds have passed."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at `when`; of several at one time the first that was asked for comes first."""
        handle = asyncio.TimerHandle(when, callback, args, self._loop, context)
        heapq.heappush(self._timers, (when, next(self._count), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self._loop)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        """Make a task, and remember it."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self._loop, name=name, context=context)
        self.tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Remember what asyncio would log: an exception that nobody has asked for."""
        self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        """Return false: asyncio's debug mode is slower and no stricter here."""
        return False

    def is_running(self) -> bool:
        """Return whether it takes steps just now."""
        return asyncio._get_running_loop() is self._loop

    def is_closed(self) -> bool:
        """Return false: there is nothing to close."""
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing: a cancelled timer is left out when its time comes."""
