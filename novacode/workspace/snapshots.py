"""The file history of a session: what calls may change is kept before they run, and what they changed is recorded.

A file tool's call keeps exactly the paths it names. A command that may write keeps the workspace, within bounds. No
git is involved: contents go to a store of our own, so a repository's index, refs, stash and hooks are never touched,
and it all works the same where there is no repository and no git.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import trio

from novacode.values.events import FilesChanged, Level, Notice
from novacode.values.ids import CallId
from novacode.workspace.changes import Change, ChangeLog, Entry, diff
from novacode.workspace.contents import Contents
from novacode.workspace.listing import Bounds, Listing, Surveyor
from novacode.workspace.pruning import Keep, Pruned, prune_when_due
from novacode.workspace.states import ABSENT, Kind

__all__ = ["EXACT", "FileHistory", "Keeping", "SwitchedOff", "log_path"]

EXACT = Bounds(max_file=64 * 1024 * 1024, max_total=2**40, ignored=True)
"""For paths that a call names: a file tool changes nothing larger."""

_PATIENCE = 30.0  # seconds a walk over the workspace may take
_MOST_NAMED = 500
_MOST_TOLD = 5

T = TypeVar("T")


@attrs.frozen
class Keeping:
    """Where and how much. `folder` is the store, shared by the sessions of a project; `roots` the workspace.

    `apart` are folders in it that are none of the work, NovaCode's own above all. With `fresh` the session has no
    past. `keep` says what is thrown away of the sessions before. `patience` is how many seconds one walk may take
    before the workspace is given up for the session.
    """

    folder: Path
    session: str
    roots: Sequence[Path]
    bounds: Bounds = attrs.field(factory=Bounds)
    apart: Sequence[Path] = ()
    fresh: bool = False
    patience: float = _PATIENCE
    keep: Keep = attrs.field(factory=Keep)


def log_path(folder: Path, session: str) -> Path:
    """Return where the log of `session` is in the store `folder`."""
    return folder / f"{session}.jsonl"


@attrs.define
class _Open:
    """A call that was taken and not recorded yet. `others` are paths that calls beside it have recorded."""

    whole: bool
    paths: tuple[Path, ...]
    single: tuple[str, ...]
    before: Listing
    problem: str = ""
    others: set[str] = attrs.field(factory=set)


class FileHistory:
    """Implements `Snapshots` on the disk."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._log = ChangeLog(log_path(keeping.folder, keeping.session), fresh=keeping.fresh)
        self._contents = Contents(keeping.folder)
        self._workspace = Surveyor(self._contents.put, keeping.bounds, (*keeping.apart, keeping.folder.resolve()))
        self._exact = Surveyor(self._contents.put, EXACT)
        self._turn = trio.Lock()  # the store and the surveyors are for one thread at a time
        self._open: dict[CallId, _Open] = {}
        self._gave_up = ""
        self._told: set[str] = set()
        self._pruned: Pruned | None = None
        self._due = True  # before this session has looked into the store, and only then

    async def take(self, call: CallId, paths: Sequence[Path]) -> Sequence[Notice]:
        """Keep the state before `call`; see `Snapshots.take`."""
        if not paths:
            return ()
        whole = any(path == path.parent for path in paths)
        opened = _Open(whole, tuple(paths), () if whole else _named(paths), Listing({}))
        async with self._turn:
            if self._due:
                self._due = False
                # What cannot be thrown away now is tomorrow; whether anything can be written is seen right after.
                await self._bounded(self._prune, whole=False)
            if whole and self._gave_up:
                opened.problem = self._gave_up
            else:
                opened.problem = await self._bounded(lambda: self._take(call, opened), whole=whole)
            self._open[call] = opened
        return self._notices(opened)

    async def record(self, call: CallId, name: str) -> FilesChanged | None:
        """Record what `call` has changed; see `Snapshots.record`."""
        opened = self._open.get(call)
        if opened is None:
            return None
        if opened.problem:
            return FilesChanged(call, name, problem=opened.problem)
        changes: list[Change] = []
        async with self._turn:
            problem = await self._bounded(lambda: changes.extend(self._record(call, opened)), whole=opened.whole)
        if problem:
            return FilesChanged(call, name, problem=problem)
        return _told(call, name, changes, self._keeping.roots) if changes else None

    def close(self, call: CallId) -> None:
        """Forget that `call` was taken."""
        self._open.pop(call, None)

    async def _bounded(self, work: Callable[[], object], *, whole: bool) -> str:
        """Do `work` in a thread and return why it could not be done. Cancelling reaches into the thread."""
        seconds = self._keeping.patience
        with trio.move_on_after(seconds) as scope:
            try:
                await trio.to_thread.run_sync(work)
            except OSError as error:
                # What was read may not have been kept, so it has to be read again.
                self._workspace.memory.forget()
                self._exact.memory.forget()
                return f"the file history in {self._keeping.folder} cannot be written ({error.strerror or error})"
        if not scope.cancelled_caught:
            return ""
        problem = f"going through the files took more than {seconds:g} s"
        if whole:
            self._gave_up = problem
        return problem

    def _prune(self) -> None:
        self._pruned = prune_when_due(self._keeping.folder, self._keeping.keep)

    def _take(self, call: CallId, opened: _Open) -> None:
        opened.before = self._survey(opened)
        self._contents.flush()
        named = {path: opened.before.states.get(path, ABSENT) for path in opened.single}
        before = {} if opened.whole else {**opened.before.states, **named}
        left_out = dict(list(opened.before.left_out.items())[:_MOST_NAMED])
        self._log.taken(Entry(call, opened.whole, before, left_out=left_out))

    def _record(self, call: CallId, opened: _Open) -> Sequence[Change]:
        changes = diff(opened.before, self._survey(opened))
        if opened.whole:
            # File tools are exact: what they say they changed, the command beside them is not blamed for.
            exact = [other.single for other in self._open.values() if not other.whole]
            theirs = opened.others.union(*exact)
            changes = tuple(change for change in changes if change.path not in theirs)
        self._contents.flush()
        self._log.changed(call, changes)
        for other in self._open.values():
            if other is not opened and not opened.whole:
                other.others.update(change.path for change in changes)
        return changes

    def _survey(self, opened: _Open) -> Listing:
        if opened.whole:
            return self._workspace.survey(self._keeping.roots)
        folders = [path for path in opened.paths if path.is_dir() and not path.is_symlink()]
        return self._exact.survey(folders, opened.single)

    def _notices(self, opened: _Open) -> Sequence[Notice]:
        """Say what a person should know, each thing once in a session."""
        if opened.problem:
            text = f"what calls change cannot be taken back: {opened.problem}"
            return (Notice(Level.WARNING, text),) if self._first(text) else ()
        notices = []
        if self._pruned is not None and self._pruned.sessions and self._first("pruned"):
            notices.append(Notice(Level.INFO, f"{self._pruned}; `snapshots.keep_days` and `keep_mb` say what is kept"))
        if opened.whole and self._first("cost"):
            files = sum(state.kind is Kind.FILE for state in opened.before.states.values())
            size = opened.before.size / 1e6
            notices.append(Notice(Level.INFO, f"`novacode rewind` keeps {files} files, {size:.1f} MB before packing"))
        new = {path: why for path, why in opened.before.left_out.items() if self._first(path)}
        for level, wanted in ((Level.WARNING, False), (Level.INFO, True)):
            named = {path: why for path, why in new.items() if (why == "ignored by git") is wanted}
            if named:
                text = f"not covered by `novacode rewind`: {_names(named, self._keeping.roots)}"
                notices.append(Notice(level, text))
        return notices

    def _first(self, text: str) -> bool:
        if text in self._told:
            return False
        self._told.add(text)
        return True


class SwitchedOff:
    """Implements `Snapshots` where they are not wanted: keeps nothing, and says so of each call that may write."""

    def __init__(self) -> None:
        self._open: set[CallId] = set()

    async def take(self, call: CallId, paths: Sequence[Path]) -> Sequence[Notice]:
        """Note that `call` may write; not a checkpoint."""
        if paths:
            self._open.add(call)
        return ()

    async def record(self, call: CallId, name: str) -> FilesChanged | None:
        """Say that nothing is known; not a checkpoint."""
        return FilesChanged(call, name, problem="snapshots were switched off") if call in self._open else None

    def close(self, call: CallId) -> None:
        """Forget `call`."""
        self._open.discard(call)


def _named(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return `paths`, and before them the folders above that are missing: they would be made on the way."""
    missing = {str(folder): None for path in paths for folder in reversed(path.parents) if not os.path.lexists(folder)}
    return (*missing, *(str(path) for path in paths if str(path) not in missing))


def _told(call: CallId, name: str, changes: Sequence[Change], roots: Sequence[Path]) -> FilesChanged:
    named: dict[str, list[str]] = {"created": [], "modified": [], "deleted": [], "uncovered": []}
    for change in changes[:_MOST_NAMED]:
        folder = Kind.FOLDER in (change.before.kind, change.after.kind)
        named[_how(change)].append(_shown(change.path, roots) + ("/" if folder else ""))
    return FilesChanged(
        call,
        name,
        created=tuple(named["created"]),
        modified=tuple(named["modified"]),
        deleted=tuple(named["deleted"]),
        uncovered=tuple(named["uncovered"]),
        more=max(0, len(changes) - _MOST_NAMED),
    )


def _how(change: Change) -> str:
    if Kind.UNKEPT in (change.before.kind, change.after.kind):
        return "uncovered"
    if change.before == ABSENT:
        return "created"
    return "deleted" if change.after == ABSENT else "modified"


def _names(left_out: dict[str, str], roots: Sequence[Path]) -> str:
    named = [f"{_shown(path, roots)} ({why})" for path, why in list(left_out.items())[:_MOST_TOLD]]
    more = len(left_out) - len(named)
    return ", ".join(named) + (f", and {more} more" if more else "")


def _shown(path: str, roots: Iterable[Path]) -> str:
    first = next(iter(roots), None)
    prefix = f"{first}/"
    return path.removeprefix(prefix) if first is not None else path
