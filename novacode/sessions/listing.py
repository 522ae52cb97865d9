"""What a list of sessions shows of one, from the head and the tail of its file."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from novacode.errors import SessionError
from novacode.sessions.record import Header, load_line, parse_header
from novacode.values.ids import SessionId

__all__ = ["Summary", "summarise"]

_BLOCK = 4 * 1024  # is enough for most, and is read at once
_HEAD = 16 * 1024
_TAIL = 64 * 1024
_EPOCH_LIKE = 1e9  # stamps below this are of a run's own clock and say nothing about the date
_LONGEST_TITLE = 200


@attrs.frozen
class Summary:
    """One session. `last` is when it was last written, in seconds since 1970; `title` begins its first prompt."""

    id: SessionId
    path: str
    cwd: str
    created: float
    last: float
    title: str
    size: int


def summarise(path: str | Path) -> Summary | None:
    """Return what there is to say about the session at `path`, or `None` where it is none or cannot be read.

    Reads at most 80 KiB, however long the file is, and 8 KiB of most.
    """
    name = os.fspath(path)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return _summary(fd, name)
        finally:
            os.close(fd)
    except (OSError, SessionError):
        return None


def _summary(fd: int, path: str) -> Summary:
    status = os.fstat(fd)
    head = os.pread(fd, _BLOCK, 0)
    first = load_line(head.split(b"\n", 1)[0])
    # A session whose header is damaged can still be gone on with, so it is still listed.
    header = parse_header(first, path) if isinstance(first, dict) else Header(SessionId(""), "", status.st_mtime)
    last = _last_stamp(_tail(fd, status.st_size, head, _BLOCK)) or _last_stamp(_tail(fd, status.st_size, head, _TAIL))
    return Summary(
        id=header.session_id or SessionId(os.path.basename(path).removesuffix(".jsonl")),
        path=path,
        cwd=header.cwd,
        created=header.created,
        last=last if last > _EPOCH_LIKE else status.st_mtime,
        title=_title(head) or (_title(os.pread(fd, _HEAD, 0)) if status.st_size > _BLOCK else ""),
        size=status.st_size,
    )


def _tail(fd: int, size: int, head: bytes, length: int) -> bytes:
    return head if size <= len(head) else os.pread(fd, length, max(0, size - length))


def _last_stamp(tail: bytes) -> float:
    for line in reversed(tail.split(b"\n")):
        data = load_line(line) if line else None
        if isinstance(data, dict) and isinstance(data.get("at"), int | float):
            return float(data["at"])
    return 0.0


def _title(head: bytes) -> str:
    for line in head.split(b"\n")[1:]:
        data = load_line(line) if b'"run_began"' in line else None
        if isinstance(data, dict) and data.get("type") == "run_began":
            parts = data["prompt"].get("parts", []) if isinstance(data.get("prompt"), dict) else []
            texts = [part.get("text", "") for part in parts if isinstance(part, dict)]
            return " ".join("".join(str(text) for text in texts).split())[:_LONGEST_TITLE]
    return ""
