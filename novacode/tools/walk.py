"""The files below a folder that are worth looking at: without what git ignores, in one order on every machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["walk"]

_LARGEST_IGNORE_FILE = 1_000_000


class _Ignore(NamedTuple):
    """The patterns of one .gitignore, and the folder they are about, relative to the start; `../` where above it.

    `prefix` is put before a path relative to the start, `cut` characters are taken off it.
    """

    spec: GitIgnoreSpec
    prefix: str
    cut: int

    def verdict(self, path: str) -> bool | None:
        """Whether `path` (a folder's ends with `/`) is ignored; `None` where the patterns say nothing about it."""
        return self.spec.check_file(self.prefix + path[self.cut :]).include


def walk(start: Path) -> Iterator[str | None]:
    """Yield the regular files below `start`, as paths relative to it with `/`, folder by folder, by name.

    Between folders `None` is yielded, so that the caller can checkpoint while nothing is found. Hidden files are
    included, `.git` is not. The .gitignore files of the folders, of those above up to the repository, and
    `.git/info/exclude` are followed; where `start` itself is ignored, those above are not: it was asked for. Links
    are not followed. What cannot be listed is left out.
    """
    yield from _below(start, "", _above(start))


def _below(start: Path, folder: str, ignores: Sequence[_Ignore]) -> Iterator[str | None]:
    yield None
    try:
        with os.scandir(start / folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == ".gitignore" for entry in entries):
        spec = _spec(start / folder / ".gitignore")
        ignores = [*ignores, _Ignore(spec, "", len(folder))] if spec else ignores
    for entry in entries:
        path = folder + entry.name
        if _is_folder(entry):
            if entry.name != ".git" and not _ignored(f"{path}/", ignores):
                yield from _below(start, f"{path}/", ignores)
        elif _is_file(entry) and not _ignored(path, ignores):
            yield path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _ignored(path: str, ignores: Sequence[_Ignore]) -> bool:
    for ignore in reversed(ignores):  # the innermost that says anything decides
        verdict = ignore.verdict(path)
        if verdict is not None:
            return verdict
    return False


def _above(start: Path) -> list[_Ignore]:
    """Return the patterns that hold in `start` because of what is above it, outermost first."""
    repository = next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)
    if repository is None:
        return []
    made = []
    spec = _spec(repository / ".git" / "info" / "exclude")
    if spec:
        made.append(_Ignore(spec, _prefix(start, repository), 0))
    between = [folder for folder in start.parents if folder == repository or repository in folder.parents]
    for folder in reversed(between):
        spec = _spec(folder / ".gitignore")
        if spec:
            made.append(_Ignore(spec, _prefix(start, folder), 0))
    return [] if _start_is_ignored(made) else made


def _start_is_ignored(ignores: Sequence[_Ignore]) -> bool:
    """Whether `start`, or a folder above it, is ignored."""
    for ignore in ignores:
        parts = ignore.prefix.split("/")[:-1]
        if any(ignore.spec.match_file("/".join(parts[: n + 1]) + "/") for n in range(len(parts))):
            return True
    return False


def _prefix(start: Path, folder: Path) -> str:
    relative = start.relative_to(folder).as_posix()
    return "" if relative == "." else f"{relative}/"


def _spec(path: Path) -> GitIgnoreSpec | None:
    # 25 ms to import, and only a tree with ignore files needs it.
    from pathspec import GitIgnoreSpec

    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_IGNORE_FILE:
            return None
        lines = path.read_text("utf-8", "surrogateescape").splitlines()
        return GitIgnoreSpec.from_lines(lines)
    except (OSError, ValueError):  # unreadable, or with a pattern that is none: git leaves it out too
        return None
