"""Hooks as they run: which of them are asked, all at once, and what follows from their answers."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs
import trio

from novacode.authority.hook_process import HookRun, Host, run_hook
from novacode.authority.hook_settings import HookSpec, OnFailure
from novacode.authority.hook_tools import own_arguments, subjects
from novacode.authority.hook_verdict import View, answer_of, merged
from novacode.authority.hook_wire import GUARDS, HookSaid, about_call, about_result, payload
from novacode.authority.hooks import HookAnswer, HookedRun, HookEvent, HookWord, PromptAnswer, with_context
from novacode.authority.modes import Mode
from novacode.values.events import HookRan, Level, Notice
from novacode.values.ids import CallId
from novacode.values.parts import JSON, ToolCall
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.paths import Workspace

__all__ = ["CommandHooks"]

T = TypeVar("T")

_NO_REASON = "it gave no reason"


@attrs.define
class _Session:
    """What the hooks of all runs of a session share."""

    started: bool = False
    context: str = ""
    last_run: HookedRun | None = None
    numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))


class CommandHooks:
    """Implements `Hooks` with the programs and functions of `specs`, in the order of the settings.

    All hooks that an event is for run at the same time, each within its own limit. Their events are emitted when the
    last of them has ended, in the order of the settings, so that the record does not depend on which was quicker.
    """

    def __init__(self, specs: Sequence[HookSpec], host: Host, mode: Callable[[], Mode]) -> None:
        self.specs = tuple(specs)
        self._host = host
        self._mode = mode
        self._run: HookedRun | None = None
        self._session = _Session()

    @property
    def workspace(self) -> Workspace:
        """Where the hooks run."""
        return self._host.facts.workspace

    def for_run(self, run: HookedRun) -> CommandHooks:
        """Return the same hooks for `run`."""
        made = CommandHooks(self.specs, self._host, self._mode)
        made._run, made._session = run, self._session
        self._session.last_run = run
        return made

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        """Ask about `call`; where a hook rewrites it, ask those that have not seen the rewritten call about that."""
        specs = self._for(HookEvent.PRE_TOOL_USE, subjects(call.name))
        if not specs:
            return HookAnswer(call)
        views = await self._views(specs, call)
        denial = answer_of(call, views)
        if denial.word is HookWord.DENY:
            return denial
        try:
            made = merged(call, views)
        except ValueError as error:
            return HookAnswer(call, HookWord.DENY, str(error))
        unseen = [place for place, view in enumerate(views) if view.call.arguments != made.arguments]
        again = await self._views([specs[place] for place in unseen], made) if unseen else []
        for place, view in zip(unseen, again, strict=True):
            if view.call.arguments != made.arguments and view.said.word is not HookWord.DENY:
                reason = f"hooks do not agree on the arguments: `{view.command}` wants others once more"
                return HookAnswer(call, HookWord.DENY, reason)
            views[place] = view
        return answer_of(made, views)

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Tell how `call` ended; what the hooks say to that stands behind the result."""
        event = HookEvent.POST_TOOL_USE if result.outcome is Outcome.OK else HookEvent.POST_TOOL_USE_FAILURE
        specs = self._for(event, subjects(call.name))
        if not specs:
            return result
        told = about_call(call, self.workspace) | about_result(result)
        pieces: list[str] = []
        for said in await self._ask(specs, told, call):
            if said.word is HookWord.DENY:
                pieces.append(f"A hook objects: {said.reason or _NO_REASON}")
            if said.context:
                pieces.append(said.context)
        return with_context(result, "\n".join(pieces))

    async def prompt_submitted(self, prompt: str) -> PromptAnswer:
        """Ask about a prompt; one no is enough."""
        answers = await self._ask(self._for(HookEvent.USER_PROMPT_SUBMIT), {"prompt": prompt})
        if refused := [said for said in answers if said.word is HookWord.DENY]:
            return PromptAnswer(blocked=True, reason=_joined(said.reason for said in refused) or _NO_REASON)
        self._session.context = ""
        return PromptAnswer(context=_joined(said.context for said in answers))

    async def stopped(self, text: str, *, active: bool) -> str:
        """Tell that the model has ended; a no means that it has to go on, with the reason as what to do."""
        told = {"stop_hook_active": active, "last_assistant_message": text}
        answers = await self._ask(self._for(HookEvent.STOP), told)
        if any(said.stop for said in answers):
            return ""
        return _joined(
            said.reason or f"A hook wants the work to go on; {_NO_REASON}."
            for said in answers
            if said.word is HookWord.DENY
        )

    async def session_started(self) -> str:
        """Tell that the session starts, once; return what the hooks want the model to know until a prompt is taken."""
        session = self._session
        if not session.started:
            source = self._host.facts.source
            answers = await self._ask(self._for(HookEvent.SESSION_START, (source,)), {"source": source})
            session.context = _joined(said.context for said in answers)
            session.started = True
        return session.context

    async def session_ended(self, reason: str) -> None:
        """Tell that the session ends. What is emitted goes to its last run."""
        if not self._session.started:
            return
        self._run = self._run or self._session.last_run
        await self._ask(self._for(HookEvent.SESSION_END, (reason,)), {"reason": reason})

    async def pre_compact(self, trigger: str, instructions: str = "") -> None:
        """Tell that the history is about to be compacted."""
        told = {"trigger": trigger, "custom_instructions": instructions}
        await self._ask(self._for(HookEvent.PRE_COMPACT, (trigger,)), told)

    async def notify(self, message: str, kind: str, call: ToolCall | None = None) -> None:
        """Tell about something a person may want to know."""
        told = {"message": message, "notification_type": kind, "title": "NovaCode"}
        await self._ask(self._for(HookEvent.NOTIFICATION, (kind,)), told, call)

    async def while_asking(self, call: ToolCall, message: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask and notify at the same time; hooks that are not done when the answer comes are stopped."""
        if not self._for(HookEvent.NOTIFICATION, ("permission_prompt",)):
            return await ask()
        answers: list[T] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.notify, message, "permission_prompt", call)
            answers.append(await ask())
            nursery.cancel_scope.cancel()
        return answers[0]

    def _for(self, event: HookEvent, about: Sequence[str] = ()) -> list[HookSpec]:
        return [spec for spec in self.specs if spec.event is event and spec.matches(about)]

    async def _views(self, specs: Sequence[HookSpec], call: ToolCall) -> list[View]:
        workspace = self.workspace
        answers = await self._ask(specs, about_call(call, workspace), call)
        views = []
        for spec, said in zip(specs, answers, strict=True):
            wanted = call.arguments if said.updated is None else own_arguments(call, workspace, said.updated)
            views.append(View(spec.command, said, attrs.evolve(call, arguments=wanted)))
        return views

    async def _ask(
        self, specs: Sequence[HookSpec], told: Mapping[str, JSON], call: ToolCall | None = None
    ) -> list[HookSaid]:
        """Run `specs` at the same time and return what each says, in order. No checkpoint where there are none."""
        if not specs:
            return []
        run_id = self._run.run_id if self._run else None
        told = {**payload(specs[0].event, self._host.facts, run_id, self._mode()), **told}
        runs = [HookRun(spec) for spec in specs]
        try:
            async with trio.open_nursery() as nursery:
                for run in runs:
                    marker = CallId(f"hook-{next(self._session.numbers)}")
                    nursery.start_soon(run_hook, run, told, marker, self._host)
        finally:
            answers = [self._noted(run, call) for run in runs]
        self._stop_where_wanted(specs[0].event, answers)
        return answers

    def _noted(self, run: HookRun, call: ToolCall | None) -> HookSaid:
        """Emit what became of a hook, and return what it says once its failure has been taken into account."""
        said = run.said or HookSaid()
        if said.updated is not None and call is not None:
            said = self._readable(said, said.updated, call)
        failed = bool(said.failure)
        if failed:
            said = _as_configured(run.spec, said)
            end = "that is a no" if said.word is HookWord.DENY else "going on without it"
            self._warn(run.spec, f"{said.failure}; {end}")
        for words in (said.warning, run.warning):
            if words:
                self._warn(run.spec, words)
        if said.message:
            self._emit(Notice(Level.WARNING, said.message))
        outcome = "cancelled" if run.said is None else _outcome(said, timed_out=run.timed_out)
        call_id, name = (None, "") if call is None else (call.id, call.name)
        reason = said.failure or said.reason
        self._emit(HookRan(run.spec.event.value, run.spec.command, run.seconds, outcome, call_id, name, reason))
        return said

    def _readable(self, said: HookSaid, updated: Mapping[str, JSON], call: ToolCall) -> HookSaid:
        try:
            own_arguments(call, self.workspace, updated)
        except ValueError as error:
            return attrs.evolve(said, updated=None, failure=str(error))
        return said

    def _stop_where_wanted(self, event: HookEvent, answers: Sequence[HookSaid]) -> None:
        reason = _joined(said.stop for said in answers)
        # After a prompt that is refused, and where the model has ended anyway, there is nothing to stop.
        if reason and self._run is not None and event not in (HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP):
            self._run.stop(reason)

    def _warn(self, spec: HookSpec, words: str) -> None:
        self._emit(Notice(Level.WARNING, f"hook `{spec.command}` ({spec.event}): {words}"))

    def _emit(self, event: HookRan | Notice) -> None:
        if self._run is not None:
            self._run.emit(event)


def _as_configured(spec: HookSpec, said: HookSaid) -> HookSaid:
    """Return what a hook that has failed counts as: a guard refuses, unless its settings say otherwise."""
    if said.word is HookWord.DENY:
        return said
    if spec.event in GUARDS and spec.on_failure is OnFailure.DENY:
        return attrs.evolve(said, word=HookWord.DENY, reason=f"the hook `{spec.command}` failed: {said.failure}")
    return attrs.evolve(said, word=HookWord.PASS, updated=None, context="")


def _outcome(said: HookSaid, *, timed_out: bool) -> str:
    if said.failure:
        return "timeout" if timed_out else "failed"
    if said.updated is not None and said.word is not HookWord.DENY:
        return "rewrite"
    return said.word.value


def _joined(texts: Iterator[str]) -> str:
    return "\n".join(filter(None, texts))
