"""The state of every file below some folders: walked by ourselves, bounded, and cheap to repeat.

Written for a thread of trio: it asks now and then whether it was cancelled. What has the status it had is not read
again. Not walked are `.git` (so no repository is ever touched), folders that git ignores, and what exceeds the bounds;
all but the first are named.
"""

from __future__ import annotations

import functools
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import attrs
import trio

from novacode.workspace.ignores import Ignore, ignores_above
from novacode.workspace.memory import Block, Known, Memory, Names
from novacode.workspace.reading import FLAGS, is_fine, is_old, mark_of, read_state, why_not
from novacode.workspace.states import ABSENT, Kind, State

__all__ = ["Bounds", "Listing", "Surveyor"]

_BEAT = 128  # entries between two looks whether we were cancelled


@attrs.frozen
class Bounds:
    """How much is looked at: `max_file` and `max_total` in bytes, `max_files` counts folders too."""

    max_file: int = 20_000_000
    max_files: int = 50_000
    max_total: int = 1_000_000_000
    ignored: bool = False


@attrs.frozen
class Listing:
    """What was found. `left_out` says of what is not covered why; a folder stands for all below it.

    A path that is in both is known to be there, and its content is not kept. `size` is the bytes of what is kept.
    """

    states: Mapping[str, State]
    left_out: Mapping[str, str] = attrs.field(factory=dict)
    size: int = 0


class Surveyor:
    """Lists folders, and remembers what it has read. `keep` is given each new content and returns its digest.

    `apart` are folders that are never entered. `now` is the clock of the file system, in nanoseconds since 1970.
    `beat` is called now and then, and may raise to end it.
    """

    def __init__(
        self,
        keep: Callable[[bytes], str],
        bounds: Bounds,
        apart: Iterable[Path] = (),
        now: Callable[[], int] = time.time_ns,
        beat: Callable[[], None] = trio.from_thread.check_cancelled,
    ) -> None:
        self.keep = keep
        self.bounds = bounds
        self.apart = frozenset(str(path) for path in apart)
        self.now = now
        self.beat = beat
        self.memory = Memory(now)

    def survey(self, roots: Sequence[Path], single: Iterable[str] = ()) -> Listing:
        """Return what is in `roots`, without the roots themselves, and at each path of `single`.

        Raises what `keep` and `beat` raise: by default `trio.Cancelled`, where who waits for this thread was cancelled.
        """
        walk = _Walk(self)
        for path in single:
            walk.look(path)
        walk.run(roots)
        return Listing(walk.states, walk.left_out, walk.size)

    def look(self, path: str) -> State:
        """Return the state of `path` alone."""
        walk = _Walk(self)
        walk.look(path)
        return walk.states.get(path, ABSENT)


class _Turn(NamedTuple):
    """A folder to go into: where the walk began, the folder, and the patterns that hold in it."""

    start: str
    folder: str
    ignores: tuple[Ignore, ...]


class _Walk:
    """One survey under way."""

    def __init__(self, surveyor: Surveyor) -> None:
        self._own = surveyor
        self._bounds = surveyor.bounds
        self._memory = surveyor.memory
        self.states: dict[str, State] = {}
        self.left_out: dict[str, str] = {}
        self.size = 0
        self._count = 0
        self._beats = 0

    def run(self, roots: Sequence[Path]) -> None:
        """Walk breadth first: where the bounds do not allow for everything, what is near the root comes first."""
        queue: deque[_Turn] = deque()
        for root in _outermost(roots):
            ignores = () if self._bounds.ignored else tuple(ignores_above(root))
            queue.append(_Turn(str(root), str(root), ignores))
        while queue:
            turn = queue.popleft()
            try:
                fd = os.open(turn.folder, FLAGS | os.O_DIRECTORY)
            except OSError as error:
                self.left_out[turn.folder] = why_not(error)
                continue
            try:
                queue.extend(self._folder(fd, turn))
            finally:
                os.close(fd)

    def look(self, path: str) -> None:
        """Note the state of one path."""
        self._beat(1)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError) as error:
            self.left_out[path] = why_not(error)
            return
        if stat.S_ISDIR(status.st_mode):
            self.states[path] = _folder_state(stat.S_IMODE(status.st_mode))
        else:
            self._note(path, status)

    def _folder(self, fd: int, turn: _Turn) -> Sequence[_Turn]:
        """Note the folder that `fd` is, and what is in it; return the folders to go on with."""
        start, folder, ignores = turn
        try:
            status = os.fstat(fd)
            names = self._names(fd, folder, status)
        except OSError as error:
            self.left_out[folder] = why_not(error)
            return ()
        if folder != start:
            self.states[folder] = _folder_state(stat.S_IMODE(status.st_mode))
        if names is None:
            self.left_out[folder] = f"it would be more than {self._bounds.max_files} files"
            return ()
        files, folders = names
        if ".gitignore" in files and not self._bounds.ignored:
            own = self._memory.ignore_file(start, folder, os.stat(".gitignore", dir_fd=fd, follow_symlinks=False))
            ignores = (*ignores, own) if own else ignores
        prefix = folder.rstrip("/") + "/"
        self._files(fd, prefix, files)
        return [
            _Turn(start, path, ignores) for name in folders if self._goes_into(start, path := prefix + name, ignores)
        ]

    def _names(self, fd: int, folder: str, status: os.stat_result) -> Names | None:
        """Return the names in a folder, in order: of its files, and of its folders. `None` where they are too many.

        They are what they were where the folder's own status is.
        """
        room = self._bounds.max_files - self._count
        known = self._memory.names.get(folder)
        if known is not None and known[0] == mark_of(status):
            names = known[1]
        else:
            began = self._own.now()
            with os.scandir(fd) as scan:
                entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(scan, room + 1))
            names = (
                tuple(name for name, is_folder in entries if not is_folder and name != ".git"),
                tuple(name for name, is_folder in entries if is_folder and name != ".git"),
            )
            if len(entries) > room:
                return None
            if is_fine(status) and is_old(status, began):
                self._memory.names[folder] = (mark_of(status), names)
        count = len(names[0]) + len(names[1])
        if count > room:
            return None
        self._count += count
        return names

    def _goes_into(self, start: str, path: str, ignores: tuple[Ignore, ...]) -> bool:
        if path in self._own.apart:
            return False
        if self._memory.is_ignored(start, path, ignores):
            self.left_out[path] = "ignored by git"
            return False
        return True

    def _files(self, fd: int, prefix: str, names: tuple[str, ...]) -> None:
        """Note the files `names` of the folder that `fd` is; what has not changed is taken over as a whole.

        This is the loop whose speed everybody feels: twice for every command that may write.
        """
        self._beat(len(names))
        look = os.stat
        try:
            marks = [mark_of(look(name, dir_fd=fd, follow_symlinks=False)) for name in names]
        except OSError:  # one is gone meanwhile
            marks = []
        block = self._memory.blocks.get(prefix)
        fits = block is not None and self.size + block.size <= self._bounds.max_total
        if block is not None and fits and block.marks == marks and block.names == names:
            self.states.update(block.states)
            self.size += block.size
            return
        paths = [prefix + name for name in names]
        for path in paths:
            self.look(path)
        known = [self._memory.known.get(path) for path in paths]
        if len(marks) == len(names) and all(
            one is not None and one[0] == mark for one, mark in zip(known, marks, strict=True)
        ):
            states = {path: one[1] for path, one in zip(paths, known, strict=True) if one}
            self._memory.blocks[prefix] = Block(names, marks, states, sum(one[2] for one in known if one))

    def _note(self, path: str, status: os.stat_result) -> None:
        """Note a path that is no folder."""
        known = self._memory.known.get(path)
        if known is None or known[0] != mark_of(status):
            known = self._look_into(path, status)
        if known is None:
            return
        _, state, size = known
        if self.size + size > self._bounds.max_total:
            self.left_out[path] = f"it would be more than {self._bounds.max_total / 1e6:g} MB in all"
            return
        self.size += size
        self.states[path] = state
        if state.kind is Kind.UNKEPT:
            self.left_out[path] = state.content.partition(":")[0]

    def _look_into(self, path: str, status: os.stat_result) -> Known | None:
        """Read a path that has changed; `None` where it is gone."""
        began = self._own.now()
        self._beat(_BEAT if status.st_size > 1_000_000 else 4)
        small = stat.S_ISREG(status.st_mode) and status.st_size <= self._bounds.max_file
        if small and self.size + status.st_size > self._bounds.max_total:
            return (mark_of(status), ABSENT, status.st_size)  # it will not fit, so it need not be read
        state = read_state(path, status, self._bounds.max_file, self._own.keep)
        if state is None:
            return None
        known = (mark_of(status), state, status.st_size if state.kind is Kind.FILE else 0)
        if state.kind is not Kind.UNKEPT and is_old(status, began):
            self._memory.known[path] = known
        return known

    def _beat(self, entries: int) -> None:
        self._beats += entries
        if self._beats >= _BEAT:
            self._beats = 0
            self._own.beat()


@functools.lru_cache(64)
def _folder_state(mode: int) -> State:
    return State(Kind.FOLDER, mode)


def _outermost(roots: Sequence[Path]) -> list[Path]:
    return [root for root in dict.fromkeys(roots) if not any(other in root.parents for other in roots)]
