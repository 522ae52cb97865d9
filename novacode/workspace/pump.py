"""The pipes between a command and whoever takes its output."""

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
    """Reads the pipes of one command and hands each to its taker, synchronously, in the order the data came.

    Where a taker raises, the exception is kept in `failure` and the rest is read and thrown away, so that the command
    is not stuck on a full pipe while it is being stopped.
    """

    def __init__(self, *pipes: tuple[int, Callable[[bytes], None]], closed: Callable[[], None] | None = None) -> None:
        """`closed` is called when the first of `pipes` has come to its end."""
        self.ended = trio.Event()
        self.failure: Exception | None = None
        for fd, _ in pipes:
            # A quarter of the wake-ups for the same output, each of which goes all the way to the faces.
            with suppress(OSError, AttributeError):  # macOS has no F_SETPIPE_SZ, and users have a quota
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _ROOM)
        self._takers = {trio.lowlevel.FdStream(fd): output for fd, output in pipes}
        self._open = set(self._takers)
        self._first, self._closed = next(iter(self._takers), None), closed

    async def run(self) -> None:
        """Read until the last holder has closed each pipe, or a taker has raised for the first time. Checkpoints."""
        failed_before = self.failure is not None
        async with trio.open_nursery() as nursery:
            for stream in tuple(self._open):
                nursery.start_soon(self._read, stream, None if failed_before else nursery.cancel_scope)

    async def _read(self, stream: trio.lowlevel.FdStream, give_up: trio.CancelScope | None) -> None:
        while data := await stream.receive_some(CHUNK):
            self._hand_over(stream, data)
            if self.failure is not None and give_up is not None:
                give_up.cancel()
                return
        self._at_its_end(stream)

    def drain(self) -> None:
        """Hand over what the pipes hold at this moment, without waiting. No checkpoint.

        All that an ended process has written is in them, so none of it is lost. Bounded: others may still write.
        """
        for stream in tuple(self._open):
            self._drain(stream)

    def _drain(self, stream: trio.lowlevel.FdStream) -> None:
        for _ in range(_ROOM // CHUNK + 1):
            try:
                data = os.read(stream.fileno(), CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._at_its_end(stream)
                return
            self._hand_over(stream, data)

    def hold(self) -> None:
        """Keep the pipes open for what was left running, and throw away what it writes; see `drain`.

        Closed, they would kill a server in the background at its next line of log. Wide as they are, each takes 1 MiB
        before the server has to wait for somebody who drains it.
        """
        for stream in self._takers:
            self._takers[stream] = _nowhere

    def close(self) -> None:
        """Close our ends."""
        for stream in self._takers:
            stream.close()

    def _at_its_end(self, stream: trio.lowlevel.FdStream) -> None:
        self._open.discard(stream)
        if stream is self._first and self._closed is not None:
            self._closed()
        if not self._open:
            self.ended.set()

    def _hand_over(self, stream: trio.lowlevel.FdStream, data: bytes) -> None:
        if self.failure is not None:
            return
        try:
            self._takers[stream](data)
        except Exception as exc:  # noqa: BLE001 - raised again when the command has been stopped
            self.failure = exc


async def feed(stdin: trio.abc.SendStream, data: bytes) -> None:
    """Write `data` and close; a command that does not want it is no error."""
    async with stdin:
        with suppress(trio.BrokenResourceError):
            await stdin.send_all(data)


def _nowhere(_: bytes) -> None:
    """Take nothing."""
