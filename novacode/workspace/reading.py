"""Reading one path for the file history: never waiting, whatever it is, and telling when it need not be read again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from novacode.workspace.states import Kind, State

__all__ = ["FLAGS", "Mark", "is_fine", "is_old", "mark_of", "read_state", "why_not"]

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY

# A file can change without its status changing while the clock of the file system stands still: one tick of the
# kernel, seconds on file systems that count in those.
_TICK = 20_000_000
_COARSE_TICK = 2_000_000_000

Mark = tuple[int, ...]
"""What of a status changes when the file does."""


class _Unreadable(Exception):
    """A file's content cannot be read; apart from what `keep` raises, which is about our own store."""


def read_state(path: str, status: os.stat_result, most: int, keep: Callable[[bytes], str]) -> State | None:
    """Return what `path`, no folder, is; `None` where it is gone. Its content goes to `keep`, up to `most` bytes."""
    mode = status.st_mode
    try:
        if stat.S_ISLNK(mode):
            return State(Kind.LINK, 0, os.readlink(path))
        if not stat.S_ISREG(mode):
            return State(Kind.UNKEPT, 0, f"neither file, link nor folder:{stat.S_IFMT(mode):o}")
        if status.st_size <= most:
            data = _content(path, most + 1)
            if len(data) <= most:
                return State(Kind.FILE, stat.S_IMODE(mode), keep(data))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _Unreadable as error:
        return State(Kind.UNKEPT, 0, f"{error}:{status.st_size} {status.st_mtime_ns}")
    return State(Kind.UNKEPT, 0, f"larger than {most / 1e6:g} MB:{status.st_size} {status.st_mtime_ns}")


def _content(path: str, most: int) -> bytes:
    try:
        fd = os.open(path, FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError
            data = os.read(fd, most)
            while len(data) < most and (more := os.read(fd, most - len(data))):
                data += more
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _Unreadable(why_not(error)) from error
    return data


def mark_of(status: os.stat_result) -> Mark:
    """Return the mark of a path with this status. A change of the mode alone shows in the time of the status."""
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)


def is_old(status: os.stat_result, now: int) -> bool:
    """Whether a change after `now` (nanoseconds since 1970) is bound to show in the mark."""
    last = max(status.st_mtime_ns, status.st_ctime_ns)
    return now - last > (_TICK if last % 1_000_000_000 else _COARSE_TICK)


def is_fine(status: os.stat_result) -> bool:
    """Whether the file system counts time finely. Those that do not (FAT) may not even tell when a folder changes."""
    return status.st_mtime_ns % 1_000_000 != 0


def why_not(error: OSError | ValueError) -> str:
    """Say why something cannot be read."""
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"
