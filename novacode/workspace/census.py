"""Which living process belongs to which command, on a system with `/proc`.

A command's processes are found by their parents, by the group and session its leader began, and by the marker in
their environment; once found, one is remembered by pid and start time. We are the subreaper of all of them, so a
daemon that left its session and lost its parents is still below us.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable
from contextlib import suppress

from novacode.workspace import proctree
from novacode.workspace.environment import MARKER
from novacode.workspace.family import TABLES, Census, Family
from novacode.workspace.groups import GroupCensus, group_lives
from novacode.workspace.proctree import Identity, Proc
from novacode.workspace.subreaper import HERE, become

__all__ = ["TreeCensus", "census_of_this_system"]


class TreeCensus:
    """The census of a system with `/proc`. `me` is this process, `inherited` the marker it carries itself."""

    def __init__(self, me: Proc, inherited: str = "") -> None:
        self.weakness = ""
        self._begun = False
        self._adopting = False
        self._me = me
        # We may ourselves be below a command of another NovaCode, which has to find what we leave if we are killed.
        self._process = (f"{inherited}/" if inherited else "") + f"{me.pid}.{me.start}."
        self._table = f"{self._process}{next(TABLES)}."
        self._numbers = itertools.count(1)
        self._families: dict[str, Family] = {}
        self._not_ours: set[Identity] = set()
        self._spared: set[int] = set()
        self._since = 0

    def begin(self) -> None:
        """Become the subreaper, and note whom we are the parent of already."""
        if self._begun:
            return
        self._begun = True
        self._not_ours = {proc.identity for pid in proctree.children(os.getpid()) if (proc := proctree.read(pid))}
        problem = become()
        self._adopting = not problem
        if problem:
            self.weakness = f"a daemon that clears its environment outlives its command: {problem}"

    def marker(self, call: str) -> tuple[str, str]:
        """Return the next key, and a marker that holds our pid, when we started, the table and the call."""
        key = f"{self._table}{next(self._numbers)}"
        return key, f"{key}.{call.replace('/', '_')}"

    def add(self, family: Family) -> None:
        """Take over `family`; its leader must not have been reaped yet."""
        leader = proctree.read(family.leader.pid)
        if leader is not None:
            family.known.add(leader.identity)
            self._since = self._since or leader.start
        self._families[family.key] = family

    def forget(self, family: Family) -> None:
        """Drop `family`."""
        self._families.pop(family.key, None)

    def spare(self, pid: int) -> None:
        """Never take `pid` for a stray."""
        self._spared.add(pid)

    def living(self, families: Collection[Family]) -> list[Proc]:
        """Return what is alive of `families`; remembers all it finds, and reaps those of any family that are dead."""
        if not families:
            return []
        for family in self._families.values():
            family.poll()
        procs = self._procs()
        owners = self._owners(procs)
        found: list[Proc] = []
        for proc in procs:
            owner = owners.get(proc.pid)
            if owner is None:
                continue
            owner.known.add(proc.identity)
            if proc.gone:
                owner.poll() if proc.pid == owner.leader.pid else self._reap(proc)
            elif owner in families:
                found.append(proc)
        return found

    def left_by(self, family: Family) -> list[Proc]:
        """Return what is alive of `family`: a look at our own children, and more only where there is a strange one.

        The orphans of a leader are ours before anybody is told that it has ended.
        """
        if self._adopting:
            if not self._strange(proctree.children(os.getpid())):
                return []
        elif not group_lives(family.leader.pid):
            return []
        return self.living([family])

    def strays(self) -> list[Proc]:
        """Return adopted processes without a marker, those of families that were forgotten, and all below them."""
        if not self._begun:
            return []
        procs = self._procs()
        owners = self._owners(procs)
        taken: set[int] = set()
        found: list[Proc] = []
        for proc in procs:
            if owners.get(proc.pid) is not None or not (proc.parent in taken or self._is_stray(proc)):
                continue
            taken.add(proc.pid)
            if proc.gone:
                self._reap(proc)
            else:
                found.append(proc)
        return found

    def _procs(self) -> list[Proc]:
        if self._adopting:
            return proctree.descendants(os.getpid())
        # Those without a group are the kernel's own.
        everybody = proctree.everybody()
        return [proc for proc in everybody if proc.start >= self._since and proc.group and proc.pid != self._me.pid]

    def _owners(self, procs: Iterable[Proc]) -> dict[int, Family]:
        """Return the family of each pid that has one. Children follow their parents, which come first."""
        identities = {identity: family for family in self._families.values() for identity in family.known}
        groups = {family.leader.pid: family for family in self._families.values()}
        owners: dict[int, Family] = {}
        for proc in procs:
            owner = identities.get(proc.identity) or owners.get(proc.parent) or self._owner(proc, groups)
            if owner is not None:
                owners[proc.pid] = owner
        return owners

    def _owner(self, proc: Proc, groups: dict[int, Family]) -> Family | None:
        value = None if proc.gone else proctree.variable(proc.pid, MARKER)
        if value is not None and value.startswith(self._table):
            key = self._table + value[len(self._table) :].partition(".")[0]
            if key in self._families:
                return self._families[key]
        family = groups.get(proc.group) or groups.get(proc.session)
        # A pid that is used again would make a stranger of the leader's number look like the leader.
        if family is not None and proc.pid == family.leader.pid and proc.identity not in family.known:
            return None
        return family

    def _strange(self, pids: Iterable[int]) -> list[int]:
        return [
            pid
            for pid in pids
            if pid not in HERE.owned
            and pid not in self._spared
            and (proc := proctree.read(pid)) is not None
            and proc.identity not in self._not_ours
        ]

    def _is_stray(self, proc: Proc) -> bool:
        value = None if proc.gone else proctree.variable(proc.pid, MARKER)
        if value is not None and value.startswith(self._process):
            return value.startswith(self._table) and proc.pid not in HERE.owned
        # What shares our session was started by other parts of this process: a command's session is never ours, and
        # there is no way to join one. A child that is being spawned has no marker for a moment.
        adopted = self._adopting and proc.parent == self._me.pid
        return adopted and proc.session != self._me.session and not HERE.spawning and bool(self._strange([proc.pid]))

    def _reap(self, proc: Proc) -> None:
        """Take the status of a dead child of ours; those somebody waits for are left to them."""
        if proc.parent == os.getpid() and proc.pid not in HERE.owned:
            with suppress(ChildProcessError):
                os.waitpid(proc.pid, os.WNOHANG)


def census_of_this_system(inherited: str = "") -> Census:
    """Return the census that finds most here. `inherited` is the marker in our own environment."""
    me = proctree.read(os.getpid())
    return GroupCensus() if me is None else TreeCensus(me, inherited)
