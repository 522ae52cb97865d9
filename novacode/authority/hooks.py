"""What hooks may say, and when they are asked.

This is the protocol between the engine and whoever runs hooks: `hook_runner.CommandHooks` does, `NoHooks` is none.
What a person writes down about hooks is read by `hook_settings`, what a hook says is understood by `hook_wire`.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import attrs

from novacode.values.events import Emit
from novacode.values.ids import RunId
from novacode.values.parts import Text, ToolCall
from novacode.values.results import ToolResult

__all__ = ["HookAnswer", "HookEvent", "HookWord", "HookedRun", "Hooks", "NoHooks", "PromptAnswer", "with_context"]

T = TypeVar("T")


class HookEvent(enum.StrEnum):
    """When hooks run. The spelling is that of settings files and of what hooks are told."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    STOP = "Stop"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    PRE_COMPACT = "PreCompact"
    NOTIFICATION = "Notification"


class HookWord(enum.StrEnum):
    """A hook's say on permission. `PASS` leaves it to the rules; nothing a hook says overrides a deny rule."""

    PASS = "pass"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@attrs.frozen
class HookAnswer:
    """What the `pre_tool_use` hooks made of a call: `call` is the one to go on with, perhaps with other arguments.

    `context` is for the model, to stand behind the result of the call.
    """

    call: ToolCall
    word: HookWord = HookWord.PASS
    reason: str = ""
    context: str = ""


@attrs.frozen
class PromptAnswer:
    """What hooks made of a prompt: where it is `blocked` the model never sees it; `context` is to be added to it."""

    blocked: bool = False
    reason: str = ""
    context: str = ""


@attrs.frozen(eq=False, repr=False)
class HookedRun:
    """The run that hooks are asked about. `stop` ends it; hooks may want that, with a reason."""

    run_id: RunId
    emit: Emit
    stop: Callable[[str], None]


class Hooks(Protocol):
    """Programs of the person's that see what is about to happen and what has happened.

    Every method is a checkpoint where there are hooks to ask, and cancelling it reaps what they have started.
    """

    def for_run(self, run: HookedRun) -> Hooks:
        """Return the same hooks for `run`: their events and their wishes go there."""
        ...

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Ask the hooks about `call`."""
        ...

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Tell the hooks how `call` ended; the result that comes back is what the model gets."""
        ...

    async def prompt_submitted(self, prompt: str) -> PromptAnswer:
        """Ask the hooks about what a person has said, before it becomes part of the history."""
        ...

    async def stopped(self, text: str, *, active: bool) -> str:
        """Tell the hooks that the model has come to an end with `text`.

        Returns what to say to the model so that it goes on; empty where it may end. `active` is whether it goes on
        already because of this.
        """
        ...

    async def session_started(self) -> str:
        """Tell the hooks that the session starts, the first time this is called; return context for the model."""
        ...

    async def session_ended(self, reason: str) -> None:
        """Tell the hooks that the session ends. Bounded by each hook's own limit; the caller bounds it further."""
        ...

    async def pre_compact(self, trigger: str, instructions: str = "") -> None:
        """Tell the hooks that the history is about to be compacted: `trigger` is `manual` or `auto`."""
        ...

    async def notify(self, message: str, kind: str, call: ToolCall | None = None) -> None:
        """Tell the hooks about something a person may want to know while looking elsewhere."""
        ...

    async def while_asking(self, call: ToolCall, message: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what `ask` returns, and notify meanwhile; the hooks hold up neither the question nor its answer."""
        ...


class NoHooks:
    """There are none. Nothing in here is a checkpoint."""

    def for_run(self, run: HookedRun) -> Hooks:
        """Return itself."""
        return self

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Let `call` pass as it is."""
        return HookAnswer(call)

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return `result` as it is."""
        return result

    async def prompt_submitted(self, prompt: str) -> PromptAnswer:
        """Let `prompt` pass as it is."""
        return PromptAnswer()

    async def stopped(self, text: str, *, active: bool) -> str:
        """Let the run end."""
        return ""

    async def session_started(self) -> str:
        """Add nothing."""
        return ""

    async def session_ended(self, reason: str) -> None:
        """Tell nobody."""

    async def pre_compact(self, trigger: str, instructions: str = "") -> None:
        """Tell nobody."""

    async def notify(self, message: str, kind: str, call: ToolCall | None = None) -> None:
        """Tell nobody."""

    async def while_asking(self, call: ToolCall, message: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what `ask` returns."""
        return await ask()


def with_context(result: ToolResult, context: str) -> ToolResult:
    """Return `result` with `context` behind what the model gets of it."""
    return attrs.evolve(result, content=(*result.content, Text(f"\n{context}"))) if context else result
