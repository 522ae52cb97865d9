"""A tool that does what a test wants of it, and the bench on which any tool is run without the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import trio

from novacode.errors import ToolFailed
from novacode.grace import cleanup
from novacode.tools.base import Claims, Effects, Permit, SeenFiles, Tool, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.schema import structure
from novacode.values.events import Reaped
from novacode.values.ids import CallId
from novacode.values.parts import JSON, ToolCall
from novacode.workspace.base import Command, Exit, Processes
from novacode.workspace.jobs import Jobs
from novacode.workspace.paths import Workspace

__all__ = ["Bench", "FakeArgs", "FakeTool", "NoProcesses"]

Ending = Literal["ok", "raise", "exit_code"]


@attrs.frozen
class FakeArgs:
    """Parameters of a `FakeTool`: what it claims, and a text it gives back."""

    text: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@attrs.define
class FakeTool:
    """Takes `takes` seconds of trio's clock, then ends as `outcome` says; writes down what happened in `log`.

    `log` holds `("began" | "ended" | "cancelled" | "cleaned", call id)`, in order. `cleanup_takes` seconds pass in a
    shield when it is cancelled. `swallow` makes it commit the sin of returning as if nothing had been asked;
    `group` makes "raise" raise an exception group. `effect` is called when its work is done, if it gets so far.
    """

    name: str = "fake"
    takes: float = 0.0
    outcome: Ending = "ok"
    cleanup_takes: float = 0.0
    swallow: bool = False
    group: bool = False
    own_limit: float | None = None
    effect: Callable[[FakeArgs], None] = lambda _args: None
    log: list[tuple[str, CallId]] = attrs.Factory(list)

    @property
    def spec(self) -> ToolSpec[FakeArgs]:
        """Its declaration."""
        return ToolSpec(self.name, "Does what the test wants.", FakeArgs)

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """What its arguments say."""
        return Claims(_paths(arguments, "reads", workspace), _paths(arguments, "writes", workspace))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """What its arguments say."""
        claims = self.claims(arguments, workspace)
        text = arguments.get("text")
        return Effects(
            f"{self.name} {text}",
            tuple(sorted(claims.reads)),
            tuple(sorted(claims.writes)),
            subject=text if isinstance(text, str) else "",
        )

    def limit(self, args: FakeArgs) -> float | None:
        """What it was made with."""
        return self.own_limit

    async def run(self, permit: Permit[FakeArgs], ctx: ToolContext) -> ToolOutput:
        """Do what it was made to do."""
        call = permit.call.id
        self.log.append(("began", call))
        ctx.output(f"{permit.args.text}\n".encode())
        try:
            await trio.sleep(self.takes)
        except trio.Cancelled:
            self.log.append(("cancelled", call))
            if self.cleanup_takes:
                with cleanup(self.cleanup_takes * 2):
                    await trio.sleep(self.cleanup_takes)
                self.log.append(("cleaned", call))
            if self.swallow:
                return ToolOutput.of("as if nothing had happened")
            raise
        self.effect(permit.args)
        self.log.append(("ended", call))
        return self._end(permit.args)

    def _end(self, args: FakeArgs) -> ToolOutput:
        if self.outcome == "exit_code":
            return ToolOutput.of(args.text, exit_code=3)
        if self.outcome == "ok":
            return ToolOutput.of(args.text)
        failure = ToolFailed(f"{self.name} failed as it was told to")
        raise ExceptionGroup("several", [failure, ValueError("another")]) if self.group else failure


def _paths(arguments: Mapping[str, JSON], name: str, workspace: Workspace) -> frozenset[Path]:
    listed = arguments.get(name)
    items = listed if isinstance(listed, list | tuple) else ()
    return frozenset(workspace.resolve(item) for item in items if isinstance(item, str))


class NoProcesses:
    """Processes for tools that start none: starting one is the test's failure."""

    reaped = Reaped()

    async def run(
        self, command: Command, output: Callable[[bytes], None], errors: Callable[[bytes], None] | None = None
    ) -> Exit:
        """Refuse."""
        raise AssertionError(f"{command.argv} was started")

    async def sweep(self) -> None:
        """Do nothing."""

    def hurry(self) -> None:
        """Do nothing."""

    def waiting_for(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


@attrs.define
class Bench:
    """A workspace and what a tool may use, without engine and pipeline: `await bench.run(tool, path="a")`."""

    root: Path
    workspace: Workspace
    spill: Path
    processes: Processes = attrs.Factory(NoProcesses)
    seen: SeenFiles = attrs.Factory(SeenFiles)
    jobs: Jobs = attrs.Factory(Jobs)
    live: list[bytes] = attrs.Factory(list)
    calls: int = 0
    unreadable: Callable[[Path], bool] | None = None

    @classmethod
    def at(cls, root: Path, spill: Path) -> Bench:
        """Return a bench whose workspace is `root`."""
        return cls(root, Workspace.at(root), spill)

    def context(self, call: CallId) -> ToolContext:
        """Return what a tool gets for `call`."""
        take = self.live.append
        return ToolContext(
            call, self.workspace, self.processes, self.seen, take, self.spill, self.jobs, self.unreadable
        )

    def permit(self, tool: Tool[Any], arguments: Mapping[str, JSON]) -> Permit[Any]:
        """Return a permit for `arguments`, validated. Raises `InvalidArguments`."""
        self.calls += 1
        call = ToolCall(CallId(f"call_{self.calls}"), self.calls, tool.spec.name, arguments)
        return Permit(call, structure(tool.spec.args, arguments), "the test")

    async def output(self, tool: Tool[Any], /, **arguments: JSON) -> ToolOutput:
        """Run `tool` and return all it says."""
        permit = self.permit(tool, arguments)
        return await tool.run(permit, self.context(permit.call.id))

    async def run(self, tool: Tool[Any], /, **arguments: JSON) -> str:
        """Run `tool` and return its text for the model."""
        said = await self.output(tool, **arguments)
        return "".join(getattr(part, "text", f"<{type(part).__name__}>") for part in said.content)

    def put(self, name: str, data: bytes | str) -> Path:
        """Write a file into the workspace."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path
