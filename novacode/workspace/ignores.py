"""What git ignores in a folder: the .gitignore files in it, above it up to the repository, and `.git/info/exclude`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["Ignore", "ignored", "ignores_above", "read_spec"]

_LARGEST_IGNORE_FILE = 1_000_000


class Ignore(NamedTuple):
    """The patterns of one .gitignore, and the folder they are about, relative to the start; `../` where above it.

    `prefix` is put before a path relative to the start, `cut` characters are taken off it.
    """

    spec: GitIgnoreSpec
    prefix: str
    cut: int

    def verdict(self, path: str) -> bool | None:
        """Whether `path` (a folder's ends with `/`) is ignored; `None` where the patterns say nothing about it."""
        return self.spec.check_file(self.prefix + path[self.cut :]).include


def ignored(path: str, ignores: Sequence[Ignore]) -> bool:
    """Whether `path`, relative to the start (a folder's ends with `/`), is ignored by `ignores`, outermost first."""
    for ignore in reversed(ignores):  # the innermost that says anything decides
        verdict = ignore.verdict(path)
        if verdict is not None:
            return verdict
    return False


def ignores_above(start: Path) -> list[Ignore]:
    """Return the patterns that hold in `start` because of what is above it, outermost first.

    None where `start` itself is ignored: it was asked for.
    """
    repository = next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)
    if repository is None:
        return []
    made = []
    spec = read_spec(repository / ".git" / "info" / "exclude")
    if spec:
        made.append(Ignore(spec, _prefix(start, repository), 0))
    between = [folder for folder in start.parents if folder == repository or repository in folder.parents]
    for folder in reversed(between):
        spec = read_spec(folder / ".gitignore")
        if spec:
            made.append(Ignore(spec, _prefix(start, folder), 0))
    return [] if _start_is_ignored(made) else made


def read_spec(path: Path) -> GitIgnoreSpec | None:
    """Return the patterns of the file `path`, or `None` where it holds none that can be used."""
    # 25 ms to import, and only a tree with ignore files needs it.
    from pathspec import GitIgnoreSpec

    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_IGNORE_FILE:
            return None
        lines = path.read_text("utf-8", "surrogateescape").splitlines()
        return GitIgnoreSpec.from_lines(lines)
    except (OSError, ValueError):  # unreadable, or with a pattern that is none: git leaves it out too
        return None


def _start_is_ignored(ignores: Sequence[Ignore]) -> bool:
    """Whether `start`, or a folder above it, is ignored."""
    for ignore in ignores:
        parts = ignore.prefix.split("/")[:-1]
        if any(ignore.spec.match_file("/".join(parts[: n + 1]) + "/") for n in range(len(parts))):
            return True
    return False


def _prefix(start: Path, folder: Path) -> str:
    relative = start.relative_to(folder).as_posix()
    return "" if relative == "." else f"{relative}/"
