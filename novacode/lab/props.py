"""What stands on a scripted stage around the real engine: a wire, hooks, snapshots and processes that keep a log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.testing

from novacode.authority.hooks import HookAnswer, HookWord, NoHooks
from novacode.errors import ModelFailed
from novacode.lab.mishaps import Mishap, MishapKind
from novacode.models.script import Script, ScriptWire
from novacode.models.wire import WireResponse
from novacode.protocols.base import WireRequest
from novacode.tools.base import Claims, Effects, Permit, Tool, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import CallId
from novacode.values.parts import JSON, ToolCall
from novacode.values.results import ToolResult
from novacode.workspace.base import NoSnapshots
from novacode.workspace.paths import Workspace
from novacode.workspace.simulated import NoProcesses
from novacode.workspace.simulation import Around, ScriptedHook

__all__ = ["LoggedHooks", "LoggedProcesses", "LoggedSnapshots", "LoggedWire", "Watched", "subject_of"]

_JUMP = 3600.0
_SWEEP = 0.5  # seconds that reaping takes here, so that there is a time in which it can be got wrong


class LoggedWire:
    """The scripted wire, which notes requests, counts what is open, and breaks off where a mishap wants it."""

    def __init__(self, script: Script, log: list[str], mishap: Mishap) -> None:
        self.open_streams = 0
        self._wire = ScriptWire(script)
        self._log = log
        self._mishap = mishap
        self.chunks = 0

    def play(self, script: Script) -> None:
        """Go on with another script; whatever was left of the old one is not played any more."""
        self._wire = ScriptWire(script)
        self._mishap = Mishap()

    def open(self, request: WireRequest) -> AbstractAsyncContextManager[WireResponse]:
        """Note the request and take the next turn of the script."""
        self._log.append("model")
        return self._open(request)

    async def aclose(self) -> None:
        """Close the script."""
        await self._wire.aclose()

    @asynccontextmanager
    async def _open(self, request: WireRequest) -> AsyncIterator[WireResponse]:
        self.open_streams += 1
        try:
            async with self._wire.open(request) as response:
                yield _LoggedResponse(response.status, response.headers, response, self)
        finally:
            self.open_streams -= 1

    def count_chunk(self) -> None:
        """Count a chunk that is asked for. Raises `ModelFailed` where the stream is to break off instead."""
        self.chunks += 1
        if self._mishap.hits(MishapKind.CUT, self.chunks):
            raise ModelFailed(Failure(FailureKind.NETWORK, "the connection broke, as a mishap of the lab", True))
        if self._mishap.hits(MishapKind.CLOCK_JUMP, self.chunks):
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, trio.testing.MockClock), "the lab runs on a virtual clock"
            clock.jump(_JUMP)


@attrs.define(eq=False)
class _LoggedResponse:
    status: int
    headers: Mapping[str, str]
    _response: WireResponse
    _wire: LoggedWire

    async def receive_some(self) -> bytes:
        data = await self._response.receive_some()
        self._wire.count_chunk()
        return data


class Watched:
    """A tool that notes when it is entered and left, and with which call."""

    def __init__(self, tool: Tool[Any], log: list[str], ran: dict[CallId, ToolCall], mishap: Mishap) -> None:
        self._tool = tool
        self._log = log
        self._ran = ran
        self._mishap = mishap

    @property
    def spec(self) -> ToolSpec[Any]:
        """As the tool's."""
        return self._tool.spec

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """As the tool's."""
        return self._tool.claims(arguments, workspace)

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """As the tool's."""
        return self._tool.effects(arguments, workspace)

    def limit(self, args: Any) -> float | None:
        """As the tool's."""
        return self._tool.limit(args)

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        """Run the tool between two notes."""
        call = permit.call
        self._log.append(f"begin {call.id}")
        self._ran[call.id] = call
        try:
            if self._mishap.hits(MishapKind.TOOL_RAISES, len(self._ran)):
                raise RuntimeError("the tool failed, as a mishap of the lab")
            output = await self._tool.run(permit, ctx)
            self._log.append(f"done {call.id}")
            return output
        finally:
            self._log.append(f"end {call.id}")


class LoggedHooks(NoHooks):
    """The hooks that a script describes."""

    def __init__(self, around: Around, log: list[str], mishap: Mishap) -> None:
        self._around = around
        self._log = log
        self._mishap = mishap
        self.asked = 0

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Do what the first hook that fits the call is scripted to do."""
        self._log.append(f"pre {call.id}")
        self.asked += 1
        if self._mishap.hits(MishapKind.HOOK_CRASH, self.asked):
            raise RuntimeError("the hook crashed, as a mishap of the lab")
        hook = self._around.hook(call.name, subject_of(call.arguments))
        if hook is None:
            return HookAnswer(call)
        answer = await _hooked(hook, call)
        if answer.word is HookWord.DENY:
            self._log.append(f"refuse {call.id}")
        return answer

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Note it; the result stays as it is. A checkpoint, as asking a real hook is."""
        self._log.append(f"post {call.id}")
        await trio.lowlevel.checkpoint()
        return result


async def _hooked(hook: ScriptedHook, call: ToolCall) -> HookAnswer:
    await trio.sleep(hook.takes)
    if hook.raises:
        raise RuntimeError(hook.raises)
    if hook.deny:
        return HookAnswer(call, HookWord.DENY, hook.deny)
    rewritten = attrs.evolve(call, arguments={**call.arguments, **hook.rewrite}) if hook.rewrite else call
    return HookAnswer(rewritten, HookWord.ASK, hook.ask) if hook.ask else HookAnswer(rewritten)


def subject_of(arguments: Mapping[str, JSON]) -> str:
    """Return what scripted tools and hooks are chosen by: the command, the pattern or the path."""
    return str(arguments.get("command") or arguments.get("pattern") or arguments.get("path") or "")


class LoggedSnapshots(NoSnapshots):
    """Snapshots that are only noted."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def take(self, call: CallId, paths: Sequence[Path]) -> Any:
        """Note it."""
        self._log.append(f"take {call}")
        return await super().take(call, paths)

    async def record(self, call: CallId, *more: Any) -> Any:
        """Note it."""
        self._log.append(f"record {call}")
        return await super().record(call, *more)


class LoggedProcesses(NoProcesses):
    """No processes, and a sweep that takes its time."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def sweep(self) -> None:
        """Take half a second, between two notes."""
        self._log.append("sweep begins")
        await trio.sleep(_SWEEP)
        self._log.append("sweep ends")
