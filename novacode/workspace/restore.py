"""Going back, once it is decided: what is there is kept first, then each path is put in place, whole or not at all.

A rewind is itself an entry of the log, so it can be taken back like a call. Nothing spans paths: where one cannot be
restored, it is named, and the others are.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from novacode.workspace.changes import Change, ChangeLog, Entry
from novacode.workspace.contents import Contents
from novacode.workspace.rewind import Item
from novacode.workspace.states import ABSENT, Kind, State

__all__ = ["Report", "Work", "next_rewind", "restore"]

_REWIND = re.compile(r"rewind-(\d+)")


@attrs.frozen
class Report:
    """How it went. `failed` says of a path why it is not what it was.

    `kept_folders` stay because somebody else's files are in them.
    """

    rewind: str
    done: tuple[Item, ...]
    failed: dict[str, str]
    kept_folders: tuple[str, ...] = ()


def next_rewind(entries: Sequence[Entry]) -> str:
    """Return the name of the next rewind."""
    numbers = [int(found[1]) for entry in entries if (found := _REWIND.fullmatch(entry.call))]
    return f"rewind-{max(numbers, default=0) + 1}"


@attrs.define
class Work:
    """A rewind under way. `look` returns the state of a path now, and puts its content into `contents`."""

    contents: Contents
    log: ChangeLog
    look: Callable[[str], State]
    failed: dict[str, str] = attrs.field(factory=dict)
    kept_folders: list[str] = attrs.field(factory=list)

    def perform(self, items: Sequence[Item]) -> None:
        """Remove what was not there, from the depths up; then put back what was, from the top down.

        A folder can be written to until everything in it is in place.
        """
        folders = [item for item in items if item.target.kind is Kind.FOLDER]
        for item in folders:
            if item.now.kind is Kind.FOLDER:
                self._try(item, _open_up)
        for item in reversed(items):
            self._clear(item)
        for item in folders:
            if item.now.kind is not Kind.FOLDER:
                self._try(item, _make_folder)
        for item in items:
            if item.target.kind in (Kind.FILE, Kind.LINK):
                self._try(item, self._put)
        for item in reversed(folders):
            self._try(item, lambda path, state: os.chmod(path, state.mode))

    def _clear(self, item: Item) -> None:
        """Remove what is in the way; a file or link in the way of another one is replaced later, in one step."""
        if item.now.kind is Kind.FOLDER:
            if item.target.kind is not Kind.FOLDER:
                self._try(item, self._remove_folder)
        elif item.now != ABSENT and item.target.kind in (Kind.ABSENT, Kind.FOLDER):
            self._try(item, lambda path, state: os.unlink(path))

    def _try(self, item: Item, act: Callable[[str, State], None]) -> None:
        if item.path in self.failed:
            return
        try:
            _require_real_parent(item.path)
            act(item.path, item.target)
        except FileNotFoundError:
            if item.target != ABSENT:
                self.failed[item.path] = "its folder is not there"
        except OSError as error:
            self.failed[item.path] = error.strerror or str(error)

    def _remove_folder(self, path: str, target: State) -> None:
        try:
            os.rmdir(path)
        except OSError:
            if target != ABSENT or not os.listdir(path):
                raise
            self.kept_folders.append(path)  # somebody else's files are in it

    def _put(self, path: str, target: State) -> None:
        if target.kind is Kind.LINK:
            _replace(path, lambda name, folder: os.symlink(target.content, name, dir_fd=folder))
            return
        data = self.contents.get(target.content)
        if data is None:
            raise OSError(f"what it held is missing in the file history, or damaged ({target.content})")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _replace(path, lambda name, folder: _write(name, folder, data, target.mode))


def restore(items: Sequence[Item], name: str, work: Work) -> Report:
    """Make every path of `items` its target, and record that as the rewind `name`.

    What is there goes into the store, and onto the disk, first; where that fails `OSError` is raised and nothing was
    touched. A path that has changed since `items` was made is left alone. Synchronous, and not to be interrupted.
    """
    before = {item.path: work.look(item.path) for item in items}
    for item in items:
        if before[item.path] != item.now:
            work.failed[item.path] = "it was changed just now"
    work.contents.flush(to_disk=True)
    work.log.taken(Entry(name, before=before))
    todo = sorted((item for item in items if item.path not in work.failed), key=lambda item: item.path.count("/"))
    try:
        work.perform(todo)
    finally:
        after = {path: work.look(path) for path in before}
        work.contents.flush()
        changed = [Change(path, before[path], after[path]) for path in before if before[path] != after[path]]
        work.log.changed(name, changed, to_disk=True)
    kept = set(work.kept_folders)
    for item in items:
        if after[item.path] != item.target and item.path not in kept:
            work.failed.setdefault(item.path, "it is not what it was")
    done = tuple(item for item in items if after[item.path] == item.target)
    return Report(name, done, work.failed, tuple(sorted(kept)))


def _require_real_parent(path: str) -> None:
    """Refuse where the way to `path` leads through a link: it did not when its state was kept."""
    parent = os.path.dirname(path)
    if os.path.realpath(parent) != parent:
        raise OSError("a folder on the way to it is a link now")


def _open_up(path: str, target: State) -> None:
    os.chmod(path, target.mode | stat.S_IRWXU)


def _make_folder(path: str, target: State) -> None:
    os.makedirs(path, exist_ok=True)
    os.chmod(path, target.mode | stat.S_IRWXU)


def _replace(path: str, make: Callable[[str, int], None]) -> None:
    """Put what `make` makes, under a name of its own in a folder, in the place of `path`, in one step."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    temporary = f".novacode-{os.getpid()}"
    try:
        _discard(temporary, folder)
        make(temporary, folder)
        os.rename(temporary, Path(path).name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        _discard(temporary, folder)
        os.close(folder)


def _discard(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _write(name: str, folder: int, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
