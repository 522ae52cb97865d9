"""Spawn, pump, reap: with the modules it is made of, the only part of NovaCode that starts or signals a process.

A command is the leader of a session of its own, with stdin from nowhere and one pipe for stdout and stderr. It is over
when the leader has ended. What it leaves running is told, and stopped by `sweep`. Cancelling stops all of it: SIGTERM,
a grace, SIGKILL, each followed by a wait for the end; `census` says who "all" is.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import trio

from novacode.errors import ToolFailed
from novacode.grace import DEFAULT, Grace, cleanup
from novacode.values.events import Reaped
from novacode.workspace import proctree
from novacode.workspace.base import Command, Exit
from novacode.workspace.census import census_of_this_system
from novacode.workspace.environment import MARKER, command_environment, is_provider_key
from novacode.workspace.family import Census, Family, Leader
from novacode.workspace.proctree import Proc
from novacode.workspace.pump import Pump, feed
from novacode.workspace.starting import why_not_started
from novacode.workspace.stopping import Stop, Tally
from novacode.workspace.subreaper import HERE

if TYPE_CHECKING:
    from novacode.workspace.sandbox import Sandbox

__all__ = ["RealProcesses"]


class RealProcesses:
    """The processes of one session; implements `Processes`.

    `drop_env` is asked about each variable of our environment: what it returns true for, no command gets to see. On
    systems without `/proc` (macOS) only the process group of a command is known: `weakness` says so.

    At the first command this process becomes a child subreaper for good. `sweep` therefore also takes orphans that
    carry no marker; a child that another part of this process has put into a session of its own must be `spare`d.

    With a `sandbox` all commands run in it but those that are not to be confined. What one leaves running there is
    killed when it ends, because its process namespace ends with it.
    """

    def __init__(
        self,
        grace: Grace = DEFAULT,
        drop_env: Callable[[str], bool] = is_provider_key,
        census: Census | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._grace = grace
        self._drop_env = drop_env
        inherited = os.environ.get(MARKER, "")  # noqa: TID251 - this module passes the environment on
        self._census = census or census_of_this_system(inherited)
        self._left: dict[Family, Pump] = {}
        self._stops: list[Stop] = []
        self._tally = Tally()
        self._hurried = False

    async def run(
        self,
        command: Command,
        output: Callable[[bytes], None],
        errors: Callable[[bytes], None] | None = None,
    ) -> Exit:
        """Run `command` to its end; see `Processes.run`.

        Where `output` or `errors` raises, the command is stopped and the exception raised again.
        """
        for pump in self._left.values():
            pump.drain()
        family, pump = await self._spawn(command, output, errors)
        try:
            code = await self._to_its_end(family, pump, command)
            if family.confined:
                await self._until_gone(family)
        except BaseException:
            if command.dialogue is not None:  # its stdin is closed by now
                with cleanup(command.dialogue.patience):
                    await _pumping((pump,), family.leader.wait)
                family.poll()
            await self._stop_family(family, pump)
            # A nursery wraps `Cancelled` in a group; callers shall see it plain.
            await trio.lowlevel.checkpoint_if_cancelled()
            raise
        pump.drain()
        left = self._census.left_by(family)
        self._part_with(family, pump, left)
        return Exit(code, tuple(proc.pid for proc in left), family.confined)

    async def sweep(self) -> None:
        """Stop and reap what commands have left running; see `Processes.sweep`.

        Commands still under way are not touched. No checkpoint where nothing is left.
        """
        left = dict(self._left)
        try:
            await self._stop(lambda: [*self._census.living(left), *self._census.strays()], left)
        finally:
            for family, pump in left.items():
                self._part_with(family, pump, self._census.living([family]))
            self._hurried = False

    def hurry(self) -> None:
        """Skip every grace under way, and that of what is swept right after; see `Processes.hurry`."""
        self._hurried = self._hurried or bool(self._stops)
        for stop in self._stops:
            stop.hurry()

    def waiting_for(self) -> tuple[str, ...]:
        """Name what is being stopped now: `4711 sleep 300`."""
        procs = {proc.identity: proc for stop in self._stops for proc in stop.waiting_for}
        return tuple(f"{proc.pid} {proctree.command_line(proc.pid)}".rstrip() for proc in procs.values())

    def spare(self, pid: int) -> None:
        """Tell that `pid`, a child of this process in a session of its own, is no command's: `sweep` leaves it."""
        self._census.spare(pid)

    @property
    def reaped(self) -> Reaped:
        """What stopping has taken since this object was made; `survivors` are those that are alive even now."""
        alive = [pid for pid, start in self._tally.survivors if _alive(pid, start)]
        return Reaped(
            processes=len(self._tally.signalled), escalated=len(self._tally.escalated), survivors=tuple(sorted(alive))
        )

    @property
    def weakness(self) -> str:
        """What could outlive a stop on this system, for people; empty where nothing can. Known after the first run."""
        return self._census.weakness

    async def _spawn(
        self, command: Command, output: Callable[[bytes], None], errors: Callable[[bytes], None] | None
    ) -> tuple[Family, Pump]:
        """Start `command`. Cancelled before it was started or not at all; raises `ToolFailed` where it cannot be."""
        self._census.begin()
        key, marker = self._census.marker(command.marker)
        ours = os.environ  # noqa: TID251 - this module passes the environment on
        environment = command_environment(ours, command.env, cwd=command.cwd, marker=marker, drop=self._drop_env)
        ends: list[int] = []
        confined = command.confined and self._sandbox is not None
        HERE.spawning += 1
        try:
            ends.extend(os.pipe())
            if errors is not None:
                ends.extend(os.pipe())
            leader = await self._start(command, environment, ends[1::2])
        except (OSError, ValueError, IndexError) as exc:
            _close(ends)
            problem = ValueError("it is empty") if isinstance(exc, IndexError) else exc
            raise ToolFailed(why_not_started(command, problem)) from exc
        except BaseException:
            _close(ends)
            raise
        finally:
            HERE.spawning -= 1
        HERE.owned.add(leader.pid)
        family = Family(key, marker, leader, confined=confined)
        self._census.add(family)
        _close(ends[1::2])
        pipes = [(ends[0], output)]
        if errors is not None:
            pipes.append((ends[2], errors))
        return family, Pump(*pipes, closed=command.dialogue.closed if command.dialogue else None)

    async def _start(self, command: Command, environment: Mapping[str, str], ends: list[int]) -> Leader:
        if self._sandbox is not None and command.confined:
            from novacode.workspace.leader import OwnLeader  # only in a sandbox

            await trio.lowlevel.checkpoint()
            argv = self._sandbox.argv(command.argv, command.cwd, environment)
            return OwnLeader.start(argv, command.cwd, environment, ends, stdin=_is_written_to(command))
        return await trio.lowlevel.open_process(
            list(command.argv),
            stdin=subprocess.PIPE if _is_written_to(command) else subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[-1],
            cwd=command.cwd,
            env=environment,
            start_new_session=True,
        )

    async def _until_gone(self, family: Family) -> None:
        """Wait until the kernel has ended all that was in a sandbox whose command has ended. Nothing is counted."""
        stop = Stop(lambda: self._census.living([family]), Tally(), self._grace)
        if stop.look():
            stop.hurry()
            await stop.run()

    async def _to_its_end(self, family: Family, pump: Pump, command: Command) -> int:
        """Pump until the leader has ended, and then a moment longer for what it left in between."""
        code = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_pump_or_give_up, pump, nursery.cancel_scope)
            if family.leader.stdin is not None:
                nursery.start_soon(_write, family.leader.stdin, command)
            code = await family.leader.wait()
            family.poll()
            with trio.move_on_after(self._grace.pipes):
                await pump.ended.wait()
            nursery.cancel_scope.cancel()
        if pump.failure is not None:
            raise pump.failure
        return code

    async def _stop_family(self, family: Family, pump: Pump) -> None:
        """Stop a command that did not come to its end, taking what it says until it is gone."""
        try:
            await self._stop(lambda: self._census.living([family]), {family: pump})
        finally:
            pump.drain()
            self._part_with(family, pump, self._census.living([family]))

    async def _stop(self, find: Callable[[], list[Proc]], families: Mapping[Family, Pump]) -> None:
        """Stop what `find` returns, reading from `families` meanwhile: nobody shall be stuck on a full pipe."""
        stop = Stop(find, self._tally, self._grace, {family.leader.pid for family in families if family.confined})
        if not stop.look():
            return
        if self._hurried:
            stop.hurry()
        self._stops.append(stop)
        try:
            with cleanup(self._grace.term + self._grace.kill):
                await _pumping(families.values(), stop.run)
        finally:
            stop.close()
            self._stops.remove(stop)

    def _part_with(self, family: Family, pump: Pump, left: list[Proc]) -> None:
        """Forget a family of which nothing is left; keep the others, with their pipe, for `sweep`."""
        if left:
            self._left[family] = pump
            pump.hold()
            return
        self._left.pop(family, None)
        self._census.forget(family)
        pump.close()


async def _pumping(pumps: Iterable[Pump], work: Callable[[], Awaitable[object]]) -> None:
    async with trio.open_nursery() as nursery:
        for pump in pumps:
            nursery.start_soon(pump.run)
        await work()
        nursery.cancel_scope.cancel()


def _is_written_to(command: Command) -> bool:
    return bool(command.stdin) or command.dialogue is not None


async def _write(stdin: trio.abc.SendStream, command: Command) -> None:
    if command.dialogue is None:
        await feed(stdin, command.stdin)
        return
    async with stdin:
        await command.dialogue.write(stdin)


async def _pump_or_give_up(pump: Pump, scope: trio.CancelScope) -> None:
    await pump.run()
    if pump.failure is not None:
        scope.cancel()


def _alive(pid: int, start: int) -> bool:
    now = proctree.read(pid)
    return not start if now is None else now.start == start and not now.gone


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
