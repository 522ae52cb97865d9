"""A world in memory: files that are texts, and tools that do what a table says, on the trio clock.

Nothing real is run, read or written. It shows what the engine does with calls, questions and cancellations; it says
nothing about real processes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import trio

from novacode import grace
from novacode.errors import ToolFailed
from novacode.values.events import Reaped
from novacode.values.ids import CallId
from novacode.workspace.base import Command, Exit
from novacode.workspace.simulation import ScriptedTool, Simulation, parse_simulation

__all__ = ["NoProcesses", "ScriptedTool", "SimulatedWorld", "Simulation", "parse_simulation"]


@attrs.define(eq=False)
class SimulatedWorld:
    """The world while it is played in. `under_way` are the calls that were entered and not left.

    `cleaning` are those among them that were cancelled and clean up.
    """

    root: Path
    simulation: Simulation = attrs.field(factory=Simulation)
    files: dict[Path, str] = attrs.field(factory=dict)
    under_way: set[CallId] = attrs.field(factory=set)
    cleaning: set[CallId] = attrs.field(factory=set)
    entered: list[CallId] = attrs.field(factory=list)
    written: list[tuple[CallId, Path]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        for name, text in self.simulation.files.items():
            self.files[self.root / name] = text

    async def play(
        self, call_id: CallId, tool: str, subject: str, act: Callable[[], str], show: Callable[[bytes], None]
    ) -> tuple[str, int]:
        """Take the time a call takes, then do it at once; return its output and exit code. A checkpoint.

        Cancelled, it does what its clean-up takes, shielded and bounded, and has not had its effect. `act` is what it
        does where the table gives no output; `show` gets what it prints while it works.
        """
        entry = self.simulation.tool(tool, subject)
        self.entered.append(call_id)
        self.under_way.add(call_id)
        try:
            return await self._played(call_id, entry, act, show)
        except trio.Cancelled:  # noqa: ASYNC103 - the script may ask for a tool that swallows it
            self.cleaning.add(call_id)
            with grace.cleanup(entry.cleanup + 1.0):
                await trio.sleep(entry.cleanup)
            if entry.sin == "swallow":
                return "it went on as if nothing had been asked", 0  # noqa: ASYNC104
            raise
        finally:
            self.cleaning.discard(call_id)
            self.under_way.discard(call_id)

    async def _played(
        self, call_id: CallId, entry: ScriptedTool, act: Callable[[], str], show: Callable[[bytes], None]
    ) -> tuple[str, int]:
        if entry.prints:
            show(entry.prints.encode())
        if entry.sin == "group":
            await _work_with_a_failing_child(entry.takes)
        await trio.sleep(entry.takes)
        if entry.raises:
            raise RuntimeError(entry.raises)
        output = act() if entry.output is None else entry.output
        for name, text in entry.writes.items():
            self.put(call_id, self.root / name, text)
        return output, entry.exit

    def put(self, call_id: CallId, path: Path, text: str) -> None:
        """Write a file. Synchronous: the effect and the note of whose it is are one step."""
        self.files[path] = text
        self.written.append((call_id, path))

    def text(self, path: Path, shown: str) -> str:
        """Return what a file holds. Raises `ToolFailed` where there is none."""
        if path not in self.files:
            raise ToolFailed(f"`{shown}` does not exist in this simulated workspace.")
        return self.files[path]


async def _work_with_a_failing_child(seconds: float) -> None:
    """Work in a nursery whose other child fails when it is stopped, be it because the work is done."""

    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("failed while it was being stopped")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)
        await trio.sleep(seconds)
        nursery.cancel_scope.cancel()


class NoProcesses:
    """The processes of a simulated world: there are none, and none can be started."""

    async def run(
        self, command: Command, output: Callable[[bytes], None], errors: Callable[[bytes], None] | None = None
    ) -> Exit:
        """Refuse: raises `ToolFailed`."""
        raise ToolFailed(f"this is a simulation; `{command.argv[0]}` is not run")

    async def sweep(self) -> None:
        """Do nothing; a checkpoint, as it is where there is something to do."""
        await trio.lowlevel.checkpoint()

    def hurry(self) -> None:
        """Do nothing."""

    def waiting_for(self) -> tuple[str, ...]:
        """Name nothing."""
        return ()

    @property
    def reaped(self) -> Reaped:
        """Nothing."""
        return Reaped()
