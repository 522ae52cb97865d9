"""What repeated walks over the same folders remember, so that what has not changed is not read again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from novacode.workspace.ignores import Ignore, ignored, read_spec
from novacode.workspace.reading import Mark, is_old, mark_of
from novacode.workspace.states import State

__all__ = ["Block", "Known", "Memory", "Names"]

Names = tuple[tuple[str, ...], tuple[str, ...]]
"""What is in a folder: its files, and its folders."""

Known = tuple[Mark, State, int]
"""A file as it was read; last the bytes of its content that are kept."""


class Block(NamedTuple):
    """The files of a folder as they were, to be taken over as a whole while none of them has changed."""

    names: tuple[str, ...]
    marks: list[Mark]
    states: dict[str, State]
    size: int


class Memory:
    """Files in `known`, folders in `names` and `blocks`, and which folders git ignores."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.known: dict[str, Known] = {}
        self.names: dict[str, tuple[Mark, Names]] = {}
        self.blocks: dict[str, Block] = {}
        self._now = now
        self._specs: dict[str, tuple[Mark, Ignore | None]] = {}
        self._verdicts: dict[str, tuple[tuple[Ignore, ...], bool]] = {}

    def forget(self) -> None:
        """Read everything again next time: what was read before has perhaps not been kept."""
        self.known.clear()
        self.blocks.clear()

    def is_ignored(self, start: str, path: str, ignores: tuple[Ignore, ...]) -> bool:
        """Whether git ignores the folder `path` below `start`."""
        if not ignores:
            return False
        known = self._verdicts.get(path)
        if known is None or known[0] != ignores:
            known = (ignores, ignored(f"{path[len(start) :].lstrip('/')}/", ignores))
            self._verdicts[path] = known
        return known[1]

    def ignore_file(self, start: str, folder: str, status: os.stat_result) -> Ignore | None:
        """Return the patterns of the .gitignore in `folder`, whose status is `status`."""
        mark = mark_of(status)
        known = self._specs.get(folder)
        if known is None or known[0] != mark:
            began = self._now()
            spec = read_spec(Path(folder, ".gitignore"))
            below = folder[len(start) :].lstrip("/")
            known = (mark, Ignore(spec, "", len(below) + 1 if below else 0) if spec else None)
            if is_old(status, began):
                self._specs[folder] = known
        return known[1]
