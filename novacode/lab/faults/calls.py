"""Faults on the way of a call: hooks, permission, arguments, the gate, execution."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import trio

from novacode.authority.hooks import HookAnswer, HookWord
from novacode.engine import gate, ledger, pipeline, run
from novacode.lab.faults.patching import Fault, Patch
from novacode.tools.schema import InvalidArguments, structure
from novacode.values.events import Phase
from novacode.values.results import Outcome, ToolResult

__all__ = ["FAULTS"]


def _gate_ignored(patch: Patch) -> None:
    patch.set(gate, "conflict", lambda one, other: False)


def _gate_for_everything(patch: Patch) -> None:
    patch.set(gate, "conflict", lambda one, other: True)


def _ticket_released_early(patch: Patch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        kit.gate.release(slot.ticket)
        return await whole(slot, tool, permit, kit)

    patch.set(pipeline, "_execute", execute)


def _ticket_never_released(patch: Patch) -> None:
    patch.set(gate.Gate, "release", lambda self, ticket: None)


def _denied_goes_on(patch: Patch) -> None:
    whole = pipeline._permitted

    async def permitted(*args: Any) -> str:
        with contextlib.suppress(pipeline._Refused):
            return await whole(*args)
        return "nobody"

    patch.set(pipeline, "_permitted", permitted)


def _hooks_skipped(patch: Patch) -> None:
    whole = pipeline._hooked

    async def hooked(slot: Any, call: Any, kit: Any) -> Any:
        return await whole(slot, call, attrs.evolve(kit, hooks=_Mute(kit.hooks)))

    patch.set(pipeline, "_hooked", hooked)


class _Around:
    """Something with a part of it replaced."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class _Mute(_Around):
    """Hooks that are not asked before a call."""

    async def pre_tool_use(self, call: Any) -> Any:
        return HookAnswer(call)


def _hook_denial_ignored(patch: Patch) -> None:
    whole = pipeline._hooked

    async def hooked(slot: Any, call: Any, kit: Any) -> Any:
        return await whole(slot, call, attrs.evolve(kit, hooks=_Willing(kit.hooks)))

    patch.set(pipeline, "_hooked", hooked)


class _Willing(_Around):
    """Hooks whose no is not heard."""

    async def pre_tool_use(self, call: Any) -> Any:
        answer = await self.real.pre_tool_use(call)
        return attrs.evolve(answer, word=HookWord.PASS) if answer.word is HookWord.DENY else answer


def _rewrite_not_run(patch: Patch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        args = structure(tool.spec.args, slot.call.arguments)
        return await whole(slot, tool, attrs.evolve(permit, call=slot.call, args=args), kit)

    patch.set(pipeline, "_execute", execute)


def _snapshot_after_the_run(patch: Patch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        result = await whole(slot, tool, permit, kit)
        await kit.snapshots.real.take(slot.call.id, ())
        return result

    steps = pipeline._steps

    async def late(slot: Any, kit: Any) -> ToolResult:
        return await steps(slot, attrs.evolve(kit, snapshots=_Late(kit.snapshots)))

    patch.set(pipeline, "_execute", execute)
    patch.set(pipeline, "_steps", late)


class _Late(_Around):
    """Snapshots that are not taken when they should be."""

    async def take(self, call: Any, paths: Any) -> Any:
        return ()


def _record_skipped(patch: Patch) -> None:
    async def record(*args: Any) -> None:
        return None

    patch.set(pipeline, "_record", record)


def _unknown_tool_guessed(patch: Patch) -> None:
    whole = pipeline._existing

    def existing(call: Any, kit: Any) -> Any:
        try:
            return whole(call, kit)
        except pipeline._Refused:
            return kit.tools.find(next(iter(kit.tools.close_matches(call.name)), "read"))

    patch.set(pipeline, "_existing", existing)
    patch.set(pipeline, "_enabled", lambda call, kit: None)


def _disabled_tool_runs(patch: Patch) -> None:
    patch.set(pipeline, "_enabled", lambda call, kit: None)


def _invalid_arguments_run(patch: Patch) -> None:
    def validated(call: Any, tool: Any) -> Any:
        try:
            return structure(tool.spec.args, call.arguments)
        except InvalidArguments:
            wanted = [field.name for field in attrs.fields(tool.spec.args) if field.default is attrs.NOTHING]
            return structure(tool.spec.args, {name: call.arguments.get(name, "x") for name in wanted})

    patch.set(pipeline, "_validated", validated)


def _cancelled_becomes_a_result(patch: Patch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        try:
            return await whole(slot, tool, permit, kit)
        except trio.Cancelled:
            return ToolResult.of(slot.call, Outcome.ERROR, "cancelled", began=True)

    patch.set(pipeline, "_execute", execute)
    _no_last_look(patch)


def _no_last_look(patch: Patch) -> None:
    async def no_checkpoint() -> None:
        return None

    patch.set(trio.lowlevel, "checkpoint_if_cancelled", no_checkpoint)


def _deadline_swallowed(patch: Patch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        return await whole(slot, _Unlimited(tool), permit, kit)

    patch.set(pipeline, "_execute", execute)


class _Unlimited(_Around):
    """A tool without its limit."""

    def limit(self, args: Any) -> None:
        return None


def _timeout_told_as_success(patch: Patch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        result = await whole(slot, tool, permit, kit)
        return attrs.evolve(result, outcome=Outcome.OK) if result.outcome is Outcome.TIMEOUT else result

    patch.set(pipeline, "_execute", execute)


def _tool_errors_escape(patch: Patch) -> None:
    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        return pipeline._result(permit.call, await tool.run(permit, pipeline._context(slot, kit)))

    patch.set(pipeline, "_execute", execute)


def _groups_not_taken_apart(patch: Patch) -> None:
    patch.set(pipeline, "_only_cancelled", lambda group, call, kit: group)


def _running_not_told(patch: Patch) -> None:
    whole = ledger.Slot.to

    def to(self: ledger.Slot, phase: Phase, waits_for: Any = ()) -> None:
        if phase is not Phase.RUNNING:
            whole(self, phase, waits_for)

    patch.set(ledger.Slot, "to", to)


def _stop_one_stops_all(patch: Patch) -> None:
    def stop(self: ledger.Ledger, call_id: Any) -> bool:
        for slot in self.open:
            slot.scope.cancel()
        return True

    patch.set(ledger.Ledger, "stop", stop)


def _stop_one_stops_the_run(patch: Patch) -> None:
    def stop_call(self: run.Run, call_id: Any) -> bool:
        self.cancel("one call")
        return True

    patch.set(run.Run, "stop_call", stop_call)


FAULTS = (
    Fault("gate-ignored", "calls that touch the same file run at the same time", _gate_ignored),
    Fault("gate-for-everything", "calls that touch nothing in common wait for each other", _gate_for_everything),
    Fault("ticket-released-early", "a place in the queue is given up before the tool has run", _ticket_released_early),
    Fault("ticket-never-released", "a place in the queue is never given up", _ticket_never_released),
    Fault("denied-goes-on", "a call that was refused is executed", _denied_goes_on),
    Fault("hooks-skipped", "hooks are not asked", _hooks_skipped),
    Fault("hook-denial-ignored", "what a hook refused is executed", _hook_denial_ignored),
    Fault("rewrite-not-run", "what runs is not what the hook made of it and the person saw", _rewrite_not_run),
    Fault("snapshot-after-the-run", "the snapshot is taken when it is too late", _snapshot_after_the_run),
    Fault("record-skipped", "what a call changed is not recorded", _record_skipped),
    Fault("unknown-tool-guessed", "a tool that does not exist is taken for one that does", _unknown_tool_guessed),
    Fault("disabled-tool-runs", "a tool that is switched off runs", _disabled_tool_runs),
    Fault("invalid-arguments-run", "arguments that are not valid are made up", _invalid_arguments_run),
    Fault("cancelled-becomes-a-result", "a cancellation is turned into a result", _cancelled_becomes_a_result),
    Fault("no-last-look", "nothing is checked between the way to a tool and the tool", _no_last_look),
    Fault("deadline-swallowed", "a call runs on after its limit", _deadline_swallowed),
    Fault("timeout-told-as-success", "a call that timed out is told as one that succeeded", _timeout_told_as_success),
    Fault("tool-errors-escape", "what a tool raises ends the turn", _tool_errors_escape),
    Fault("groups-not-taken-apart", "a tool's errors come out beside the cancellation", _groups_not_taken_apart),
    Fault("running-not-told", "that a tool was entered is on no record", _running_not_told),
    Fault("stop-one-stops-all", "stopping one call stops the others", _stop_one_stops_all),
    Fault("stop-one-stops-the-run", "stopping one call stops the run", _stop_one_stops_the_run),
)
