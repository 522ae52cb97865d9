"""Output as a result can carry it, and the whole of it in a file where that is too little."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from novacode.values.clip import Clip

__all__ = ["Capture"]

MOST = 64 << 20
"""How much of one output is written to disk: two seconds of `yes` are a gigabyte."""


class Capture:
    """Takes bytes without end: keeps head and tail, `limit_bytes` in all, and writes what is longer to a file.

    The file is `name` in `folder`, both made only once more than the limit has come, readable by its owner alone, and
    holds the first `most` bytes; `show` says what its path is called. Feeding is synchronous, buffered, and never
    raises: a disk that is full is told in `text`. Memory stays below about three times the limit.
    """

    def __init__(
        self, limit_bytes: int, folder: Path, name: str, show: Callable[[Path], str] = str, most: int = MOST
    ) -> None:
        self.path: Path | None = None
        self._clip = Clip(limit_bytes)
        self._limit = limit_bytes
        self._folder = folder
        self._name = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "output"
        self._show = show
        self._most = most
        self._early: bytearray | None = bytearray()
        self._file: BinaryIO | None = None
        self._written = 0
        self._problem = ""

    @property
    def shown(self) -> str:
        """What its file is called; empty where there is none."""
        return "" if self.path is None else self._show(self.path)

    @property
    def total(self) -> int:
        """How many bytes have come."""
        return self._clip.total

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self._clip.feed(data)
        if self._early is not None:
            if self._clip.total <= self._limit:
                self._early += data
                return
            data, self._early = bytes(self._early) + data, None
            self._open()
        self._write(data)

    def text(self) -> str:
        """Return what was kept as text; where something is left out it says how much, and where the whole is."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as exc:
                self._give_up(exc)
        return self._clip.text(self._where())

    def close(self) -> None:
        """Close the file, which stays where it is. Feeding more is harmless; the file does not grow any further."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            file.close()
        except OSError as exc:
            self._give_up(exc)

    def _where(self) -> str:
        if self.path is None:
            return f"the whole output could not be kept: {self._problem}" if self._problem else ""
        if self._problem:
            return f"about the first {self._written} of {self.total} bytes are in {self.shown}, then: {self._problem}"
        if self._written < self.total:
            return f"the first {self._written} of {self.total} bytes are in {self.shown}"
        return f"the whole output ({self.total} bytes) is in {self.shown}"

    def _open(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for number in range(1, 1000):
                path = self._folder / (self._name if number == 1 else f"{self._name}-{number}")
                try:
                    # Never an existing file, nor where a link points that somebody has put there.
                    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                except FileExistsError:
                    continue
                self._file, self.path = os.fdopen(fd, "wb", buffering=1 << 18), path
                return
            self._problem = f"{self._folder} holds a thousand files of this name"
        except (OSError, ValueError) as exc:
            self._give_up(exc)

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            self._written += self._file.write(data[: self._most - self._written])
        except OSError as exc:
            self._give_up(exc)
            return
        if self._written >= self._most:
            self.close()

    def _give_up(self, exc: OSError | ValueError) -> None:
        self._problem = (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # closing tries to write what is still buffered, and fails for the same reason
                file.close()
