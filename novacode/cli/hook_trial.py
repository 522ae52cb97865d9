"""One event told to hooks for trial, and a report of what could be seen of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import attrs
import trio

from novacode.authority.hook_process import Host
from novacode.authority.hook_runner import CommandHooks
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hook_tools import familiar_input, familiar_name
from novacode.authority.hook_wire import HookFacts
from novacode.authority.hooks import HookAnswer, HookedRun, HookEvent
from novacode.authority.modes import Mode
from novacode.values.events import HookRan, Notice, Reaped, RunEvent
from novacode.values.ids import RunId
from novacode.values.parts import ToolCall
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.base import Command, Exit, Processes
from novacode.workspace.processes import RealProcesses

__all__ = ["Trial"]

_FAILURES = frozenset({"failed", "timeout"})


@attrs.frozen
class _Seen:
    """A program that was run, and all there was to see of it. `exit` is missing where it was stopped."""

    command: Command
    out: bytearray
    err: bytearray
    ended: list[Exit]


class _Watched:
    """Processes, with a look at everything that goes through."""

    def __init__(self, real: Processes) -> None:
        self.seen: list[_Seen] = []
        self._real = real

    async def run(
        self,
        command: Command,
        output: Callable[[bytes], None],
        errors: Callable[[bytes], None] | None = None,
    ) -> Exit:
        """Run it, and keep what it says."""
        seen = _Seen(command, bytearray(), bytearray(), [])
        self.seen.append(seen)

        def out(data: bytes) -> None:
            seen.out.extend(data)
            output(data)

        def err(data: bytes) -> None:
            seen.err.extend(data)
            (errors or output)(data)

        seen.ended.append(await self._real.run(command, out, err))
        return seen.ended[0]

    async def sweep(self) -> None:
        """Stop what was left running."""
        await self._real.sweep()

    def hurry(self) -> None:
        """Skip the grace."""
        self._real.hurry()

    def waiting_for(self) -> tuple[str, ...]:
        """Name what is being stopped."""
        return self._real.waiting_for()

    @property
    def reaped(self) -> Reaped:
        """What stopping took."""
        return self._real.reaped


@attrs.define
class Trial:
    """Tells an event to `specs` with `run`; `report` says what came of it, `failed` whether a hook has failed."""

    specs: Sequence[HookSpec]
    facts: HookFacts
    mode: Mode = Mode.DEFAULT
    _events: list[RunEvent] = attrs.field(factory=list)
    _programs: list[_Seen] = attrs.field(factory=list)
    _end: list[str] = attrs.field(factory=list)

    async def run(self, event: HookEvent, call: ToolCall, text: str) -> None:
        """Tell the hooks about `event`, as a run would; what they leave running is stopped."""
        watched = _Watched(RealProcesses())
        self._programs = watched.seen
        host = Host(self.facts, watched, trio.current_time)
        run = HookedRun(
            RunId("s-test-r1"), self._events.append, lambda why: self._end.append(f"it would end the run: {why}")
        )
        hooks = CommandHooks(self.specs, host, lambda: self.mode).for_run(run)
        self._end.insert(0, await _told(hooks, event, call, text))
        await watched.sweep()

    @property
    def failed(self) -> bool:
        """Whether a hook has failed, was too slow, or was not understood."""
        return any(isinstance(event, HookRan) and event.outcome in _FAILURES for event in self._events)

    def report(self) -> str:
        """Return what the hooks were told and said, and what follows."""
        lines: list[str] = []
        for seen in self._programs:
            lines += ["$ " + seen.command.argv[-1], *_block("stdin ", seen.command.stdin)]
            lines += [*_block("stdout", seen.out), *_block("stderr", seen.err)]
            lines.append(f"  exit   {seen.ended[0].code if seen.ended else 'none: it was stopped'}")
        for event in self._events:
            if isinstance(event, HookRan):
                words = f": {event.reason}" if event.reason else ""
                lines.append(f"{event.outcome} after {event.seconds:.3f} s: `{event.command}`{words}")
            elif isinstance(event, Notice):
                lines.append(f"warning: {event.text}")
        if not any(isinstance(event, HookRan) for event in self._events):
            lines.append("No hook is for this.")
        return "\n".join([*lines, *filter(None, self._end)])


async def _told(hooks: CommandHooks, event: HookEvent, call: ToolCall, text: str) -> str:
    """Tell one event and return what it comes to, in a sentence."""
    match event:
        case HookEvent.PRE_TOOL_USE:
            return _verdict(await hooks.pre_tool_use(call), call, hooks)
        case HookEvent.POST_TOOL_USE | HookEvent.POST_TOOL_USE_FAILURE:
            outcome = Outcome.OK if event is HookEvent.POST_TOOL_USE else Outcome.ERROR
            after = await hooks.post_tool_use(call, ToolResult.of(call, outcome, text, began=True))
            return f"together: behind the result the model reads {after.text.removeprefix(text)!r}"
        case HookEvent.USER_PROMPT_SUBMIT:
            answer = await hooks.prompt_submitted(text)
            if answer.blocked:
                return f"together: the prompt is refused ({answer.reason})"
            return f"together: the prompt is taken, with the context {answer.context!r}"
        case HookEvent.STOP:
            wanted = await hooks.stopped(text, active=False)
            return f"together: the model is told to go on: {wanted}" if wanted else "together: the run may end"
        case HookEvent.NOTIFICATION:
            await hooks.notify(text, "permission_prompt", call)
            return ""
        case _:
            return await _told_of_session(hooks, event)


async def _told_of_session(hooks: CommandHooks, event: HookEvent) -> str:
    if event is HookEvent.PRE_COMPACT:
        await hooks.pre_compact("manual")
        return ""
    context = await hooks.session_started()
    if event is HookEvent.SESSION_END:
        await hooks.session_ended("other")
        return ""
    return f"together: the context {context!r}"


def _verdict(answer: HookAnswer, call: ToolCall, hooks: CommandHooks) -> str:
    said = f"together: {answer.word} {familiar_name(call.name)}"
    if answer.reason:
        said += f" ({answer.reason})"
    if answer.call.arguments != call.arguments:
        given = json.dumps(familiar_input(answer.call, hooks.workspace), ensure_ascii=False)
        said += f"\nit would go on to permission as {given}"
    return said


def _block(name: str, data: bytes | bytearray) -> list[str]:
    lines = data.decode("utf-8", "replace").rstrip("\n").split("\n") if data else []
    return [f"  {name if number == 0 else ' ' * len(name)} {line}" for number, line in enumerate(lines)]
