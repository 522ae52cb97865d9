"""Short ways to ask a world what happened in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from doubles.fake_model import end, say
from doubles.world import World

from novacode.authority.hooks import HookAnswer, HookWord, NoHooks
from novacode.values.events import CallMoved, CallSettled, Phase
from novacode.values.parts import ToolCall
from novacode.values.request import StopReason
from novacode.values.results import ToolResult

__all__ = ["DONE", "TOOL_USE", "Hook", "phases", "results", "times", "trace"]

TOOL_USE = end(StopReason.TOOL_USE)
DONE = [say("done"), end()]


def results(world: World) -> dict[str, ToolResult]:
    """Return the result of every call, by id, in the order of settling."""
    return {event.result.call_id: event.result for event in world.of(CallSettled)}


def trace(world: World, call_id: str) -> list[str]:
    """Return which steps the log has of one call, without its id; when its work itself was done is no step."""
    steps = [entry.removesuffix(f" {call_id}") for entry in world.log if entry.endswith(f" {call_id}")]
    return [step for step in steps if step != "done"]


def phases(world: World, call_id: str) -> list[Phase]:
    """Return the phases a call went through."""
    return [event.phase for event in world.of(CallMoved) if event.call_id == call_id]


def times(world: World, kind: type[Any]) -> dict[str, float]:
    """Return when events of a kind came, by the id of their call."""
    found = [stamped for stamped in world.events if isinstance(stamped.event, kind)]
    return {getattr(stamped.event, "call_id", None) or stamped.event.result.call_id: stamped.at for stamped in found}


class Hook(NoHooks):
    """A hook that answers what a test wants, after `seconds`; it writes down what it saw."""

    def __init__(
        self,
        log: list[str],
        word: HookWord = HookWord.PASS,
        rewrite: Mapping[str, Any] | None = None,
        *,
        reason: str = "",
        seconds: float = 0.0,
        only: Sequence[str] = (),
    ) -> None:
        self._log = log
        self._word = word
        self._rewrite = rewrite
        self._reason = reason
        self._seconds = seconds
        self._only = only
        self.saw_after: list[tuple[ToolCall, ToolResult]] = []

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        self._log.append(f"pre {call.id}")
        if self._only and call.id not in self._only:
            return HookAnswer(call)
        await trio.sleep(self._seconds)
        # The name and the id are changed on purpose: only the arguments of a rewrite may count.
        made = call if self._rewrite is None else ToolCall("forged", 99, "forged", self._rewrite)  # type: ignore[arg-type]
        return HookAnswer(made, self._word, self._reason)

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        self._log.append(f"post {call.id}")
        self.saw_after.append((call, result))
        return result
