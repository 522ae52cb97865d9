"""The pipe between a command and whoever takes its output."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress

import trio

__all__ = ["Pump", "feed"]

CHUNK = 1 << 18
_ROOM = 1 << 20  # what a pipe may hold at most without privileges


class Pump:
    """Reads stdout and stderr of one command and hands them to `output`, synchronously, in the order they came.

    Where `output` raises, the exception is kept in `failure` and the rest is read and thrown away, so that the
    command is not stuck on a full pipe while it is being stopped.
    """

    def __init__(self, fd: int, output: Callable[[bytes], None]) -> None:
        self.ended = trio.Event()
        self.failure: Exception | None = None
        self._stream = trio.lowlevel.FdStream(fd)
        self._output = output

    async def run(self) -> None:
        """Read until the last holder has closed the pipe, or `output` has raised for the first time. Checkpoints."""
        failed_before = self.failure is not None
        while data := await self._stream.receive_some(CHUNK):
            self._hand_over(data)
            if self.failure is not None and not failed_before:
                break
        self.ended.set()

    def drain(self) -> None:
        """Hand over what the pipe holds at this moment, without waiting. No checkpoint.

        All that an ended process has written is in the pipe, so none of it is lost. Bounded: others may still write.
        """
        for _ in range(_ROOM // CHUNK + 1):
            try:
                data = os.read(self._stream.fileno(), CHUNK)
            except BlockingIOError:
                return
            if not data:
                self.ended.set()
                return
            self._hand_over(data)

    def hold(self) -> None:
        """Keep the pipe open for what was left running, and throw away what it writes; see `drain`.

        Closed, it would kill a server in the background at its next line of log. Widened, it takes 1 MiB before the
        server has to wait for somebody who drains it.
        """
        self._output = _nowhere
        with suppress(OSError, AttributeError):  # macOS has no F_SETPIPE_SZ, and users have a quota
            fcntl.fcntl(self._stream.fileno(), fcntl.F_SETPIPE_SZ, _ROOM)

    def close(self) -> None:
        """Close our end."""
        self._stream.close()

    def _hand_over(self, data: bytes) -> None:
        if self.failure is not None:
            return
        try:
            self._output(data)
        except Exception as exc:  # noqa: BLE001 - raised again when the command has been stopped
            self.failure = exc


async def feed(stdin: trio.abc.SendStream, data: bytes) -> None:
    """Write `data` and close; a command that does not want it is no error."""
    async with stdin:
        with suppress(trio.BrokenResourceError):
            await stdin.send_all(data)


def _nowhere(_: bytes) -> None:
    """Take nothing."""
