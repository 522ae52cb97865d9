"""From the records of a session to its history: strictly paired, whatever happened to the file.

A turn that was committed is taken as committed. One that was not, because the process died or its record is damaged,
is put together again from the records of its parts and calls: calls that had begun and have no result are `LOST`,
others `SKIPPED`, each with its identity. The same file always gives the same history, so nothing has to be written
back for the session to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import attrs
from cattrs.errors import BaseValidationError

from novacode.engine import texts
from novacode.errors import NovaError, SessionError
from novacode.sessions.record import Damaged, Header, Record, parse_header, read_lines
from novacode.values import serial
from novacode.values.events import CallBroken, CallReady, CallSettled, PartDone, RunBegan, RunEnded, TurnCommitted
from novacode.values.events import UserAdded as UserAddedEvent
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId
from novacode.values.parts import JSON, Assistant, AssistantPart, BrokenCall, Text, Thinking, ToolCall, User
from novacode.values.request import Usage
from novacode.values.results import Outcome, ToolResult

__all__ = ["Fold", "Loaded", "load"]

_KNOWN = frozenset(serial.TAGS.values())
_MOST_LINES_NAMED = 10
_UNREADABLE = (NovaError, BaseValidationError, KeyError, TypeError, ValueError, AttributeError)
"""What structuring a record raises that is JSON but not what its type promises."""

_LOST = (
    "NovaCode ended while this was running, so its result is not known. What it had done by then stays done:"
    " look before you repeat it."
)
_NOT_BEGUN = "NovaCode ended before this was begun. Nothing was executed."

E = TypeVar("E")


@attrs.frozen
class Loaded:
    """A session as read. `runs` and `last_seq` are where the counters of runs and events go on.

    `interrupted` is whether the last run has no end on record. `repaired` are the calls whose results had to be made
    up, `notices` what a person should know about the file. `last_usage` is that of the last committed turn.
    """

    history: History = attrs.field(factory=History)
    header: Header | None = None
    runs: int = 0
    last_seq: int = 0
    last_at: float = 0.0
    model: str = ""
    last_usage: Usage | None = None
    cost_usd: float = 0.0
    interrupted: bool = False
    repaired: tuple[CallId, ...] = ()
    notices: tuple[str, ...] = ()


@attrs.define
class _OpenTurn:
    """Raw records of the turn that is not committed yet. They are only looked into when it never is."""

    parts: list[Record] = attrs.field(factory=list)
    settled: list[Record] = attrs.field(factory=list)
    running: set[str] = attrs.field(factory=set)
    damaged: bool = False

    @property
    def has_calls(self) -> bool:
        return any(record.type in ("call_ready", "call_broken") for record in self.parts)


class Fold:
    """Takes records in file order with `feed`, and says with `close` what they add up to."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._header: Header | None = None
        self._items: list[User | Exchange] = []
        self._open = _OpenTurn()
        self._in_run = False
        self._issuer = ""
        self._runs: set[str] = set()
        self._facts = Loaded()
        self._good = 0
        self._broken: list[int] = []
        self._unknown: list[int] = []
        self._torn = False
        self._repaired: list[CallId] = []

    def feed(self, record: Record | Damaged) -> None:
        """Take the next record. Raises `SessionError` for a header that is not ours, and for a newer major version."""
        if isinstance(record, Damaged):
            self._take_damage(record)
            return
        if record.type == "":
            self._good += 1
            if self._header is None:  # a second one can only come from files that were joined by hand
                self._header = parse_header(record.data, self._path)
            return
        if record.type not in _KNOWN:
            self._unknown.append(record.line)
            return
        try:
            self._take(record)
        except _UNREADABLE:
            self._broken.append(record.line)
            self._open.damaged = True
            return
        self._good += 1

    def close(self) -> Loaded:
        """The file has ended. Raises `SessionError` where it holds lines and none of them could be read."""
        if not self._good and (self._broken or self._unknown):
            raise SessionError(f"{self._path}: none of its lines is a session record. Nothing was changed.")
        self._abandon(at_end=True)
        return attrs.evolve(
            self._facts,
            history=History(tuple(self._items)),
            header=self._header,
            runs=max(len(self._runs), *(_run_number(run) for run in self._runs), 0),
            interrupted=self._in_run,
            repaired=tuple(self._repaired),
            notices=tuple(self._notices()),
        )

    def _take_damage(self, damage: Damaged) -> None:
        if damage.torn:
            self._torn = True
        else:
            self._broken.append(damage.line)
        self._open.damaged = True

    def _take(self, record: Record) -> None:
        self._count(record.data)
        match record.type:
            case "run_began":
                self._abandon()
                began = _event(record, RunBegan)
                self._items.append(began.prompt)
                self._in_run, self._issuer = True, ""
                self._facts = attrs.evolve(self._facts, model=began.model)
            case "user_added":
                self._items.append(_event(record, UserAddedEvent).user)
            case "turn_committed":
                committed = _event(record, TurnCommitted)
                self._items.append(committed.exchange)
                self._open, self._issuer = _OpenTurn(), committed.exchange.message.issuer
                self._facts = attrs.evolve(self._facts, last_usage=committed.usage)
            case "turn_began":
                self._abandon()
            case "attempt_dropped":
                self._open = _OpenTurn()
            case "run_ended":
                self._abandon()
                self._in_run = False
                cost = _event(record, RunEnded).cost_usd or 0.0
                self._facts = attrs.evolve(self._facts, cost_usd=self._facts.cost_usd + cost)
            case _:
                self._take_piece(record)

    def _take_piece(self, record: Record) -> None:
        match record.type:
            case "part_done" | "call_ready" | "call_broken":
                self._open.parts.append(record)
            case "call_settled":
                self._open.settled.append(record)
            case "call_moved" if record.data["phase"] == "running":
                self._open.running.add(record.data["call_id"])
            case _:
                pass  # kept for people and for the lab; no part of history

    def _count(self, data: Mapping[str, JSON]) -> None:
        seq, at = int(data["seq"]), float(data["at"])
        self._runs.add(str(data["run_id"]))
        self._facts = attrs.evolve(self._facts, last_seq=max(seq, self._facts.last_seq), last_at=at)

    def _abandon(self, *, at_end: bool = False) -> None:
        """The open turn will not be committed any more: put together what must not be forgotten of it.

        A turn without calls and without commit was left out on purpose (its response failed), unless the file ends
        or is damaged inside it: then its text is kept.
        """
        turn, self._open = self._open, _OpenTurn()
        if not turn.parts or not (turn.has_calls or at_end or turn.damaged):
            return
        exchange, repaired = _put_together(turn, self._issuer)
        if exchange is not None:
            self._items.append(exchange)
            self._repaired.extend(repaired)

    def _notices(self) -> Iterable[str]:
        if self._torn:
            yield "its last record was cut off by a crash and is lost"
        if self._header is None and self._good:
            yield "its first line, the header, could not be read"
        if self._broken:
            yield f"{_lines(self._broken)} could not be read and {_were(self._broken)} skipped"
        if self._unknown:
            yield f"{_lines(self._unknown)} {_were(self._unknown)} skipped: written by a newer NovaCode"
        if self._repaired:
            yield (
                f"{len(self._repaired)} call{'s' * (len(self._repaired) > 1)} had no result when NovaCode ended:"
                f" {', '.join(self._repaired)}"
            )


def load(path: Path) -> Loaded:
    """Read the session at `path`. Linear in the file; holds no more of it than the history.

    Raises `SessionError` where it cannot be read at all, is no session, or is of a newer major version.
    """
    fold = Fold(str(path))
    try:
        with path.open("rb") as file:
            for record in read_lines(file):
                fold.feed(record)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror or error}") from error
    return fold.close()


def _put_together(turn: _OpenTurn, issuer: str) -> tuple[Exchange | None, list[CallId]]:
    """Return the exchange of a turn that was never committed, and the calls whose results were made up."""
    parts: dict[int, AssistantPart] = {}
    for record in turn.parts:
        match _readable(record):
            case PartDone(index, part) if not (isinstance(part, Thinking) and not part.seal):
                parts[index] = part
            case CallReady(index, call) | CallBroken(index, call):
                parts[index] = call
            case _:
                pass
    kept = _once_each(part for _, part in sorted(parts.items(), key=lambda item: item[0]))
    if not any(isinstance(part, ToolCall | BrokenCall) or (isinstance(part, Text) and part.text) for part in kept):
        return None, []
    events = map(_readable, turn.settled)
    settled = {event.result.call_id: event.result for event in events if isinstance(event, CallSettled)}
    message = Assistant(kept, issuer)
    results: list[ToolResult] = []
    repaired: list[CallId] = []
    for call in message.calls:
        known = settled.get(call.id)
        if known is None or known.name != call.name:
            known = _made_up(call, call.id in turn.running)
            repaired.append(call.id)
        results.append(known)
    return Exchange(message, tuple(results)), repaired


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


def _event(record: Record, kind: type[E]) -> E:
    event = serial.load_stamped(record.data).event
    if not isinstance(event, kind):
        raise TypeError(f"a record of type {record.type!r} gave {event!r}")
    return event


def _readable(record: Record) -> object:
    try:
        return serial.load_stamped(record.data).event
    except _UNREADABLE:
        return None


def _run_number(run_id: str) -> int:
    tail = run_id.rpartition("-r")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else 0


def _lines(numbers: list[int]) -> str:
    named = ", ".join(str(number) for number in numbers[:_MOST_LINES_NAMED])
    more = f" and {len(numbers) - _MOST_LINES_NAMED} more" if len(numbers) > _MOST_LINES_NAMED else ""
    return f"{len(numbers)} line{'s' * (len(numbers) > 1)} ({named}{more})"


def _were(numbers: list[int]) -> str:
    return "were" if len(numbers) > 1 else "was"
