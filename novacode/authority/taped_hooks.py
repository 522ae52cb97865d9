"""Hooks whose answers go onto a tape, and hooks that run nothing and answer from one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import attrs
import trio

from novacode.authority.hooks import HookAnswer, HookedRun, HookEvent, Hooks, HookWord, PromptAnswer
from novacode.models.tape import Recorder
from novacode.models.tape_play import TapePlayer
from novacode.values.events import RunEvent
from novacode.values.parts import JSON, Text, ToolCall
from novacode.values.results import ToolResult
from novacode.values.serial import dump_event, load_event

__all__ = ["RecordedHooks", "TapedHooks"]

T = TypeVar("T")


@attrs.define
class _Heard:
    """What hooks said of their own accord while they were asked: their events, and that the run shall end."""

    events: list[RunEvent] = attrs.field(factory=list)
    stop: str = ""


class RecordedHooks:
    """The hooks of `inner`, with what they answer on the tape. Implements `Hooks`."""

    def __init__(self, inner: Hooks, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder
        self._heard = _Heard()

    def for_run(self, run: HookedRun) -> RecordedHooks:
        """Return the same hooks for `run`, and listen to what they tell it."""
        made = RecordedHooks(self._inner, self._recorder)

        def emit(event: RunEvent) -> None:
            made._heard.events.append(event)
            run.emit(event)

        def stop(reason: str) -> None:
            made._heard.stop = reason
            run.stop(reason)

        made._inner = self._inner.for_run(HookedRun(run.run_id, emit, stop))
        return made

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Ask the hooks."""
        answer = await self._inner.pre_tool_use(call)
        told: dict[str, JSON] = {"word": answer.word.value, "reason": answer.reason, "context": answer.context}
        if answer.call.arguments != call.arguments:
            told["arguments"] = dict(answer.call.arguments)
        self._record(HookEvent.PRE_TOOL_USE, told, call)
        return answer

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Tell the hooks; only what they add to a result is recorded."""
        made = await self._inner.post_tool_use(call, result)
        added = made.content[len(result.content) :]
        words = [part.text for part in added if isinstance(part, Text)]
        self._record(HookEvent.POST_TOOL_USE, {"added": words}, call)
        return made

    async def prompt_submitted(self, prompt: str) -> PromptAnswer:
        """Ask the hooks."""
        answer = await self._inner.prompt_submitted(prompt)
        self._record(HookEvent.USER_PROMPT_SUBMIT, attrs.asdict(answer))
        return answer

    async def stopped(self, text: str, *, active: bool) -> str:
        """Tell the hooks."""
        wanted = await self._inner.stopped(text, active=active)
        self._record(HookEvent.STOP, {"text": wanted})
        return wanted

    async def session_started(self) -> str:
        """Tell the hooks."""
        told = await self._inner.session_started()
        self._record(HookEvent.SESSION_START, {"text": told})
        return told

    async def session_ended(self, reason: str) -> None:
        """Tell the hooks; there is nobody any more whom it would matter to."""
        await self._inner.session_ended(reason)

    async def pre_compact(self, trigger: str, instructions: str = "") -> None:
        """Tell the hooks."""
        await self._inner.pre_compact(trigger, instructions)
        self._record(HookEvent.PRE_COMPACT, {})

    async def notify(self, message: str, kind: str, call: ToolCall | None = None) -> None:
        """Tell the hooks; nothing follows from it."""
        await self._inner.notify(message, kind, call)

    async def while_asking(self, call: ToolCall, message: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Tell the hooks, and return what `ask` returns."""
        return await self._inner.while_asking(call, message, ask)

    def _record(self, event: HookEvent, answer: Mapping[str, JSON], call: ToolCall | None = None) -> None:
        """Record an answer, unless nobody was asked and so nothing was said."""
        heard = self._heard
        mine = [one for one in heard.events if getattr(one, "call_id", None) == (call.id if call else None)]
        heard.events = [one for one in heard.events if one not in mine]
        told: dict[str, JSON] = {"event": event.value, **({"call": call.id} if call else {}), "answer": dict(answer)}
        if mine:
            told["ran"] = [dump_event(one) for one in mine]
        if heard.stop:
            told["stop"], heard.stop = heard.stop, ""
        if mine or "stop" in told:
            self._recorder.note("hook", told)


class TapedHooks:
    """Answers what the hooks answered. Where nothing is recorded, none were asked. Implements `Hooks`."""

    def __init__(self, player: TapePlayer, run: HookedRun | None = None) -> None:
        self._player = player
        self._run = run

    def for_run(self, run: HookedRun) -> TapedHooks:
        """Return the same hooks for `run`."""
        return TapedHooks(self._player, run)

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Answer as was answered."""
        answer = await self._answer(HookEvent.PRE_TOOL_USE, call)
        if not answer:
            return HookAnswer(call)
        changed = attrs.evolve(call, arguments=answer["arguments"]) if "arguments" in answer else call
        return HookAnswer(
            changed, HookWord(answer.get("word", "pass")), str(answer.get("reason", "")), str(answer.get("context", ""))
        )

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Add what was added."""
        answer = await self._answer(HookEvent.POST_TOOL_USE, call)
        added = tuple(Text(str(words)) for words in answer.get("added", ()))
        return attrs.evolve(result, content=(*result.content, *added)) if added else result

    async def prompt_submitted(self, prompt: str) -> PromptAnswer:
        """Answer as was answered."""
        answer = await self._answer(HookEvent.USER_PROMPT_SUBMIT)
        return PromptAnswer(bool(answer.get("blocked")), str(answer.get("reason", "")), str(answer.get("context", "")))

    async def stopped(self, text: str, *, active: bool) -> str:
        """Answer as was answered."""
        return str((await self._answer(HookEvent.STOP)).get("text", ""))

    async def session_started(self) -> str:
        """Answer as was answered."""
        return str((await self._answer(HookEvent.SESSION_START)).get("text", ""))

    async def session_ended(self, reason: str) -> None:
        """Tell nobody; a checkpoint."""
        await trio.lowlevel.checkpoint()

    async def pre_compact(self, trigger: str, instructions: str = "") -> None:
        """Say what was said."""
        await self._answer(HookEvent.PRE_COMPACT)

    async def notify(self, message: str, kind: str, call: ToolCall | None = None) -> None:
        """Tell nobody; a checkpoint."""
        await trio.lowlevel.checkpoint()

    async def while_asking(self, call: ToolCall, message: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what `ask` returns."""
        return await ask()

    async def _answer(self, event: HookEvent, call: ToolCall | None = None) -> Mapping[str, JSON]:
        """Return what is recorded of `event`, after having emitted what the hooks emitted; empty where nothing is."""
        await trio.lowlevel.checkpoint()
        wanted: dict[str, JSON] = {"event": event.value, **({"call": call.id} if call else {})}
        line = self._player.take("hook", wanted)
        if line is None:
            return {}
        self._player.done(line.number)
        data: Mapping[str, JSON] = self._player.here(dict(line.data))
        if self._run is not None:
            for one in data.get("ran", ()):
                self._run.emit(load_event(one))
            if data.get("stop"):
                self._run.stop(str(data["stop"]))
        answer: Mapping[str, JSON] = data["answer"]
        return answer
