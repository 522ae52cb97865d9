"""Bytes to a terminal or a pipe from inside the event loop, without ever holding it up.

Text is buffered, and one task drains it when the other side takes it. A person who has stopped the output (Ctrl-S), or
a program that does not read, slows the face down and nothing else.
"""

from __future__ import annotations

import os
import stat

import trio

from novacode.cli.escape import for_encoding

__all__ = ["Outlet", "can_ask", "reopened"]

_MOST = 4 * 1024 * 1024  # bytes that wait; beyond it new text is dropped and counted
_CHUNK = 16 * 1024


def can_ask() -> bool:
    """Whether a person can be asked: what we read from and what we write to are both a terminal."""
    return os.isatty(0) and os.isatty(2)


class Outlet:
    """Writes to the file descriptor `fd`, which stays the caller's. Once it is closed elsewhere, text goes nowhere.

    Terminals and pipes are opened anew, so that not blocking is a property of our own opening and not of the one the
    shell and other programs share. Where that is impossible (a socket), writes may block.
    """

    def __init__(self, fd: int, encoding: str = "utf-8") -> None:
        self.encoding = encoding
        self.broken = False
        self._pending = bytearray()
        self._dropped = 0
        self._fd, self._own = reopened(fd)

    def write(self, text: str) -> None:
        """Put `text` behind what waits. Synchronous, never blocks, never raises."""
        if self.broken:
            return
        data = for_encoding(text, self.encoding).encode(self.encoding, "replace")
        if len(self._pending) + len(data) > _MOST:
            self._dropped += len(data)
            return
        if self._dropped:
            self._pending += f"\n[... {self._dropped} bytes left out: the output was not taken ...]\n".encode()
            self._dropped = 0
        self._pending += data

    async def drain(self) -> None:
        """Wait until all that was written is taken, or nobody is there to take it. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._pending and not self.broken:
            if not self._take_some() and not self.broken:
                await trio.lowlevel.wait_writable(self._fd)

    def drain_now(self) -> None:
        """Write what is taken without waiting: for the very end, where no waiting is possible any more."""
        while self._pending and not self.broken and self._take_some():
            pass

    def close(self) -> None:
        """Let go of the descriptor; what still waits is lost. Idempotent."""
        self.broken = True
        self._pending.clear()
        if self._own:
            self._own = False
            os.close(self._fd)

    def _take_some(self) -> bool:
        try:
            taken = os.write(self._fd, self._pending[:_CHUNK])
        except BlockingIOError:
            return False
        except OSError:  # EPIPE, EIO: the reader is gone; a face that cannot show is no reason to stop a run
            self.broken = True
            self._pending.clear()
            return False
        del self._pending[:taken]
        return True


def reopened(fd: int) -> tuple[int, bool]:
    """Return a descriptor for what `fd` is open on, not blocking where that is possible, and whether it is our own."""
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        if os.isatty(fd):
            return os.open(os.ttyname(fd), flags), True
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            return os.open(f"/dev/fd/{fd}", flags), True
    except OSError:
        pass
    return fd, False
