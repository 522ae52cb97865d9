"""The files below a folder that are worth looking at: without what git ignores, in one order on every machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from novacode.workspace.ignores import Ignore, ignored, ignores_above, read_spec

__all__ = ["walk"]


def walk(start: Path) -> Iterator[str | None]:
    """Yield the regular files below `start`, as paths relative to it with `/`, folder by folder, by name.

    Between folders `None` is yielded, so that the caller can checkpoint while nothing is found. Hidden files are
    included, `.git` is not. The .gitignore files of the folders, of those above up to the repository, and
    `.git/info/exclude` are followed; where `start` itself is ignored, those above are not: it was asked for. Links
    are not followed. What cannot be listed is left out.
    """
    yield from _below(start, "", ignores_above(start))


def _below(start: Path, folder: str, ignores: Sequence[Ignore]) -> Iterator[str | None]:
    yield None
    try:
        with os.scandir(start / folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == ".gitignore" for entry in entries):
        spec = read_spec(start / folder / ".gitignore")
        ignores = [*ignores, Ignore(spec, "", len(folder))] if spec else ignores
    for entry in entries:
        path = folder + entry.name
        if _is_folder(entry):
            if entry.name != ".git" and not ignored(f"{path}/", ignores):
                yield from _below(start, f"{path}/", ignores)
        elif _is_file(entry) and not ignored(path, ignores):
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
