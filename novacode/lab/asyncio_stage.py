"""The world in which the asyncio executor does its work: the same scripts, simulated tools and person, and a log."""

from __future__ import annotations

import asyncio  # noqa: TID251 - what trio is compared with runs on it
import json

import attrs

from novacode.authority.commands import analyse
from novacode.authority.policy import Allow, Ask
from novacode.lab.asyncio_loop import VirtualLoop
from novacode.lab.props import subject_of
from novacode.lab.scripted import ROOT, Blueprint
from novacode.models.script_steps import CallStep
from novacode.tools.schema import InvalidArguments, structure
from novacode.tools.simulated import simulated_tools
from novacode.tools.toolset import Toolset
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace
from novacode.workspace.simulated import SimulatedWorld
from novacode.workspace.simulation import ScriptedTool

__all__ = ["World", "read_call"]

_SWEEP = 0.5  # seconds of reaping at the end of a run, as on the lab's other stages


def read_call(step: CallStep, call_id: str, index: int) -> ToolCall | None:
    """Return the call that a step of a script makes; `None` for one that is cut off or is no JSON object."""
    try:
        arguments = json.loads(step.raw)
    except ValueError:
        return None
    if step.cut or not isinstance(arguments, dict):
        return None
    return ToolCall(CallId(call_id), index, step.name, arguments)


@attrs.define(eq=False)
class World:
    """Tools, hooks and a person as the script has them. `log` is what really happened, in order.

    Its entries are those of the lab's other stages: `model`, `begin ID`, `done ID`, `end ID`, `strike`, `run ended`,
    and `write ID` for an effect. `alive` are the calls that were entered and not left, `cleaning` those of them that
    clean up, `asking` those a person is asked about.
    """

    blueprint: Blueprint
    loop: VirtualLoop
    log: list[str] = attrs.field(factory=list)
    entered: list[str] = attrs.field(factory=list)
    written: list[str] = attrs.field(factory=list)
    alive: set[str] = attrs.field(factory=set)
    cleaning: set[str] = attrs.field(factory=set)
    asking: set[str] = attrs.field(factory=set)
    _tools: Toolset = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        simulation = self.blueprint.simulation
        declared = simulated_tools(SimulatedWorld(ROOT, simulation), lambda line: analyse(line).read_only)
        self._tools = Toolset(declared, simulation.around.disabled)

    async def permitted(self, call: ToolCall) -> str:
        """Return why `call` may not run, as the outcome it then has; empty where it may. Asks where it must."""
        tool = self._tools.find(call.name)
        if tool is None:
            return "unknown_tool"
        if not self._tools.is_enabled(call.name):
            return "disabled"
        call, hook = await self._hooked(call)
        if hook == "deny":
            return "hook_denied"
        try:
            structure(tool.spec.args, call.arguments)
        except InvalidArguments:
            return "invalid"
        workspace = Workspace(ROOT)
        verdict = self.blueprint.policy.judge(call, tool.effects(call.arguments, workspace), workspace)
        if isinstance(verdict, Allow) and hook != "ask":
            return ""
        if isinstance(verdict, Ask | Allow) and await self._asked(call.id):
            return ""
        return "denied"

    async def _hooked(self, call: ToolCall) -> tuple[ToolCall, str]:
        """Return the call after its hook, and the hook's word: `deny`, `ask`, or nothing."""
        hook = self.blueprint.simulation.around.hook(call.name, subject_of(call.arguments))
        if hook is None:
            return call, ""
        await asyncio.sleep(hook.takes)
        rewritten = attrs.evolve(call, arguments={**call.arguments, **hook.rewrite}) if hook.rewrite else call
        return rewritten, "deny" if hook.deny or hook.raises else "ask" if hook.ask else ""

    async def _asked(self, call_id: str) -> bool:
        """Ask the person, and wait for as long as they take."""
        person = self.blueprint.simulation.around.person
        if person.answers == "absent":
            return False
        answer = self.loop.create_future()
        if person.answers != "none":
            self.loop.call_later(person.after, _answer, answer, person.answers == "allow")
        self.asking.add(call_id)
        try:
            return bool(await answer)
        finally:
            self.asking.discard(call_id)

    def limit(self, call: ToolCall) -> float | None:
        """Return the seconds `call` may take; `None` for as long as it likes."""
        tool = self._tools.find(call.name)
        assert tool is not None, "what may run is known"
        return tool.limit(structure(tool.spec.args, call.arguments))

    async def play(self, call: ToolCall) -> str:
        """Take the time `call` takes, then do it at once; return its outcome. Cancelled, it cleans up first."""
        entry = self.blueprint.simulation.tool(call.name, subject_of(call.arguments))
        self.log.append(f"begin {call.id}")
        self.entered.append(call.id)
        self.alive.add(call.id)
        try:
            return await self._played(call, entry)
        except asyncio.CancelledError:  # noqa: ASYNC103 - the script may ask for a tool that swallows it
            self.cleaning.add(call.id)
            await asyncio.sleep(entry.cleanup)
            if entry.sin == "swallow":
                return "ok"  # noqa: ASYNC104
            raise
        finally:
            self.cleaning.discard(call.id)
            self.alive.discard(call.id)
            self.log.append(f"end {call.id}")

    async def _played(self, call: ToolCall, entry: ScriptedTool) -> str:
        await asyncio.sleep(entry.takes)
        if entry.raises or entry.sin == "group":
            raise RuntimeError(entry.raises or "failed while it was being stopped")
        changes = call.name in ("write", "edit") and entry.output is None
        for _ in range(changes + len(entry.writes)):
            self.written.append(call.id)
            self.log.append(f"write {call.id}")
        self.log.append(f"done {call.id}")
        return "ok"

    async def sweep(self) -> None:
        """Reap, which takes half a second here."""
        self.log.append("sweep begins")
        await asyncio.sleep(_SWEEP)
        self.log.append("sweep ends")


def _answer(future: asyncio.Future[bool], allowed: bool) -> None:
    if not future.done():
        future.set_result(allowed)
