"""Running one hook: as a program with its limits, or in this process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import attrs
import trio

from novacode.authority.hook_settings import HookSpec
from novacode.authority.hook_wire import HookFacts, HookOutput, HookSaid, understand, understood
from novacode.errors import ToolFailed
from novacode.protocols.jsonio import dump
from novacode.values.ids import CallId
from novacode.values.parts import JSON
from novacode.workspace.base import Command, Processes

__all__ = ["HookRun", "Host", "run_hook"]

_STDOUT = 1 << 20
_STDERR = 1 << 16


@attrs.frozen
class Host:
    """Where hooks run, and by which clock they are timed."""

    facts: HookFacts
    processes: Processes
    clock: Callable[[], float]


@attrs.define
class HookRun:
    """One run of one hook. `said` is what its answer means, `output` what its program said; both missing while it runs.

    A run that was cut off has no `said`.
    """

    spec: HookSpec
    seconds: float = 0.0
    said: HookSaid | None = None
    output: HookOutput | None = None
    timed_out: bool = False
    warning: str = ""


@attrs.define
class _Kept:
    """The first bytes of a stream. What comes later is taken and thrown away, so that the hook is not stuck."""

    room: int
    data: bytearray = attrs.field(factory=bytearray)
    cut: bool = False

    def __call__(self, data: bytes) -> None:
        left = self.room - len(self.data)
        self.data += data[:left]
        self.cut = self.cut or len(data) > left


async def run_hook(run: HookRun, told: Mapping[str, JSON], marker: CallId, host: Host) -> None:
    """Run the hook of `run` within its limit and note in `run` what came of it.

    Everything that goes wrong with a hook is noted as a failure in `said`; cancellation goes through, after what the
    hook had started is reaped.
    """
    began = host.clock()
    try:
        with trio.move_on_after(run.spec.timeout) as scope:
            run.said = await _spoken(run, told, marker, host)
        if scope.cancelled_caught:
            run.timed_out = True
            run.said = HookSaid(failure=f"it took longer than its limit of {run.spec.timeout:g} s and was stopped")
    except Exception as error:  # noqa: BLE001 - whatever a hook raises is its failure and not that of the run
        words = str(error) if isinstance(error, ToolFailed) else f"it raised {type(error).__name__}: {error}"
        run.said = HookSaid(failure=words)
    finally:
        run.seconds = host.clock() - began


async def _spoken(run: HookRun, told: Mapping[str, JSON], marker: CallId, host: Host) -> HookSaid:
    if run.spec.function is None:
        run.output = await _run_program(run.spec, told, marker, host)
        return understand(run.spec.event, run.output)
    try:
        answer = run.spec.function(told)
        if inspect.isawaitable(answer):
            answer = await answer
    except BaseExceptionGroup as group:
        raise _only_cancelled(group, run) from None
    # One that has swallowed a cancellation must not make the run go on.
    await trio.lowlevel.checkpoint_if_cancelled()
    return understood(run.spec.event, answer)


async def _run_program(spec: HookSpec, told: Mapping[str, JSON], marker: CallId, host: Host) -> HookOutput:
    facts = host.facts
    variables = {"NOVACODE_PROJECT_DIR": facts.project, "CLAUDE_PROJECT_DIR": facts.project}
    # A person's own program, which has to reach what a sandbox keeps from the model's: logs, guards, notifications.
    command = Command(
        ("/bin/sh", "-c", spec.command),
        facts.workspace.root,
        marker,
        variables,
        stdin=dump(dict(told)) + b"\n",
        confined=False,
    )
    out, err = _Kept(_STDOUT), _Kept(_STDERR)
    done = await host.processes.run(command, out, err)
    return HookOutput(done.code, bytes(out.data), bytes(err.data), out.cut)


def _only_cancelled(group: BaseExceptionGroup[BaseException], run: HookRun) -> BaseException:
    """Take a hook's own failures out of a group that a cancellation is in; they are told as a warning instead."""
    cancelled, rest = group.split(trio.Cancelled)
    if cancelled is None or (rest is not None and not isinstance(rest, ExceptionGroup)):
        return group
    if rest is not None:
        run.warning = "while it was being cancelled: " + "; ".join(f"{type(e).__name__}: {e}" for e in rest.exceptions)
    return cancelled
