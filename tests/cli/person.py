"""A person at a terminal: NovaCode as the leader of a session on a pty of its own, typed to and read from."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from doubles.command_line import Place

__all__ = ["Person", "at_terminal", "modes_left"]

_PATIENCE = 30.0  # a hang guard, and nothing a test asserts

# Only a terminal that is the session's own turns a Ctrl-C into a signal.
_TAKE_TERMINAL = """#!{python}
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


_STEP = re.compile(r"\x08\x1b\[2C")  # how the line editor draws a space
_SEQUENCE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")
_MODES = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
_COLOURS = re.compile(rb"\x1b\[([\d;]*)m")
_NORMALLY_ON = frozenset({b"7", b"25"})  # lines wrap, and the cursor is seen


def modes_left(shown: bytes) -> list[str]:
    """Return which modes a terminal that was shown this is left in and was not before.

    Whatever they are: a hidden cursor, the other screen, pastes in brackets, reports of the mouse; and colours.
    """
    modes: dict[bytes, bool] = {}
    for numbers, switch in _MODES.findall(shown):
        modes |= dict.fromkeys(numbers.split(b";"), switch == b"h")
    left = [f"?{mode.decode()}" for mode, on in modes.items() if on != (mode in _NORMALLY_ON)]
    colours = _COLOURS.findall(shown)
    return [*left, *(["colours"] if colours and colours[-1] not in (b"", b"0") else [])]


@attrs.define
class Person:
    """Types, and sees: `text` is all that was shown so far, without its colours and moves.

    `sees` looks only at what has come since it last found something.
    """

    process: subprocess.Popen[bytes]
    master: int
    before: list[Any]
    text: str = ""
    _raw: bytes = b""
    _looked: int = 0

    def types(self, text: str) -> None:
        os.write(self.master, text.encode())

    def sees(self, words: str) -> str:
        """Wait until `words` are shown, and return what was shown up to them."""
        end = time.monotonic() + _PATIENCE
        while (found := self.text.find(words, self._looked)) < 0:
            assert self._read(end - time.monotonic()), f"{words!r} is not in {self.text[self._looked :]!r}"
        shown, self._looked = self.text[self._looked : found], found + len(words)
        return shown

    def says(self, text: str) -> None:
        """Wait for the prompt and type a line."""
        self.sees("> ")
        self.types(f"{text}\r")

    def leaves(self) -> int:
        """Wait for the end and return the exit code. The terminal has to be as it was."""
        end = time.monotonic() + _PATIENCE
        while self._read(0.05) or self.process.poll() is None:
            assert time.monotonic() < end, f"it did not end: {self.text[-500:]!r}"
        assert "Traceback" not in self.text, self.text
        assert termios.tcgetattr(self.master) == self.before
        assert modes_left(self._raw) == []
        return self.process.wait()

    def watches(self, seconds: float) -> None:
        """Look on for so long, or until it ends."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.process.poll() is None:
            self._read(min(left, 0.05))

    def hangs_up(self) -> int:
        """Close the terminal and return the exit code."""
        os.close(self.master)
        self.master = -1
        return self.process.wait(_PATIENCE)

    def _read(self, seconds: float) -> bool:
        """Take what is shown next; whether anything was."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # nobody has the other side open any more
            return False
        self._raw += data
        self.text = _SEQUENCE.sub("", _STEP.sub(" ", self._raw.decode("utf-8", "replace")))
        return bool(data)


@contextmanager
def at_terminal(place: Place, *arguments: str, **elsewhere: Any) -> Iterator[Person]:
    """Start `novacode` with `arguments` at a terminal that a person looks at; what is in `elsewhere` is not on it."""
    script = place.root / "take-terminal"
    script.write_text(_TAKE_TERMINAL.format(python=sys.executable))
    script.chmod(0o755)
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    ends = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True} | elsewhere
    process = place.start(*arguments, executable=str(script), **ends)
    os.close(slave)
    person = Person(process, master, before)
    try:
        yield person
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if person.master >= 0:
            os.close(person.master)
