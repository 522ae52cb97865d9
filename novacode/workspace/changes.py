"""What calls have changed, and the log of it: one JSON object a line, written before anybody relies on it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from novacode.values.parts import JSON
from novacode.workspace.listing import Listing
from novacode.workspace.states import ABSENT, State, load_state

__all__ = ["Change", "ChangeLog", "Entry", "diff", "read_log"]

_FORMAT = "novacode-file-history"
_VERSION = 1


@attrs.frozen
class Change:
    """A path whose state was `before` and is `after`."""

    path: str
    before: State
    after: State


@attrs.frozen
class Entry:
    """A call that may have changed something, or a rewind.

    `changes` is `None` where nobody has said what it changed: it was cut off. `before` is then what the paths it
    named were; `whole` says that it may have changed anything instead. `closed` counts up in the order in which
    change sets were recorded. `damage` is what is wrong with a part of the log; such an entry has no call.
    """

    call: str
    whole: bool = False
    before: Mapping[str, State] = attrs.field(factory=dict)
    changes: tuple[Change, ...] | None = None
    left_out: Mapping[str, str] = attrs.field(factory=dict)
    closed: int = 0
    damage: str = ""


def diff(before: Listing, after: Listing) -> tuple[Change, ...]:
    """Return what differs, by path. Paths that one of the two knows nothing about are no difference."""
    old, new = before.states, after.states
    changed = [path for path, state in new.items() if old.get(path) is not state and old.get(path) != state]
    changed += [path for path in old if path not in new]
    blind = {**before.left_out, **after.left_out}
    return tuple(
        Change(path, old.get(path, ABSENT), new.get(path, ABSENT))
        for path in sorted(changed)
        if not _unknown(path, before) and not _unknown(path, after) and not _below(path, blind)
    )


def _unknown(path: str, listing: Listing) -> bool:
    return path in listing.left_out and path not in listing.states


def _below(path: str, folders: Mapping[str, str]) -> bool:
    if not folders:
        return False
    end = path.rfind("/")
    while end > 0:
        path = path[:end]
        if path in folders:
            return True
        end = path.rfind("/")
    return False


class ChangeLog:
    """Appends to the log at `path`, which is made at the first record; with `fresh` what it held is thrown away.

    One writer at a time: whoever holds the session. Raises `OSError` where a record cannot be written; then nothing
    of it is.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._path = path
        self._fresh = fresh

    def taken(self, entry: Entry) -> None:
        """Record that the state before `entry` is kept."""
        before = [[path, state.dump()] for path, state in entry.before.items()]
        self._append({"taken": entry.call, "whole": entry.whole, "before": before, "left_out": dict(entry.left_out)})

    def changed(self, call: str, changes: Iterable[Change], *, to_disk: bool = False) -> None:
        """Record what `call` has changed."""
        rows = [[change.path, change.before.dump(), change.after.dump()] for change in changes]
        self._append({"changed": call, "changes": rows}, to_disk=to_disk)

    def _append(self, record: Mapping[str, JSON], *, to_disk: bool = False) -> None:
        # ASCII, so that names that are no UTF-8 survive: half surrogates are escapes then.
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        fd = self._open()
        try:
            size = os.fstat(fd).st_size
            if size == 0:
                line = json.dumps({"format": _FORMAT, "version": _VERSION}).encode() + b"\n" + line
            elif os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line  # what a crash has cut off stays a line of its own
            _write(fd, line, size)
            if to_disk:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _open(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path, flags | (os.O_TRUNC if self._fresh else 0), 0o600)
        self._fresh = False
        return fd


def _write(fd: int, line: bytes, size: int) -> None:
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        os.ftruncate(fd, size)
        raise


def read_log(path: Path) -> tuple[Entry, ...]:
    """Return the entries of the log at `path`, in the order in which they were begun; none where there is no log.

    A line that cannot be read is an entry of its own, with `damage`. Raises `OSError` for a file that cannot be.
    """
    entries: list[Entry] = []
    places: dict[str, int] = {}
    try:
        lines = path.read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return ()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            _take(json.loads(line), entries, places, number)
        except (ValueError, TypeError, KeyError, AttributeError):
            entries.append(Entry("", damage=f"line {number} of {path} cannot be read"))
    return tuple(entries)


def _take(record: Mapping[str, JSON], entries: list[Entry], places: dict[str, int], number: int) -> None:
    if "taken" in record:
        before = {path: load_state(state) for path, state in record["before"]}
        places[record["taken"]] = len(entries)
        entries.append(Entry(record["taken"], record["whole"], before, left_out=dict(record["left_out"])))
    elif "changed" in record:
        place = places[record["changed"]]
        changes = tuple(_changes(record["changes"]))
        entries[place] = attrs.evolve(entries[place], changes=changes, closed=number)
    elif record.get("format") != _FORMAT or record["version"] > _VERSION:
        raise ValueError("neither a record nor a header that is known")


def _changes(rows: Sequence[JSON]) -> Iterator[Change]:
    for path, before, after in rows:
        yield Change(path, load_state(before), load_state(after))
