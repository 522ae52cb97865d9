"""Reading prompts from a terminal that is in its line mode: the terminal edits the line, Enter hands it over."""

from __future__ import annotations

import copy
import enum
import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

import trio

from novacode.cli.outlet import Outlet

__all__ = ["Key", "LineReader", "Reader", "kept_modes"]

_QUIET = 0.05
"""Seconds of silence that end a paste. Terminals hand one over in pieces that come faster than that."""

_LONGEST = 4095
"""Bytes of a line in line mode; Linux throws the rest of a longer one away and says nothing."""


class Key(enum.Enum):
    """What came in the place of a prompt."""

    INTERRUPT = "Ctrl-C, where the terminal hands it over as a key"
    END = "Ctrl-D"
    GONE = "the terminal has hung up"


class Reader(Protocol):
    """Where prompts come from."""

    async def read(self) -> str | Key:
        """Ask for a prompt and return it. Cancelling takes the question back; nothing typed so far is kept."""
        ...


class LineReader:
    """Reads from the terminal `fd` and asks on `outlet`.

    Lines that come at once, as a paste does, are one prompt; what a paste has begun and not ended with a newline is
    waited for. A backslash at the end of a line goes on with the next.
    """

    def __init__(self, fd: int, outlet: Outlet) -> None:
        self._fd = fd
        self._outlet = outlet

    async def read(self) -> str | Key:
        """Return the next prompt; see `Reader`."""
        try:
            return await self._read()
        except trio.Cancelled:
            if _is_ours(self._fd):
                with suppress(termios.error):
                    termios.tcflush(self._fd, termios.TCIFLUSH)
            raise

    async def _read(self) -> str | Key:
        await self._say("> ")
        text = ""
        while True:
            data = await self._burst()
            if data is None:
                return Key.GONE
            if not data:
                await self._say("\n")
                return text or Key.END
            if any(len(line) >= _LONGEST for line in data.splitlines()):
                await self._say(
                    f"A line of {_LONGEST} bytes or more is cut by the terminal, so nothing was sent. Put it in a file"
                    " and name that, or install NovaCode with its `tui` extra.\n> "
                )
                text = ""
                continue
            text += data.decode("utf-8", "replace")
            line = text.removesuffix("\n")
            if line == text:
                continue
            if (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return line
            text = f"{line[:-1]}\n"
            await self._say(". ")

    async def _burst(self) -> bytes | None:
        """Return what is there to read, once something is, and what follows at once; empty at the end of input.

        A checkpoint; takes nothing when cancelled before the first line. `None` where the terminal is gone.
        """
        await trio.lowlevel.wait_readable(self._fd)
        data = _some(self._fd)
        if not data:
            return data
        lines = 1
        while True:
            with trio.move_on_after(_QUIET) as quiet:
                await trio.lowlevel.wait_readable(self._fd)
            if quiet.cancelled_caught:
                break
            more = _some(self._fd)
            if not more:
                return data
            data += more
            lines += 1
        return data + self._unfinished() if lines > 1 else data

    def _unfinished(self) -> bytes:
        """Return the beginning of a line that the terminal still holds; only leaving line mode shows it."""
        try:
            modes = termios.tcgetattr(self._fd)
            loose = copy.deepcopy(modes)
            loose[3] &= ~termios.ICANON
            loose[6][termios.VMIN] = loose[6][termios.VTIME] = 0
            termios.tcsetattr(self._fd, termios.TCSANOW, loose)
            try:
                return _some(self._fd) or b""
            finally:
                termios.tcsetattr(self._fd, termios.TCSANOW, modes)
        except termios.error:  # hung up; the next read says so
            return b""

    async def _say(self, text: str) -> None:
        self._outlet.write(text)
        await self._outlet.drain()


@contextmanager
def kept_modes(fd: int) -> Iterator[None]:
    """Leave the terminal `fd` in the modes it was in, however the body ends."""
    modes = termios.tcgetattr(fd)
    try:
        yield
    finally:
        if _is_ours(fd):
            with suppress(termios.error):  # it has hung up
                termios.tcsetattr(fd, termios.TCSANOW, modes)


def _is_ours(fd: int) -> bool:
    """Whether we are in the foreground: a program in the background that sets modes is stopped until it is not."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


def _some(fd: int) -> bytes | None:
    """Read what is there; empty at the end of input, `None` where the terminal has hung up."""
    try:
        return os.read(fd, 65536)
    except OSError:
        return None
