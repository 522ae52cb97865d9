"""Throwing away file history that is too old or too much: whole sessions, the oldest first, and what only they needed.

What a session's log names is kept for as long as the log is. A snapshot of a workspace also keeps what no call then
changed: that nobody needs once the call is over, so it goes at the next opportunity.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import attrs
import trio

from novacode.workspace.changes import read_log
from novacode.workspace.contents import COMMIT, INDEX, PACK, ROW, finish_exchange, lock_of
from novacode.workspace.states import Kind, State

__all__ = ["Keep", "Pruned", "prune", "prune_when_due"]

_DAY = 86_400.0
_STAMP = "pruned"
_LITTLE = 1_000_000  # bytes that nobody needs and that are not worth writing the store anew


@attrs.frozen
class Keep:
    """What is kept: sessions that were written in the last so many `days`, and at most so many `megabytes` of them.

    0 is no bound. The session that was written last is kept whatever its size.
    """

    days: int = 30
    megabytes: int = 2_000


@attrs.frozen
class Pruned:
    """What was thrown away: the file history of these sessions, and so many bytes in all."""

    sessions: tuple[str, ...] = ()
    bytes: int = 0

    def __str__(self) -> str:
        number = len(self.sessions)
        return (
            f"the file history of {number} session{'s' * (number != 1)} was removed, {self.bytes / 1e6:.1f} MB in all"
        )


@attrs.frozen
class _Place:
    start: int
    stored: int
    size: int


def prune_when_due(folder: Path, keep: Keep) -> Pruned | None:
    """Prune the store `folder` where that was last done more than a day ago. In a thread, and ended by cancelling it.

    `None` where it was not due, or somebody else has the store. Raises `OSError`.
    """
    if not folder.is_dir():
        return None
    stamp = folder / _STAMP
    before = stamp.stat().st_mtime if stamp.exists() else 0.0
    stamp.touch(mode=0o600)
    now = stamp.stat().st_mtime  # the time as this file system has it, by which logs are dated too
    if now - before < _DAY:
        return None
    return prune(folder, keep, now)


def prune(
    folder: Path, keep: Keep, now: float, beat: Callable[[], None] = trio.from_thread.check_cancelled
) -> Pruned | None:
    """Throw away what `keep` does not want of the store `folder`; `now` is the time in seconds since 1970.

    `None` where somebody has the store. `beat` is called now and then and may raise to end it: everything is then as
    it was. So it is where `OSError` is raised.
    """
    with _alone(folder) as alone:
        if not alone:
            return None
        finish_exchange(folder)
        places = _places(folder)
        logs = sorted((path.stat().st_mtime, path) for path in folder.glob("*.jsonl"))
        needed = {path: {key for key in _needed(path) if key in places} for _, path in logs}
        kept = [path for at, path in logs if not keep.days or at >= now - keep.days * _DAY]
        if keep.megabytes:
            while len(kept) > 1 and _bytes(kept, needed, places) > keep.megabytes * 1_000_000:
                kept.pop(0)
        dropped = [path for _, path in logs if path not in kept]
        freed = sum(path.stat().st_size for path in dropped)
        freed += _write_anew(folder, {key: places[key] for path in kept for key in needed[path]}, beat)
        for path in dropped:
            path.unlink(missing_ok=True)
        return Pruned(tuple(path.stem for path in dropped), freed)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    fd = lock_of(folder)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)


def _places(folder: Path) -> Mapping[bytes, _Place]:
    try:
        rows = (folder / INDEX).read_bytes()
    except FileNotFoundError:
        return {}
    rows = rows[: len(rows) - len(rows) % ROW.size]
    return {key: _Place(start, stored, size) for key, start, stored, size in ROW.iter_unpack(rows)}


def _needed(log: Path) -> Iterator[bytes]:
    """Yield the keys of what can be put back by the log: what was there before a change, or before what was cut off."""
    for entry in read_log(log):
        states: Iterable[State] = (*entry.before.values(), *(change.before for change in entry.changes or ()))
        for state in states:
            if state.kind is Kind.FILE:
                yield bytes.fromhex(state.content)


def _bytes(logs: Iterable[Path], needed: Mapping[Path, set[bytes]], places: Mapping[bytes, _Place]) -> int:
    return sum(places[key].stored for key in set[bytes]().union(*(needed[path] for path in logs)))


def _write_anew(folder: Path, wanted: Mapping[bytes, _Place], beat: Callable[[], None]) -> int:
    """Leave `wanted` alone in the store, where the rest is worth it; returns how many bytes that has freed."""
    pack = folder / PACK
    total = pack.stat().st_size if pack.exists() else 0
    freed = total - sum(place.stored for place in wanted.values())
    if freed < _LITTLE:
        return 0
    in_order = sorted(wanted.items(), key=lambda item: item[1].start)
    with open(pack, "rb", buffering=0) as old, _new(folder / PACK) as new, _new(folder / INDEX) as index:
        at = 0
        for number, (key, place) in enumerate(in_order):
            if number % 256 == 0:
                beat()
            data = os.pread(old.fileno(), place.stored, place.start)
            if len(data) < place.stored:  # a row that points behind the end: its content is lost already
                continue
            new.write(data)
            index.write(ROW.pack(key, at, place.stored, place.size))
            at += place.stored
    (folder / COMMIT).touch(mode=0o600)
    finish_exchange(folder)
    return freed


@contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
