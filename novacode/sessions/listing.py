"""Where session files are, and what a list of them shows of each, from the head and the tail of its file.

Quick with ten thousand of them: two reads of 4 KiB a session, and none of the modules that reading history needs.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from novacode.sessions.lines import FORMAT, load_line
from novacode.values.ids import SessionId

__all__ = ["SUFFIX", "Summary", "list_sessions", "project_key", "session_files", "stem", "summarise"]

SUFFIX = ".jsonl"

_BLOCK = 4 * 1024  # is enough for most, and is read at once
_HEAD = 16 * 1024
_TAIL = 64 * 1024
_EPOCH_LIKE = 1e9  # stamps below this are of a run's own clock and say nothing about the date
_LONGEST_TITLE = 200
_STAMP = re.compile(rb'\n\{"seq":\d+,"run_id":"[^"]*","at":([0-9.e+-]+),')


class Summary(NamedTuple):
    """One session. `last` is when it was last written, in seconds since 1970; `title` begins its first prompt."""

    id: SessionId
    path: str
    cwd: str
    created: float
    last: float
    title: str
    size: int


def project_key(cwd: Path) -> str:
    """Return the folder name for sessions begun in `cwd`: readable, and different for different folders."""
    real = cwd.resolve()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", real.name).strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
    return f"{readable[:40]}-{digest}"


def session_files(root: Path, project: str | None = None) -> Iterator[str]:
    """Yield the paths of session files below `root`. As texts: of ten thousand, `Path` objects would cost most."""
    try:
        with os.scandir(root) as entries:
            folders = [entry.path for entry in entries if project in (None, entry.name) and entry.is_dir()]
        for folder in folders:
            with os.scandir(folder) as entries:
                yield from [entry.path for entry in entries if entry.name.endswith(SUFFIX)]
    except OSError:
        return


def stem(path: str) -> str:
    """Return the session's id as the file's name has it."""
    return path.rpartition(os.sep)[2].removesuffix(SUFFIX)


def list_sessions(root: Path, project: str | None = None) -> tuple[Summary, ...]:
    """Return the sessions below `root`, latest first."""
    found = [one for path in session_files(root, project) if (one := summarise(path)) is not None]
    return tuple(sorted(found, key=lambda one: (-one.last, one.id)))


def summarise(path: str | Path) -> Summary | None:
    """Return what there is to say about the session at `path`, or `None` where it is none or cannot be read.

    Reads at most 84 KiB, however long the file is, and 8 KiB of most.
    """
    name = os.fspath(path)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return _summary(fd, name)
        finally:
            os.close(fd)
    except OSError:
        return None


def _summary(fd: int, path: str) -> Summary | None:
    status = os.fstat(fd)
    size = status.st_size
    head = os.pread(fd, _BLOCK, 0)
    first = load_line(head[: head.find(b"\n") + 1 or None])
    # A session whose header is damaged can still be gone on with, so it is still listed.
    facts = first if isinstance(first, dict) else {"format": FORMAT}
    if facts.get("format") != FORMAT:
        return None
    last = _last_stamp(_tail(fd, size, head, _BLOCK)) or _last_stamp(_tail(fd, size, head, _TAIL))
    title = _title(head)
    if title is None and size > _BLOCK:
        title = _title(os.pread(fd, _HEAD, 0))
    return Summary(
        SessionId(str(facts.get("session_id") or stem(path))),
        path,
        str(facts.get("cwd", "")),
        _number(facts.get("created"), status.st_mtime),
        last if last > _EPOCH_LIKE else status.st_mtime,
        title or "",
        size,
    )


def _tail(fd: int, size: int, head: bytes, length: int) -> bytes:
    return head if size <= len(head) else os.pread(fd, length, max(0, size - length))


def _last_stamp(tail: bytes) -> float:
    """Return the time of the last event whose beginning is in `tail`; 0 where there is none."""
    at = len(tail)
    while (at := tail.rfind(b'\n{"seq":', 0, at)) >= 0:
        if (found := _STAMP.match(tail, at)) is not None:
            return _number(found[1], 0.0)
    return 0.0


def _number(value: object, default: float) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return default


def _title(head: bytes) -> str | None:
    """Return the beginning of the first prompt; `None` where its record is not whole in `head`."""
    at = head.find(b'"type":"run_began"')
    if at < 0:
        return None
    start, end = head.rfind(b"\n", 0, at) + 1, head.find(b"\n", at)
    data = load_line(head[start:end]) if end > 0 else None
    if not isinstance(data, dict):
        return None
    prompt = data.get("prompt")
    parts = prompt.get("parts", []) if isinstance(prompt, dict) else []
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)]
    return " ".join("".join(texts).split())[:_LONGEST_TITLE]
