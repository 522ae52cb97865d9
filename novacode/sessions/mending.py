"""What a process that died left open: the turn it was in, put together again, and the events that end its run.

Pure: the same records always give the same events, so it does not matter how often they are worked out before they
are written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import attrs
from cattrs.errors import BaseValidationError

from novacode.engine import texts
from novacode.engine.limits import Limits, Progress
from novacode.errors import NovaError
from novacode.sessions.record import Record
from novacode.values import serial
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallBroken,
    CallReady,
    CallSettled,
    Level,
    Notice,
    PartDone,
    RunEnded,
    RunEvent,
    RunStatus,
    Stamped,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.ids import CallId, RunId
from novacode.values.parts import Assistant, AssistantPart, BrokenCall, Text, Thinking, ToolCall
from novacode.values.results import Outcome, ToolResult

__all__ = ["CRASHED", "UNREADABLE", "OpenRun", "OpenTurn", "Rebuilt", "endings", "readable", "rebuild", "unanswered"]

CRASHED = "crashed"
"""The reason of a run that has no end of its own: the process died, or the machine did."""

UNREADABLE = (NovaError, BaseValidationError, KeyError, TypeError, ValueError, AttributeError)
"""What structuring a record raises that is JSON but not what its type promises."""

_LOST = (
    "Started, outcome unknown: NovaCode ended while this was running, so its result is not known. What it had done by"
    " then stays done, and it may be running even now: look before you repeat it."
)
_NOT_BEGUN = "Never started: NovaCode ended before this was begun. Nothing was executed."


@attrs.define(eq=False, repr=False)
class OpenTurn:
    """Raw records of the turn that is not committed yet. They are only looked into when it never is."""

    parts: list[Record] = attrs.field(factory=list)
    settled: list[Record] = attrs.field(factory=list)
    running: set[str] = attrs.field(factory=set)
    damaged: bool = False

    @property
    def has_calls(self) -> bool:
        """Whether a call was proposed in it."""
        return any(record.type in ("call_ready", "call_broken") for record in self.parts)


@attrs.define(eq=False, repr=False)
class OpenRun:
    """A run that has no end on record yet. `questions` are the raw records of approvals that nobody has closed."""

    id: RunId
    progress: Progress = attrs.field(factory=lambda: Progress(Limits(), lambda _: None))
    outcomes: Counter[str] = attrs.field(factory=Counter)
    questions: dict[str, Record] = attrs.field(factory=dict)


@attrs.frozen(eq=False, repr=False)
class Rebuilt:
    """The exchange of a turn that was never committed, and those of its results that had to be made up."""

    exchange: Exchange
    made_up: tuple[ToolResult, ...]


def readable(record: Record) -> Stamped | None:
    """Return what `record` holds; `None` where that is not what its type promises."""
    try:
        return serial.load_stamped(record.data)
    except UNREADABLE:
        return None


def rebuild(turn: OpenTurn, issuer: str) -> Rebuilt | None:
    """Return what the records of `turn` add up to; `None` where nothing was said in it.

    Calls that had begun and have no result are `LOST`, others `SKIPPED`, each with its identity.
    """
    parts: dict[int, AssistantPart] = {}
    for record in turn.parts:
        match _event(record):
            case PartDone(index, part) if not (isinstance(part, Thinking) and not part.seal):
                parts[index] = part
            case CallReady(index, call) | CallBroken(index, call):
                parts[index] = call
            case _:
                pass
    kept = _once_each(part for _, part in sorted(parts.items(), key=lambda item: item[0]))
    if not any(isinstance(part, ToolCall | BrokenCall) or (isinstance(part, Text) and part.text) for part in kept):
        return None
    events = map(_event, turn.settled)
    settled = {event.result.call_id: event.result for event in events if isinstance(event, CallSettled)}
    message = Assistant(kept, issuer)
    results: list[ToolResult] = []
    made_up: list[ToolResult] = []
    for call in message.calls:
        known = settled.get(call.id)
        if known is None or known.name != call.name:
            known = _made_up(call, call.id in turn.running)
            made_up.append(known)
        results.append(known)
    return Rebuilt(Exchange(message, tuple(results)), tuple(made_up))


def endings(run: OpenRun, rebuilt: Rebuilt | None, text: str) -> Iterator[RunEvent]:
    """Yield the events that end `run` after a crash, its end last: until that is written it is worked out again.

    `text` is what the model said last in it.
    """
    made_up = rebuilt.made_up if rebuilt else ()
    for result in made_up:
        yield CallSettled(result)
    for record in run.questions.values():
        asked = _event(record)
        if isinstance(asked, ApprovalAsked):
            yield ApprovalClosed(
                asked.approval_id, asked.call.id, asked.call.name, "abandoned", "the end of the process"
            )
    if rebuilt is not None:
        yield TurnCommitted(rebuilt.exchange)
    yield Notice(Level.WARNING, _words([result.call_id for result in made_up]))
    calls = run.outcomes + Counter(result.outcome.value for result in (rebuilt.exchange.results if rebuilt else ()))
    yield RunEnded(
        RunStatus.FAILED,
        CRASHED,
        text=text,
        turns=run.progress.turns + (rebuilt is not None),
        usage=run.progress.usage,
        calls={"total": calls.total(), **calls},
    )


def unanswered(calls: Iterable[CallId]) -> str:
    """Say which calls had no result."""
    named = list(calls)
    return f"{len(named)} call{'s' * (len(named) != 1)} had no result when NovaCode ended: {', '.join(named)}"


def _words(calls: list[CallId]) -> str:
    """Return what the notice of a repair says."""
    said = "NovaCode ended in the middle of this run; the session was repaired when it was opened again"
    return f"{said}. {unanswered(calls)}" if calls else said


def _once_each(parts: Iterable[AssistantPart]) -> tuple[AssistantPart, ...]:
    """Leave out a call whose id an earlier one has: a record that was written twice must not break the pairing."""
    seen: set[CallId] = set()
    kept: list[AssistantPart] = []
    for part in parts:
        if isinstance(part, ToolCall | BrokenCall):
            if part.id in seen:
                continue
            seen.add(part.id)
        kept.append(part)
    return tuple(kept)


def _made_up(call: ToolCall | BrokenCall, begun: bool) -> ToolResult:
    if isinstance(call, BrokenCall):
        return ToolResult.of(call, Outcome.BROKEN, texts.broken(call))
    if begun:
        return ToolResult.of(call, Outcome.LOST, _LOST, began=True)
    return ToolResult.of(call, Outcome.SKIPPED, _NOT_BEGUN)


def _event(record: Record) -> RunEvent | None:
    stamped = readable(record)
    return None if stamped is None else stamped.event
