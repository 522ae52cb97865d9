"""Who is writing a session: for the words of an error, never for a decision. The lock itself is the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["forget_holder", "holder", "holder_words", "note_holder"]

_LOCKS = Path("/proc/locks")


def note_holder(path: Path) -> None:
    """Write down beside the session at `path` that this process holds its lock."""
    try:
        _note(path).write_text(f"{os.getpid()}\n")
    except OSError:
        return  # only words are lost


def forget_holder(path: Path) -> None:
    """Remove the note."""
    try:
        _note(path).unlink(missing_ok=True)
    except OSError:
        return


def holder(path: Path) -> int | None:
    """Return the process that holds the session at `path`, or `None` where there is none or it cannot be told.

    Where the kernel lists its locks, that is the answer; elsewhere the note, if its process is alive.
    """
    if _LOCKS.exists():
        return _listed(path)
    try:
        pid = int(_note(path).read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid


def holder_words(path: Path) -> str:
    """Return `holder` in words, for a session whose lock is known to be taken."""
    pid = holder(path)
    if pid is None:
        try:
            pid = int(_note(path).read_text())
        except (OSError, ValueError):
            return "another process"
    return f"the process {pid}"


def _listed(path: Path) -> int | None:
    """Look the file up in the kernel's list: `1: FLOCK  ADVISORY  WRITE 4711 00:2e:1234 0 EOF`."""
    try:
        inode = str(path.stat().st_ino)
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            pid = int(fields[4])
            return pid if pid > 0 else None
    return None


def _note(path: Path) -> Path:
    return path.resolve().with_suffix(".lock")
