"""The only way a call reaches a tool.

`process` takes a call through eight steps. Read `_steps` from top to bottom: it is the order in which a call is
authorised and executed, whoever proposed it. Each step that refuses gives a result of its own kind, and nothing after
it happens.
"""

from __future__ import annotations

import codecs
import functools
import math
from typing import Any

import attrs
import trio

from novacode import grace
from novacode.authority.approvals import NOBODY, Answer, Question
from novacode.authority.hooks import HookAnswer, HookWord, with_context
from novacode.authority.policy import Allow, Ask, Deny, Verdict
from novacode.engine import texts
from novacode.engine.groups import broke_a_cancellation
from novacode.engine.kit import Kit
from novacode.engine.ledger import Slot
from novacode.errors import SettingsError, ToolFailed
from novacode.tools.base import Effects, Permit, Tool, ToolOutput
from novacode.tools.context import ToolContext
from novacode.tools.schema import InvalidArguments, structure
from novacode.values.events import LIVE, CallOutput, Level, Notice, Phase
from novacode.values.parts import Text, ToolCall
from novacode.values.results import Outcome, ToolResult

__all__ = ["process"]

_ENOUGH = 4 * (LIVE + 1)  # bytes to decode for them: a character has up to four, and the first may be cut


class _Refused(Exception):
    """A step said no; the call ends here with this outcome and these words."""

    def __init__(self, outcome: Outcome, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.text = text


async def process(slot: Slot, kit: Kit) -> None:
    """Take `slot` from SUBMITTED to SETTLED.

    Settles always but for one case: where the run is cancelled, `Cancelled` goes through and the ledger settles what
    is left when it closes. Cancelling `slot.scope` stops just this call. Raises nothing but bugs.
    """
    try:
        with slot.scope:
            slot.settle(await _steps(slot, kit))
        if slot.result is None:
            slot.settle(slot.cut_off("only this call was stopped"))
    finally:
        kit.snapshots.close(slot.call.id)
        kit.gate.release(slot.ticket)


async def _steps(slot: Slot, kit: Kit) -> ToolResult:
    call = slot.call
    assert isinstance(call, ToolCall), "broken calls are settled by the ledger and never come here"
    slot.to(Phase.AUTHORISING)
    try:
        tool = _existing(call, kit)  # 1
        _enabled(call, kit)  # 2
        hooked = await _hooked(slot, call, kit)  # 3
        call = hooked.call
        effects = _effects(call, tool, kit)
        verdict = kit.permissions.judge(call, effects, kit.workspace)
        granted_by = await _permitted(slot, hooked, tool, effects, verdict, kit)  # 4
        permit = Permit(call, _validated(call, tool), granted_by)  # 5
        slot.to(Phase.QUEUED, tuple(ticket.call_id for ticket in kit.gate.blockers(slot.ticket)))
        await kit.gate.wait(slot.ticket)
        _still_allowed(slot, call, effects, verdict, kit)
    except _Refused as no:
        return ToolResult.of(slot.call, no.outcome, no.text)
    for notice in await kit.snapshots.take(call.id, sorted(slot.ticket.claims.writes)):  # 6
        kit.emit(notice)
    # A cancel that came while this task was already on its way must still find the tool not entered.
    await trio.lowlevel.checkpoint_if_cancelled()
    slot.to(Phase.RUNNING)
    try:
        result = await _execute(slot, tool, permit, kit)  # 7
        slot.hold(result)
        result = with_context(await kit.hooks.post_tool_use(call, result), hooked.context)  # 8
    except BaseException:
        # What it has done stays done, and only the file history can say later what that was.
        with grace.cleanup(grace.DEFAULT.files):
            await _record(call, kit)
        raise
    # What hooks make of a file (a formatter does) belongs to the call: so it is taken back with it.
    await _record(call, kit)
    return result


async def _record(call: ToolCall, kit: Kit) -> None:
    changed = await kit.snapshots.record(call.id, call.name)
    if changed is not None:
        kit.emit(changed)


def _existing(call: ToolCall, kit: Kit) -> Tool[Any]:
    tool = kit.tools.find(call.name)
    if tool is None:
        names = [offer.name for offer in kit.tools.offers()]
        raise _Refused(Outcome.UNKNOWN_TOOL, texts.unknown_tool(call.name, kit.tools.close_matches(call.name), names))
    return tool


def _enabled(call: ToolCall, kit: Kit) -> None:
    if not kit.tools.is_enabled(call.name):
        raise _Refused(Outcome.DISABLED, texts.disabled(call.name))


async def _hooked(slot: Slot, call: ToolCall, kit: Kit) -> HookAnswer:
    answer = await kit.hooks.pre_tool_use(call)
    if answer.word is HookWord.DENY:
        raise _Refused(Outcome.HOOK_DENIED, texts.hook_denied(answer.reason))
    if answer.call.arguments != call.arguments:
        # A hook may change what runs, never which call it is.
        call = attrs.evolve(call, arguments=answer.call.arguments)
        slot.ticket.claims = kit.tools.claims(call, kit.workspace)  # its place in the queue is kept
    return attrs.evolve(answer, call=call)


def _effects(call: ToolCall, tool: Tool[Any], kit: Kit) -> Effects:
    try:
        return tool.effects(call.arguments, kit.workspace)
    except Exception as error:  # noqa: BLE001 - a tool of somebody else's; what cannot be judged is not allowed
        _validated(call, tool)
        raise _Refused(Outcome.DENIED, texts.unjudged(error)) from None


async def _permitted(
    slot: Slot, hooked: HookAnswer, tool: Tool[Any], effects: Effects, verdict: Verdict, kit: Kit
) -> str:
    """Return who allows the call. A person is only asked for arguments that could run.

    A hook may answer where nothing else does. Over a rule that asks it has no more say than over one that denies.
    """
    call, why = hooked.call, hooked.reason or "it gave no reason"
    if isinstance(verdict, Deny):
        raise _Refused(Outcome.DENIED, texts.denied(verdict.reason))
    if isinstance(verdict, Allow):
        if hooked.word is not HookWord.ASK:
            return verdict.granted_by
        verdict = Ask(reason=f"a hook wants a person to decide ({why})")
    elif hooked.word is HookWord.ALLOW and not verdict.rule:
        return f"a hook ({why})"
    _validated(call, tool)
    slot.to(Phase.ASKING)
    rule = "\n".join(rule.text for rule in verdict.rule_to_store)
    question = Question(call, verdict.reason, effects.summary, effects.details, rule, would_allow=verdict.would_allow)
    ask = functools.partial(kit.desk.ask, question)
    answer = await (kit.hooks.while_asking(call, verdict.reason, ask) if kit.desk.somebody else ask())
    _remember(answer, kit)
    if not answer.allowed:
        nobody = answer.by == NOBODY
        text = texts.denied(answer.words) if nobody else texts.denied(f"refused by {answer.by}", answer.words)
        raise _Refused(Outcome.DENIED, text)
    return answer.by


def _still_allowed(slot: Slot, call: ToolCall, effects: Effects, verdict: Verdict, kit: Kit) -> None:
    """Refuse what has come to touch something else while it waited: an earlier call can put a link into its path."""
    if kit.tools.claims(call, kit.workspace) != slot.ticket.claims:
        raise _Refused(Outcome.DENIED, texts.denied("what it names has become another place since it was allowed"))
    if effects.command is None:
        return
    now = kit.permissions.judge(call, effects, kit.workspace)
    if isinstance(now, Deny) or (isinstance(verdict, Allow) and isinstance(now, Ask)):
        raise _Refused(Outcome.DENIED, texts.denied(f"it was allowed, but since then {now.reason}"))


def _remember(answer: Answer, kit: Kit) -> None:
    if not (answer.allowed and answer.rules):
        return
    try:
        kit.permissions.remember(answer.rules, answer.scope)
    except (SettingsError, OSError) as error:
        # The call itself was allowed; only the wish for later could not be kept.
        kit.emit(Notice(Level.WARNING, f"the rule was not kept: {error}"))


def _validated(call: ToolCall, tool: Tool[Any]) -> Any:
    try:
        return structure(tool.spec.args, call.arguments)
    except InvalidArguments as error:
        raise _Refused(Outcome.INVALID, str(error)) from None


async def _execute(slot: Slot, tool: Tool[Any], permit: Permit[Any], kit: Kit) -> ToolResult:
    """Run the tool. The one place where its exceptions become results; cancellation never does."""
    call = permit.call
    try:
        limit = tool.limit(permit.args)
    except Exception as error:  # noqa: BLE001 - the same as for `run`
        return ToolResult.of(slot.call, Outcome.ERROR, texts.raised(error), began=True)
    with trio.move_on_after(math.inf if limit is None else limit):
        try:
            return _result(call, await tool.run(permit, _context(slot, kit)))
        except Exception as error:  # noqa: BLE001 - a failing tool must not end the run
            if broke_a_cancellation(error):
                await _go_on_cancelling(error, call, kit)
            text = str(error) if isinstance(error, ToolFailed) else texts.raised(error)
            return ToolResult.of(slot.call, Outcome.ERROR, text, began=True)
        except BaseExceptionGroup as group:
            raise _only_cancelled(group, call, kit) from None
    return ToolResult.of(slot.call, Outcome.TIMEOUT, texts.timed_out(limit or 0.0, slot.output.text()), began=True)


async def _go_on_cancelling(error: Exception, call: ToolCall, kit: Kit) -> None:
    """Raise `Cancelled` again where a clean-up failed in the middle of it; `error` is told and no result of the call.

    Taken for a result, it would make an interrupted call look like one that had ended by itself. Returns where the
    scope that was cancelled is the tool's own: then the failure is its result.
    """
    try:
        await trio.lowlevel.checkpoint_if_cancelled()
    except trio.Cancelled:
        _tell_failed_cleanup(error, call, kit)
        raise


def _tell_failed_cleanup(error: Exception, call: ToolCall, kit: Kit) -> None:
    said = f"{call.name} {call.id}, while it was being cancelled: {texts.raised(error)}"
    kit.emit(Notice(Level.WARNING, said))


def _context(slot: Slot, kit: Kit) -> ToolContext:
    call = slot.call
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may lie across two chunks

    def output(data: bytes) -> None:
        slot.output.feed(data)
        if len(data) > _ENOUGH:
            decoder.reset()
            data = data[-_ENOUGH:]
        if text := decoder.decode(data)[-LIVE:]:
            kit.emit(CallOutput(call.id, call.name, text))

    unreadable = kit.permissions.unreadable(call.name, kit.workspace)
    return ToolContext(call.id, kit.workspace, kit.processes, kit.seen, output, kit.spill, kit.jobs, unreadable)


def _result(call: ToolCall, output: ToolOutput) -> ToolResult:
    failed = output.exit_code not in (None, 0)
    return ToolResult(
        call.id,
        call.name,
        Outcome.ERROR if failed else Outcome.OK,
        began=True,
        content=output.content or (Text("(no output)"),),
        note=output.note,
        exit_code=output.exit_code,
        diff=output.diff,
    )


def _only_cancelled(group: BaseExceptionGroup[BaseException], call: ToolCall, kit: Kit) -> BaseException:
    """Take a tool's own failures out of a group that a cancellation is in, so that only the cancellation goes on.

    Left in, they would come out of the cancelled scope as a failure of the run. They are told instead.
    """
    cancelled, rest = group.split(trio.Cancelled)
    if cancelled is None or (rest is not None and not isinstance(rest, ExceptionGroup)):
        return group
    if rest is not None:
        _tell_failed_cleanup(rest, call, kit)
    return cancelled
