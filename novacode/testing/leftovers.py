"""What a test has left behind: processes, threads, temporary files."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from novacode.workspace import proctree

__all__ = ["Leftovers"]

_LOOKS = 200  # with 10 ms between them: what is ending needs a moment on a busy machine
_OURS = "novacode-"
_POOLS = ("Trio thread", "asyncio_", "ThreadPoolExecutor")
"""How threads are called that wait for more work and end by themselves."""


class Leftovers:
    """Remembers what there is now, and says later what is there besides.

    Processes are the descendants of this one (on Linux; elsewhere none are seen), threads those of this process, files
    those in the temporary folder that are called as NovaCode calls its own.
    """

    def __init__(self) -> None:
        self._processes = {proc.identity for proc in proctree.descendants(os.getpid())}
        self._threads = set(threading.enumerate())
        self._files = set(_files())

    def left(self) -> list[str]:
        """Name what is there that was not there before; waits up to two seconds for what is just ending."""
        found: list[str] = []
        waiting = threading.Event()
        for _ in range(_LOOKS):
            found = self._look()
            if not found:
                break
            waiting.wait(0.01)
        return found

    def _look(self) -> list[str]:
        processes = [
            f"process {proc.pid}: {proctree.command_line(proc.pid) or proc.name.decode(errors='replace')}"
            for proc in proctree.descendants(os.getpid())
            if not proc.gone and proc.identity not in self._processes
        ]
        threads = [
            f"thread {thread.name!r}"
            for thread in threading.enumerate()
            if thread not in self._threads and not thread.name.startswith(_POOLS)
        ]
        files = [f"file {path}" for path in _files() if path not in self._files]
        return processes + threads + files


def _files() -> list[Path]:
    return sorted(path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(_OURS))
