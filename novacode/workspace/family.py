"""What one command has started, and what a census of such families has to answer."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Protocol

import attrs
import trio

from novacode.workspace.proctree import Identity, Proc
from novacode.workspace.subreaper import HERE

__all__ = ["TABLES", "Census", "Family"]

TABLES = itertools.count(1)
"""Numbers the tables of commands in this process (one a session, say), so that their markers differ."""


@attrs.define(eq=False)
class Family:
    """What one command has started. `key` is its number within its table and part of `marker`."""

    key: str
    marker: str
    leader: trio.Process
    known: set[Identity] = attrs.field(factory=set)

    def poll(self) -> bool:
        """Reap the leader if it has ended; returns whether it has."""
        if self.leader.returncode is None:
            return False
        HERE.owned.discard(self.leader.pid)
        return True


class Census(Protocol):
    """Finds the living, and reaps the dead that it comes across. Synchronous; no checkpoints."""

    @property
    def weakness(self) -> str:
        """What cannot be found on this system, for people; empty where all can. Known after `begin`."""
        ...

    def begin(self) -> None:
        """Get ready for the first command. Doing it again does nothing."""
        ...

    def marker(self, call: str) -> tuple[str, str]:
        """Return the key and the marker of a new family."""
        ...

    def add(self, family: Family) -> None:
        """Take over `family`: from now on its processes are told apart from others."""
        ...

    def forget(self, family: Family) -> None:
        """Drop `family`, of which nothing is left."""
        ...

    def living(self, families: Collection[Family]) -> list[Proc]:
        """Return what is alive of `families`, parents first."""
        ...

    def left_by(self, family: Family) -> list[Proc]:
        """Return what is alive of `family`, whose leader has ended. Cheap where nothing can be."""
        ...

    def strays(self) -> list[Proc]:
        """Return living processes that came from commands and belong to no family any more."""
        ...

    def spare(self, pid: int) -> None:
        """Never take `pid` for a stray: somebody else in this process has started it and waits for it."""
        ...
