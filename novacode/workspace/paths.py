"""Paths as they are judged: resolved first, links and `..` included."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import attrs

__all__ = ["SPILL", "Workspace"]

SPILL = "$NOVACODE_SPILL"
"""What the folder for long outputs is called where its path must not be told: it is another one on each machine."""


@attrs.frozen
class Workspace:
    """The folders a run may work in. `root` is where relative paths start; all are resolved when it is made.

    `spill` is the one of `extra` that is called `$NOVACODE_SPILL`; `None` where none is.
    """

    root: Path
    extra: tuple[Path, ...] = ()
    spill: Path | None = None

    @classmethod
    def at(cls, root: Path, extra: Sequence[Path] = (), spill: Path | None = None) -> Workspace:
        """Return the workspace at `root`, resolving all of them; they may themselves be reached through links."""
        return cls(root.resolve(), tuple(path.resolve() for path in extra), None if spill is None else spill.resolve())

    def resolve(self, path: str) -> Path:
        """Return `path` absolute and free of links and `..`, as far as it exists; relative ones start at `root`.

        `~` and `~name` at its start are home folders where there is such a user. Never raises: a loop of links, a
        name with a NUL byte or one that is no text stays as it is written, without its `..`, and fails when it is
        opened.
        """
        if self.spill is not None and (path == SPILL or path.startswith(f"{SPILL}/")):
            path = f"{self.spill}{path.removeprefix(SPILL)}"
        try:
            written = Path(path).expanduser()
        except (RuntimeError, ValueError):  # no such user, or nobody knows where home is
            written = Path(path)
        try:
            return Path(_settled(str(self.root / written)))
        except (OSError, ValueError):
            return Path(os.path.normpath(self.root / written))

    def contains(self, path: Path) -> bool:
        """Whether `path`, already resolved, is in one of the workspace's folders."""
        return any(path == folder or folder in path.parents for folder in (self.root, *self.extra))

    def display(self, path: Path) -> str:
        """Return `path` as a person would write it: relative to `root` where it is below it."""
        if self.spill is not None and path.is_relative_to(self.spill):
            return str(SPILL / path.relative_to(self.spill))
        try:
            return str(path.relative_to(self.root))
        except ValueError:
            return str(path)


def _settled(path: str) -> str:
    """Resolve until nothing changes.

    `realpath` stops at a loop of links and takes the rest as text: of `loop/../out/secret`, with `out` a link to
    another folder, it makes `out/secret`, which looks as if it were inside and opens what is not.
    """
    for _ in range(40):  # as many links as the kernel follows
        resolved = os.path.realpath(path)
        if resolved == path:
            break
        path = resolved
    return path
