"""What one command has started, and what a census of such families has to answer."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Protocol

import attrs
from trio.abc import SendStream

from novacode.workspace.proctree import Identity, Proc
from novacode.workspace.subreaper import HERE

__all__ = ["TABLES", "Census", "Family", "Leader"]

TABLES = itertools.count(1)
"""Numbers the tables of commands in this process (one a session, say), so that their markers differ."""


class Leader(Protocol):
    """What is known of the process that a command began with; `trio.Process` is one."""

    stdin: SendStream | None

    @property
    def pid(self) -> int:
        """Its pid."""
        ...

    @property
    def returncode(self) -> int | None:
        """How it ended, `None` while it has not; asking reaps it."""
        ...

    async def wait(self) -> int:
        """Wait for its end and return how it ended."""
        ...


@attrs.define(eq=False, repr=False)
class Family:
    """What one command has started. `key` is its number within its table and part of `marker`.

    Of a `confined` one the leader is the sandbox's own program, and its child the first process inside.
    """

    key: str
    marker: str
    leader: Leader
    known: set[Identity] = attrs.field(factory=set)
    confined: bool = False

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
