"""Processes that exist on trio's clock alone: for everything above the floor that runs real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import attrs
import trio

from novacode.errors import ToolFailed
from novacode.grace import DEFAULT, Grace, cleanup
from novacode.values.events import Reaped
from novacode.workspace.base import Command, Exit

__all__ = ["FakeProcesses", "Program"]


@attrs.frozen
class Program:
    """What a command does: says `output`, piece by piece over `seconds`, then ends with `code`.

    `cleanup` is how long it takes to obey SIGTERM; longer than the grace, and it has to be killed. `leaves` names
    what it leaves running in the background. `errors` is what it says on stderr, before anything else.
    """

    output: tuple[bytes, ...] = ()
    seconds: float = 0.0
    code: int = 0
    cleanup: float = 0.0
    leaves: tuple[str, ...] = ()
    errors: bytes = b""


class FakeProcesses:
    """Implements `Processes`. A command is known by its last word, which for `sh -c TEXT` is the text.

    `started`, `finished` and `cancelled` hold the texts in order, `alive` pid and text of what is there now.
    """

    def __init__(self, programs: Mapping[str, Program], grace: Grace = DEFAULT) -> None:
        self.programs = dict(programs)
        self.commands: list[Command] = []
        self.started: list[str] = []
        self.finished: list[str] = []
        self.cancelled: list[str] = []
        self.alive: dict[int, str] = {}
        self._grace = grace
        self._pids = 1000
        self._signalled = 0
        self._escalated = 0
        self._stopping: dict[int, str] = {}
        self._patience: set[trio.CancelScope] = set()

    async def run(
        self,
        command: Command,
        output: Callable[[bytes], None],
        errors: Callable[[bytes], None] | None = None,
    ) -> Exit:
        """Do what the program of `command` says; see `Processes.run`."""
        await trio.lowlevel.checkpoint()
        text = command.argv[-1] if command.argv else ""
        program = self.programs.get(text)
        if program is None:
            raise ToolFailed(f"{text!r} could not be started: there is no such program. Nothing was run.")
        pid = self._born(text)
        self.commands.append(command)
        self.started.append(text)
        try:
            if program.errors:
                (errors or output)(program.errors)
            for piece in program.output:
                output(piece)
                await trio.sleep(program.seconds / len(program.output))
            if not program.output:
                await trio.sleep(program.seconds)
        except trio.Cancelled:
            await self._stop(pid, program.cleanup)
            self.cancelled.append(text)
            raise
        except BaseException:
            await self._stop(pid, program.cleanup)
            raise
        del self.alive[pid]
        self.finished.append(text)
        return Exit(program.code, tuple(self._born(left) for left in program.leaves))

    async def sweep(self) -> None:
        """End what was left in the background."""
        for pid in [pid for pid in self.alive if pid not in self._stopping]:
            await self._stop(pid, 0)

    def hurry(self) -> None:
        """Skip the grace of what is being stopped."""
        for scope in self._patience:
            scope.cancel()

    def waiting_for(self) -> tuple[str, ...]:
        """Name what is being stopped."""
        return tuple(f"{pid} {text}" for pid, text in self._stopping.items())

    @property
    def reaped(self) -> Reaped:
        """What stopping took so far."""
        return Reaped(processes=self._signalled, escalated=self._escalated)

    def _born(self, text: str) -> int:
        self._pids += 1
        self.alive[self._pids] = text
        return self._pids

    async def _stop(self, pid: int, seconds: float) -> None:
        self._signalled += 1
        self._stopping[pid] = self.alive[pid]
        try:
            with cleanup(self._grace.term) as scope:
                self._patience.add(scope)
                await trio.sleep(seconds)
            if scope.cancelled_caught:
                self._escalated += 1
        finally:
            with suppress(KeyError):
                self._patience.remove(scope)
            del self._stopping[pid], self.alive[pid]
