"""Real processes in tests: commands with a token nobody else has, and a look at what is alive with it."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import trio

from novacode.values.ids import CallId
from novacode.workspace import proctree
from novacode.workspace.base import Command

__all__ = ["Heard", "alive", "end_all", "gone", "present", "shell", "unique"]

_numbers = itertools.count(1)


def unique(base: int = 3600) -> str:
    """Return a number of seconds for `sleep`, about `base`, that no other process on this machine uses."""
    return f"{base}.{os.getpid()}{next(_numbers):04}"


def shell(text: str, cwd: Path = Path("/"), **more: object) -> Command:
    """Return the command `bash -c text`."""
    return Command(("bash", "-c", text), cwd, CallId(f"call_{next(_numbers)}"), **more)  # type: ignore[arg-type]


def alive(token: str) -> list[str]:
    """Return the command lines that hold `token`, of every process on the machine that is not a zombie."""
    lines = [_command_line(proc.pid) for proc in proctree.everybody() if not proc.gone]
    return [line for line in lines if token in line]


def end_all(token: str) -> None:
    """Kill what holds `token`, where the one who would have reaped it was killed on purpose."""
    for proc in proctree.everybody():
        if not proc.gone and token in _command_line(proc.pid):
            os.kill(proc.pid, signal.SIGKILL)


def _command_line(pid: int) -> str:
    """Return the command line of `pid`; looked for again while it is empty because an `exec` is half done.

    Linux shows no arguments between the new image and its stack. A kernel thread has none for ever, and no executable.
    """
    for _ in range(1000):
        if line := proctree.command_line(pid, 400):
            return line
        try:
            os.readlink(f"/proc/{pid}/exe")
        except OSError:
            return ""
    return ""


async def present(token: str, number: int = 1) -> bool:
    """Wait, within reason, until `number` processes with `token` are alive."""
    for _ in range(500):
        if len(alive(token)) >= number:
            return True
        await trio.sleep(0.01)
    return False


async def gone(token: str) -> bool:
    """Wait, within reason, until nothing with `token` is alive."""
    for _ in range(200):
        if not alive(token):
            return True
        await trio.sleep(0.01)
    return False


class Heard:
    """Takes output, and lets a test wait until a piece of text has come."""

    def __init__(self) -> None:
        self.data = b""
        self._awaited: list[tuple[bytes, trio.Event]] = []

    def __call__(self, data: bytes) -> None:
        self.data += data
        for text, event in self._awaited:
            if text in self.data:
                event.set()

    async def text(self, text: bytes) -> None:
        """Wait for `text`."""
        event = trio.Event()
        self._awaited.append((text, event))
        self(b"")
        await event.wait()
