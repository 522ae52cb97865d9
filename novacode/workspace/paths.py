"""Paths as they are judged: resolved first, links and `..` included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

__all__ = ["Workspace"]


@attrs.frozen
class Workspace:
    """The folders a run may work in. `root` is where relative paths start; all are resolved when it is made."""

    root: Path
    extra: tuple[Path, ...] = ()

    @classmethod
    def at(cls, root: Path, extra: Sequence[Path] = ()) -> Workspace:
        """Return the workspace at `root`, resolving it and `extra`; they may themselves be reached through links."""
        return cls(root.resolve(), tuple(path.resolve() for path in extra))

    def resolve(self, path: str) -> Path:
        """Return `path` absolute and free of links and `..`, as far as it exists; relative ones start at `root`.

        Does not raise for what does not exist, for link loops or for NUL bytes: those fail when they are opened.
        """
        try:
            return (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError):
            return self.root / path

    def contains(self, path: Path) -> bool:
        """Whether `path`, already resolved, is in one of the workspace's folders."""
        return any(path == folder or folder in path.parents for folder in (self.root, *self.extra))

    def display(self, path: Path) -> str:
        """Return `path` as a person would write it: relative to `root` where it is below it."""
        try:
            return str(path.relative_to(self.root))
        except ValueError:
            return str(path)
