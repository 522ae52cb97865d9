"""The census of a system without `/proc`, such as macOS: a process group is all that is known of a command."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection
from contextlib import suppress

from novacode.workspace.family import TABLES, Family
from novacode.workspace.proctree import Proc

__all__ = ["GroupCensus", "group_lives"]


class GroupCensus:
    """The census of a system without `/proc`: a family is its process group, and what leaves the group is lost.

    A family is one `Proc` with the group's number as pid and no start time, which `stopping.send` takes for a group.
    """

    weakness = "this system has no /proc: a process that leaves the group of its command is not found"

    def __init__(self) -> None:
        self._table = f"{os.getpid()}.{next(TABLES)}."
        self._numbers = itertools.count(1)

    def begin(self) -> None:
        """Do nothing."""

    def marker(self, call: str) -> tuple[str, str]:
        """Return the next key and marker."""
        key = f"{self._table}{next(self._numbers)}"
        return key, f"{key}.{call}"

    def add(self, family: Family) -> None:
        """Do nothing: families carry all that is known."""

    def forget(self, family: Family) -> None:
        """Do nothing."""

    def spare(self, pid: int) -> None:
        """Do nothing: there are no strays."""

    def living(self, families: Collection[Family]) -> list[Proc]:
        """Return one stand-in for each family whose leader or group is alive."""
        pids = [family.leader.pid for family in families if not family.poll() or _reaped_group_lives(family.leader.pid)]
        return [Proc(pid, os.getpid(), pid, pid, start=0) for pid in pids]

    def left_by(self, family: Family) -> list[Proc]:
        """Return the stand-in if the group outlives its leader."""
        return self.living([family])

    def strays(self) -> list[Proc]:
        """Return nothing: they cannot be found."""
        return []


def _reaped_group_lives(group: int) -> bool:
    """Whether anybody is in `group`, whose leader has been reaped, when our own dead in it (we are pid 1, say) are."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    return group_lives(group)


def group_lives(group: int) -> bool:
    """Whether anybody is in `group`. One that is full of zombies counts as empty where the system can tell (macOS)."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
