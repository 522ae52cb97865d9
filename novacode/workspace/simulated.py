"""A world in memory: files that are texts, and tools that do what a table says, on the trio clock.

Nothing real is run, read or written. It shows what the engine does with calls, questions and cancellations; it says
nothing about real processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import attrs
import trio

from novacode import grace
from novacode.errors import InputError, ToolFailed
from novacode.values.events import Reaped
from novacode.values.ids import CallId
from novacode.workspace.base import Command, Exit

__all__ = ["NoProcesses", "ScriptedTool", "SimulatedWorld", "Simulation", "parse_simulation"]


@attrs.frozen
class ScriptedTool:
    """What calls of the tool `name` come to whose subject (command, path, pattern) fits the glob `when`.

    `takes` and `cleanup` are seconds: of work, and of what must be done when it is cancelled. `writes` are files that
    are written when the work is done. `raises` makes the tool fail with a bug of that text. Without an `output` the
    tool answers from the files in memory.
    """

    name: str
    when: str = "*"
    output: str | None = None
    exit: int = 0
    takes: float = 0.0
    cleanup: float = 0.0
    raises: str = ""
    prints: str = ""
    writes: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Simulation:
    """What a world begins with. The first tool that fits a call is the one that counts."""

    files: Mapping[str, str] = attrs.field(factory=dict)
    tools: tuple[ScriptedTool, ...] = ()


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "when": str,
    "output": str,
    "exit": int,
    "takes": (int, float),
    "cleanup": (int, float),
    "raises": str,
    "prints": str,
    "writes": dict,
}


def parse_simulation(table: Mapping[str, Any], source: str) -> Simulation:
    """Return the simulation that the `[simulate]` table of a script describes.

    Raises `InputError` that names the place, the key, the value and what was expected.
    """
    unknown = set(table) - {"files", "tool"}
    if unknown:
        raise InputError(f"{source}: [simulate] has `{min(unknown)}`; it takes `files` and `tool`")
    files = _texts(table.get("files", {}), f"{source}: [simulate.files]")
    entries = table.get("tool", [])
    if not isinstance(entries, list):
        raise InputError(f"{source}: [simulate] `tool` is {entries!r}; write [[simulate.tool]] tables")
    return Simulation(
        files, tuple(_tool(entry, f"{source}: simulate.tool {at}") for at, entry in enumerate(entries, 1))
    )


def _tool(entry: Any, where: str) -> ScriptedTool:
    if not isinstance(entry, dict) or "name" not in entry:
        raise InputError(f"{where} is {entry!r}; it needs at least a `name`")
    for key, value in entry.items():
        if key not in _TYPES:
            raise InputError(f"{where} has `{key}`; it takes {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            raise InputError(f"{where}: `{key}` is {value!r}, which is not {_named(_TYPES[key])}")
        if isinstance(value, int | float) and key in ("takes", "cleanup") and value < 0:
            raise InputError(f"{where}: `{key}` is {value!r}; it must be 0 or more seconds")
    if "writes" in entry:
        _texts(entry["writes"], f"{where}: `writes`")
    return ScriptedTool(**entry)


def _texts(table: Any, where: str) -> Mapping[str, str]:
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise InputError(f"{where} is {table!r}; it takes paths with their text")
    return table


def _named(wanted: type | tuple[type, ...]) -> str:
    return "a number" if isinstance(wanted, tuple) else {str: "text", int: "a whole number", dict: "a table"}[wanted]


@attrs.define(eq=False)
class SimulatedWorld:
    """The world while it is played in. `under_way` are the calls that were entered and not left."""

    root: Path
    simulation: Simulation = attrs.field(factory=Simulation)
    files: dict[Path, str] = attrs.field(factory=dict)
    under_way: set[CallId] = attrs.field(factory=set)
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
        entry = self._entry(tool, subject)
        self.entered.append(call_id)
        self.under_way.add(call_id)
        try:
            return await self._played(call_id, entry, act, show)
        except trio.Cancelled:
            with grace.cleanup(entry.cleanup + 1.0):
                await trio.sleep(entry.cleanup)
            raise
        finally:
            self.under_way.discard(call_id)

    async def _played(
        self, call_id: CallId, entry: ScriptedTool, act: Callable[[], str], show: Callable[[bytes], None]
    ) -> tuple[str, int]:
        if entry.prints:
            show(entry.prints.encode())
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

    def _entry(self, tool: str, subject: str) -> ScriptedTool:
        for entry in self.simulation.tools:
            if entry.name == tool and fnmatchcase(subject, entry.when):
                return entry
        return ScriptedTool(tool)


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
