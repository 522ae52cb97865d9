"""Who is writing a session, and what those before have left running: words for people, never a decision.

The lock itself is the kernel's. The note beside the session has a line for whoever holds it now, and one for each
earlier holder that was killed and whose commands were still alive when that was last looked at.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from novacode.workspace import proctree
from novacode.workspace.environment import MARKER

__all__ = ["forget_holder", "holder", "holder_words", "note_holder"]

_LOCKS = Path("/proc/locks")
_LEFT = "left"


@attrs.frozen
class _Owner:
    """A NovaCode process. `start` tells it from a later one with its pid, and is 0 where that cannot be known."""

    pid: int
    start: int = 0
    left: bool = False

    @property
    def line(self) -> str:
        return f"{_LEFT} {self.pid} {self.start}\n" if self.left else f"{self.pid} {self.start}\n"

    @property
    def ended(self) -> bool:
        proc = proctree.read(self.pid)
        return proc is None or proc.gone or proc.start != self.start

    def has_started(self, marker: str) -> bool:
        """Whether a process with this `marker` came from a command of it, or of one that a command of it has begun."""
        return any(part.startswith(f"{self.pid}.{self.start}.") for part in marker.split("/"))


def note_holder(path: Path) -> tuple[str, ...]:
    """Write down beside the session at `path` that this process holds its lock.

    Returns what is alive of the commands of earlier holders that were killed, as `4711 sleep 300`. Looks at other
    processes only where there was such a holder.
    """
    living = _living([owner for owner in _noted(path) if owner.start and owner.ended])
    me = proctree.read(os.getpid())
    owners = [_Owner(os.getpid(), me.start if me else 0), *(attrs.evolve(owner, left=True) for owner in living)]
    with suppress(OSError):  # only words are lost
        _note(path).write_text("".join(owner.line for owner in owners))
    return tuple(words for found in living.values() for words in found)


def forget_holder(path: Path) -> None:
    """Remove the note; what earlier holders have left running stays in it until somebody has seen it end."""
    left = [owner for owner in _noted(path) if owner.left]
    try:
        if left:
            _note(path).write_text("".join(owner.line for owner in left))
        else:
            _note(path).unlink(missing_ok=True)
    except OSError:
        return


def holder(path: Path) -> int | None:
    """Return the process that holds the session at `path`, or `None` where there is none or it cannot be told.

    Where the kernel lists its locks, that is the answer; elsewhere the note, if its process is alive.
    """
    if _LOCKS.exists():
        return _listed(path)
    pid = _noted_holder(path)
    try:
        if pid is not None:
            os.kill(pid, 0)
    except OSError:
        return None
    return pid


def holder_words(path: Path) -> str:
    """Return `holder` in words, for a session whose lock is known to be taken."""
    pid = holder(path) or _noted_holder(path)
    return "another process" if pid is None else f"the process {pid}"


def _noted_holder(path: Path) -> int | None:
    return next((owner.pid for owner in _noted(path) if not owner.left), None)


def _noted(path: Path) -> list[_Owner]:
    """Return who is in the note, leaving out what nobody could have written."""
    try:
        lines = _note(path).read_text().splitlines()
    except (OSError, ValueError):
        return []
    owners = []
    for line in lines:
        words = line.split()
        left = words[:1] == [_LEFT]
        numbers = words[left:]
        if numbers and all(number.isascii() and number.isdigit() for number in numbers):
            owners.append(_Owner(int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0, left))
    return owners


def _living(owners: Sequence[_Owner]) -> dict[_Owner, list[str]]:
    """Return what is alive of the commands of each of `owners` that has any, by the marker in their environment."""
    found: dict[_Owner, list[str]] = {}
    if not owners:
        return found
    above = _ancestors()
    for proc in proctree.everybody():
        # The kernel's own have no group; what we run below was there before the session was opened.
        if proc.gone or not proc.group or proc.pid in above:
            continue
        marker = proctree.variable(proc.pid, MARKER)
        owner = next((one for one in owners if marker and one.has_started(marker)), None)
        if owner is not None:
            found.setdefault(owner, []).append(f"{proc.pid} {proctree.command_line(proc.pid)}".rstrip())
    return found


def _ancestors() -> frozenset[int]:
    """Return this process and all above it."""
    pids: set[int] = set()
    pid = os.getpid()
    while pid not in pids and (proc := proctree.read(pid)) is not None:
        pids.add(pid)
        pid = proc.parent
    return frozenset(pids)


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
