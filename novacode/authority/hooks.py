"""What hooks may say about a call. Running them from settings comes with their feature; the steps are there."""

from __future__ import annotations

import enum
from typing import Protocol

import attrs

from novacode.values.parts import ToolCall
from novacode.values.results import ToolResult

__all__ = ["HookAnswer", "HookWord", "Hooks", "NoHooks"]


class HookWord(enum.StrEnum):
    """A hook's say on permission. `PASS` leaves it to the rules; nothing a hook says overrides a deny rule."""

    PASS = "pass"
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@attrs.frozen
class HookAnswer:
    """What the `pre_tool_use` hooks made of a call: `call` is the one to go on with, perhaps with other arguments."""

    call: ToolCall
    word: HookWord = HookWord.PASS
    reason: str = ""


class Hooks(Protocol):
    """Programs of the person's that see every call before and after it runs."""

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Ask the hooks about `call`. A checkpoint where there are any; cancelling reaps what they started."""
        ...

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Tell the hooks how `call` ended; the result that comes back is what the model gets."""
        ...


class NoHooks:
    """There are none."""

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Let `call` pass as it is; not a checkpoint."""
        return HookAnswer(call)

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return `result` as it is; not a checkpoint."""
        return result
