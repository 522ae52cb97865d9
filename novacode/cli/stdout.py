"""Standard output: what belongs there, all of it, and never a hang because nobody reads it."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

import trio

from novacode.cli.outlet import reopened

__all__ = ["Stdout"]


class Stdout:
    """Takes lines at once and hands them on as fast as the other side reads; nothing is dropped.

    `on_broken` is called once when the other side has gone. After that everything goes nowhere.
    """

    def __init__(self, fd: int = 1) -> None:
        self.broken = False
        self.on_broken: Callable[[], None] = lambda: None
        self._pending = bytearray()
        self._more = trio.Event()
        self._fd, self._own = reopened(fd)

    def write(self, data: bytes) -> None:
        """Write `data`. Synchronous, never blocks, never raises: what is not taken now is kept for `run`."""
        if self.broken:
            return
        self._pending += data
        if not self._push():
            self._more.set()

    async def run(self) -> None:
        """Hand on what was kept, until cancelled."""
        while True:
            await self._more.wait()
            self._more = trio.Event()
            await self.drain()

    async def watch(self) -> None:
        """Notice when the other side goes, also while there is nothing to write. Returns then; else waits.

        A pipe without a reader is in error, which epoll reports without being asked for anything. Where there is no
        epoll (macOS) and for files, which have no other side, it is noticed at the next write.
        """
        if not hasattr(select, "epoll"):
            await trio.sleep_forever()
        with select.epoll() as poll:
            try:
                poll.register(self._fd, 0)
            except OSError:
                await trio.sleep_forever()
            await trio.lowlevel.wait_readable(poll.fileno())
        self._gone()

    async def drain(self) -> None:
        """Wait until all of it is taken, or nobody is there to take it. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while not self._push():
            await trio.lowlevel.wait_writable(self._fd)

    def hurry(self, seconds: float) -> None:
        """Hand on what is still here, blocking, for so long at most: the program ends right after."""
        until = time.monotonic() + seconds
        while not self._push() and (left := until - time.monotonic()) > 0:
            select.select((), (self._fd,), (), left)

    def close(self) -> None:
        """Let go of the descriptor. Idempotent."""
        if self._own:
            self._own = False
            os.close(self._fd)

    def _push(self) -> bool:
        """Write what the other side takes now; whether nothing is left."""
        while self._pending and not self.broken:
            try:
                taken = os.write(self._fd, self._pending[: 1 << 20])
            except BlockingIOError:
                return False
            except OSError:  # EPIPE, EBADF, ENOSPC: there is no reader, or no room
                self._gone()
            else:
                del self._pending[:taken]
        return True

    def _gone(self) -> None:
        if not self.broken:
            self.broken = True
            self._pending.clear()
            self.on_broken()
