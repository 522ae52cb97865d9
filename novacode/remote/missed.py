"""What a session's journal holds, as the text of its events: what somebody who was away has missed.

Lines are passed on as they were written, their checksum checked and taken away: what is whole need not be parsed, so
ten thousand events cost milliseconds. It is done in a thread, piece by piece.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import attrs

from novacode.errors import SessionError
from novacode.sessions.lines import load_line
from novacode.sessions.record import is_kept, json_line
from novacode.values.events import Stamped
from novacode.values.parts import JSON
from novacode.values.serial import TAGS, dump_stamped

__all__ = ["Missed", "Piece", "last_seq", "of_records"]

_HEAD = re.compile(rb'\{"seq":(\d{1,15}),')
_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n\Z')
_PIECE = 64 * 1024
_KNOWN = frozenset(TAGS.values())

Piece = list[tuple[int, bytes]]
"""Events in order: the `seq` of each, and the event as JSON."""


@attrs.frozen
class Missed:
    """The journal at `path`. `read` is for a thread."""

    path: Path

    def read(self, after: int, until: int | None, at: int | None = None) -> tuple[Piece, int | None]:
        """Return a piece of the events after `after` and up to `until`, and where to go on; `None` at the end.

        Raises `SessionError` where the file cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                return _read(file, after, until, at or 0)
        except OSError as error:
            raise SessionError(f"{self.path} cannot be read: {error.strerror or error}") from error


def _read(file: BinaryIO, after: int, until: int | None, at: int) -> tuple[Piece, int | None]:
    found: Piece = []
    size = 0
    file.seek(at)
    end = at
    for line in file:
        place, end = end, end + len(line)
        event = _event(line)
        if event is None or event[0] <= after:
            continue
        if until is not None and event[0] > until:
            return found, None
        if size >= _PIECE:
            return found, place
        found.append(event)
        size += len(line)
    return found, None


def of_records(records: Sequence[Stamped], after: int, until: int | None) -> Piece:
    """Return the same of a session that is kept in memory."""
    return [
        (one.seq, json_line(dump_stamped(one))[:-1])
        for one in records
        if one.seq > after and (until is None or one.seq <= until) and is_kept(one.event)
    ]


def last_seq(path: Path) -> int:
    """Return the `seq` of the last event at `path`; 0 where there is none, or the file cannot be read."""
    try:
        with path.open("rb") as file:
            return _last_seq(file, os.fstat(file.fileno()).st_size)
    except OSError:
        return 0


def _last_seq(file: BinaryIO, size: int) -> int:
    length = _PIECE
    while True:
        file.seek(max(0, size - length))
        tail = file.read()
        seqs = [event[0] for line in _lines(tail, whole=length >= size) if (event := _event(line)) is not None]
        if seqs or length >= size:
            return max(seqs, default=0)
        length *= 8


def _lines(tail: bytes, *, whole: bool) -> Iterator[bytes]:
    lines = tail.splitlines(keepends=True)
    yield from lines if whole else lines[1:]


def _event(line: bytes) -> tuple[int, bytes] | None:
    """Return what `line` is an event of; `None` for a header, and for what is damaged or of a later version."""
    head, seal = _HEAD.match(line), _SEAL.search(line, max(0, len(line) - 24))
    if head is not None and seal is not None:
        body = line[: seal.start()]
        if seal[1] == b"%08x" % zlib.crc32(body):
            return int(head[1]), body + b"}"
    data: JSON = load_line(line) if line.endswith(b"\n") else None
    if not isinstance(data, dict) or data.get("type") not in _KNOWN or not isinstance(data.get("seq"), int):
        return None
    data.pop("crc", None)
    return data["seq"], json_line(data)[:-1]
