"""Signals, and the two phases of a stop: SIGTERM with a grace, then SIGKILL, and the wait for the end of each."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

import attrs
import trio

from novacode.grace import Grace
from novacode.workspace import proctree
from novacode.workspace.proctree import Identity, Proc

__all__ = ["Stop", "Tally", "send"]

_SHORTEST = 0.002
_LONGEST = 0.1  # how long something newly forked may go unnoticed while an older process is waited for


@attrs.define(eq=False, repr=False)
class Tally:
    """What stopping has taken so far, by identity, so that nothing is counted twice."""

    signalled: set[Identity] = attrs.field(factory=set)
    escalated: set[Identity] = attrs.field(factory=set)
    survivors: set[Identity] = attrs.field(factory=set)


class Stop:
    """One stop under way. `living` is what it was still waiting for when it last looked.

    `wardens` are the pids of sandboxes' own programs. A warden ends as soon as the command in it has, and takes what
    else is inside with it; so it is held still while what is inside has its grace. It is not asked to stop, and
    neither it nor the first process inside, its child, is counted.
    """

    def __init__(
        self, find: Callable[[], list[Proc]], tally: Tally, grace: Grace, wardens: Collection[int] = ()
    ) -> None:
        self.living: list[Proc] = []
        self._wardens = wardens
        self._find = find
        self._tally = tally
        self._grace = grace
        self._hurried = False
        self._patience: trio.CancelScope | None = None

    def look(self) -> bool:
        """Find out whether there is anything to stop."""
        self.living = self._find()
        return bool(self.living)

    @property
    def waiting_for(self) -> list[Proc]:
        """What a person would call that: without what only holds a sandbox up."""
        return [proc for proc in self.living if not self._is_scaffold(proc)] or self.living

    async def run(self) -> None:
        """Stop all that `find` returns, again and again, until it returns nothing or the graces have passed.

        To be run inside `grace.cleanup`; followed by `close`.
        """
        if not self._hurried:
            await self._phase(signal.SIGTERM, self._grace.term)
        await self._phase(signal.SIGKILL, self._grace.kill)

    def close(self) -> None:
        """Look a last time; what is alive even now is a survivor."""
        if self.look():
            self._tally.survivors |= {proc.identity for proc in self.living}

    def hurry(self) -> None:
        """Skip the grace: the next signal is SIGKILL, now."""
        self._hurried = True
        if self._patience is not None:
            self._patience.cancel()

    async def _phase(self, number: signal.Signals, seconds: float) -> None:
        sent: dict[Identity, bytes] = {}
        pause = _SHORTEST
        with trio.move_on_after(seconds) as scope:
            self._patience = scope if number == signal.SIGTERM else None
            while self.look():
                due = self._due(sent, number)
                self._hold()
                self._signal(due, number)
                sent.update((proc.identity, proc.name) for proc in due)
                self._wake()
                await _ends_of(self.living, pause)
                pause = min(2 * pause, _LONGEST)

    def _is_scaffold(self, proc: Proc) -> bool:
        return proc.pid in self._wardens or proc.parent in self._wardens

    def _guards(self, warden: Proc) -> bool:
        """Whether anything is alive in the sandbox of `warden`: something below its first process."""
        first = {proc.pid for proc in self.living if proc.parent == warden.pid}
        return any(proc.parent in first for proc in self.living)

    def _hold(self) -> None:
        for proc in self.living:
            if proc.pid in self._wardens and not proc.stopped and self._guards(proc):
                send(proc, signal.SIGSTOP)

    def _wake(self) -> None:
        """Let stopped processes go on: until then they act on nothing but SIGKILL."""
        for proc in self.living:
            if proc.stopped and not (proc.pid in self._wardens and self._guards(proc)):
                send(proc, signal.SIGCONT)

    def _due(self, sent: Mapping[Identity, bytes], number: signal.Signals) -> list[Proc]:
        """Return whom to signal now, where `sent` have been, under the names they had then.

        Nobody gets a signal twice, but for who runs another program since: between fork and exec a child still has
        the handlers of its parent, and swallows a signal that was meant for what it was about to become. And no
        SIGTERM goes to a helper that a process starts in order to obey it (`trap 'docker compose down' TERM`): who
        is new and has a living parent among those to be stopped.
        """
        due = [proc for proc in self.living if sent.get(proc.identity) != proc.name]
        if number == signal.SIGKILL:
            return due
        due = [proc for proc in due if not self._is_scaffold(proc)]
        if not sent:
            return due
        parents = {proc.pid for proc in self.living}
        return [proc for proc in due if proc.identity in sent or proc.parent not in parents]

    def _signal(self, procs: list[Proc], number: signal.Signals) -> None:
        escalating = number == signal.SIGKILL
        groups = {proc.group for proc in procs} if escalating else set()
        for proc in procs:
            if not send(proc, number) or self._is_scaffold(proc):
                continue
            if escalating and proc.identity in self._tally.signalled:
                self._tally.escalated.add(proc.identity)
            self._tally.signalled.add(proc.identity)
        # A tree that forks faster than we look is caught by its groups: a signal to a group spares none that is being
        # forked. All in them descend from the command, because nobody can join a session from outside.
        for group in groups - {os.getpgrp(), 0, 1}:
            with suppress(OSError):
                os.killpg(group, number)


def send(proc: Proc, number: signal.Signals) -> bool:
    """Signal `proc` if it is still the same process; returns whether it was sent. Without start time: its group."""
    if not proc.start:
        return _tried(os.killpg, proc.group, number)
    fd = _open(proc)
    if fd is None:
        return _same(proc) and _tried(os.kill, proc.pid, number)
    try:
        # The descriptor holds the process, so that what is looked at now is also what is signalled.
        if sys.platform != "linux" or not _same(proc):
            return False
        return _tried(signal.pidfd_send_signal, fd, number)
    finally:
        os.close(fd)


async def _ends_of(procs: list[Proc], seconds: float) -> None:
    """Wait until `procs` have ended, at most for `seconds`: one after the other, since all of them have to."""
    with trio.move_on_after(seconds):
        for proc in procs:
            await _end_of(proc)


async def _end_of(proc: Proc) -> None:
    """Return when `proc` has ended or is not that process any more. For ever where the system cannot tell."""
    fd = _open(proc)
    if fd is None:
        if proc.start and not _same(proc):
            await trio.lowlevel.checkpoint()
        else:
            await trio.sleep_forever()  # the caller looks again after a pause
        return
    try:
        if _same(proc):
            await trio.lowlevel.wait_readable(fd)
    finally:
        trio.lowlevel.notify_closing(fd)
        os.close(fd)


def _open(proc: Proc) -> int | None:
    """Return a pidfd, or `None` where there are none: no such process, an old kernel, no descriptor left."""
    if sys.platform != "linux" or not proc.start:
        return None
    try:
        return os.pidfd_open(proc.pid)
    except (OSError, AttributeError):
        return None


def _same(proc: Proc) -> bool:
    now = proctree.read(proc.pid)
    return now is not None and now.start == proc.start


def _tried(call: Callable[..., None], *args: int) -> bool:
    try:
        call(*args)
    except OSError:
        return False
    return True
