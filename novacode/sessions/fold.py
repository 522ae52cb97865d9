"""From the records of a session to its history: strictly paired, whatever happened to the file.

A turn that was committed is taken as committed. One that was not, because the process died or its record is damaged,
is put together again from the records of its parts and calls: calls that had begun and have no result are `LOST`,
others `SKIPPED`, each with its identity. The same file always gives the same history. Where the last run has no end,
`Loaded.repair` holds the events that give it one; whoever opens the session for writing appends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from novacode.engine.conversation import Conversation
from novacode.errors import SessionError
from novacode.sessions.badlines import BadLines
from novacode.sessions.loaded import Loaded
from novacode.sessions.mending import UNREADABLE, OpenRun, OpenTurn, Rebuilt, endings, readable, rebuild, unanswered
from novacode.sessions.record import Damaged, Header, Record, parse_header, read_lines
from novacode.values import serial
from novacode.values.compaction import compacted
from novacode.values.events import Compacted, RunBegan, RunEnded, Stamped, TurnCommitted
from novacode.values.events import UserAdded as UserAddedEvent
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId, RunId
from novacode.values.parts import JSON, User
from novacode.values.request import Usage

__all__ = ["Fold", "events_of", "load"]

_KNOWN = frozenset(serial.TAGS.values())
_OF_A_RUN = frozenset({"turn_began", "part_done", "call_ready", "call_broken", "call_moved", "turn_committed"})
"""Records that show a run to be under way, also where the record of its beginning cannot be read."""

E = TypeVar("E")


class Fold:
    """Takes records in file order with `feed`, and says with `close` what they add up to.

    `whole` is the history as it was, for people; without it, it is what the model is told after each compaction.
    """

    def __init__(self, path: str, *, whole: bool = False) -> None:
        self._path = path
        self._whole = whole
        self._call_ids: frozenset[CallId] = frozenset()
        self._header: Header | None = None
        self._items: list[User | Exchange] = []
        self._turn = OpenTurn()
        self._run: OpenRun | None = None
        self._issuer = ""
        self._runs: set[str] = set()
        self._last_seq = 0
        self._last_at = 0.0
        self._model = ""
        self._last_usage: Usage | None = None
        self._cost = 0.0
        self._lines = BadLines()
        self._repaired: list[CallId] = []

    def feed(self, record: Record | Damaged) -> None:
        """Take the next record. Raises `SessionError` for a header that is not ours, and for a newer major version."""
        lines = self._lines
        if isinstance(record, Damaged):
            lines.torn = lines.torn or record.torn
            self._skip(record.line, told=record.torn)
        elif record.type == "":
            self._take_header(record)
        elif record.type not in _KNOWN:
            (lines.broken if record.altered else lines.unknown).append(record.line)
        else:
            try:
                self._take(record)
            except UNREADABLE:
                self._skip(record.line)
                return
            lines.good += 1
            if record.altered:
                lines.altered.append(record.line)

    def close(self) -> Loaded:
        """The file has ended. Raises `SessionError` where it holds lines and none of them could be read."""
        lines = self._lines
        if not lines.good and (lines.broken or lines.unknown):
            raise SessionError(f"{self._path}: none of its lines is a session record. Nothing was changed.")
        rebuilt = self._abandon(at_end=True)
        history = History(tuple(self._items))
        return Loaded(
            history=history,
            call_ids=self._call_ids | history.call_ids,
            header=self._header,
            runs=max(len(self._runs), *(_run_number(run) for run in self._runs), 0),
            last_seq=self._last_seq,
            last_at=self._last_at,
            model=self._model,
            last_usage=self._last_usage,
            cost_usd=self._cost,
            interrupted=self._run is not None,
            repaired=tuple(self._repaired),
            repair=self._repair(history, rebuilt),
            notices=tuple(self._notices()),
        )

    def _skip(self, line: int, *, told: bool = False) -> None:
        if not told:
            self._lines.broken.append(line)
        self._turn.damaged = True

    def _take_header(self, record: Record) -> None:
        """Take a header. One whose checksum is wrong says nothing that could be relied on, its version least of all."""
        if record.altered:
            self._skip(record.line)
            return
        self._lines.good += 1
        if self._header is None:  # a second one can only come from files that were joined by hand
            self._header = parse_header(record.data, self._path)

    def _take(self, record: Record) -> None:
        if not record.altered:
            self._count(record)
        match record.type:
            case "run_began":
                self._abandon()
                began = _event(record, RunBegan)
                self._items.append(began.prompt)
                self._run, self._issuer, self._model = OpenRun(record.data["run_id"]), "", began.model
            case "user_added":
                self._items.append(_event(record, UserAddedEvent).user)
            case "compacted":
                self._compact(_event(record, Compacted))
            case "turn_committed":
                self._commit(_event(record, TurnCommitted))
            case "turn_began":
                self._abandon()
            case "attempt_dropped":
                self._turn = OpenTurn()
            case "run_ended":
                ended = _event(record, RunEnded)
                self._abandon()
                self._run = None
                self._cost += ended.cost_usd or 0.0
            case _:
                self._take_piece(record)

    def _take_piece(self, record: Record) -> None:
        match record.type:
            case "part_done" | "call_ready" | "call_broken":
                self._turn.parts.append(record)
            case "call_settled":
                self._turn.settled.append(record)
            case "call_moved" if record.data["phase"] == "running":
                self._turn.running.add(record.data["call_id"])
            case "approval_asked" if self._run is not None:
                self._run.questions[record.data["approval_id"]] = record
            case "approval_closed" if self._run is not None:
                self._run.questions.pop(record.data["approval_id"], None)
            case _:
                pass  # kept for people and for the lab; no part of history

    def _commit(self, committed: TurnCommitted) -> None:
        self._items.append(committed.exchange)
        self._turn, self._issuer = OpenTurn(), committed.exchange.message.issuer
        self._last_usage = committed.usage
        if self._run is not None:
            self._run.progress.add((committed.usage,))
            self._run.outcomes.update(result.outcome.value for result in committed.exchange.results)

    def _compact(self, event: Compacted) -> None:
        if self._whole:
            return
        history = History(tuple(self._items))
        self._call_ids |= history.call_ids
        self._items = list(compacted(history, event).items)

    def _count(self, record: Record) -> None:
        data: Mapping[str, JSON] = record.data
        self._last_at = float(data["at"])
        self._last_seq = max(int(data["seq"]), self._last_seq)
        run_id = str(data["run_id"])
        if run_id not in self._runs:
            self._runs.add(run_id)
            if self._run is None and record.type in _OF_A_RUN:
                self._run = OpenRun(RunId(run_id))

    def _abandon(self, *, at_end: bool = False) -> Rebuilt | None:
        """The open turn will not be committed any more: put together what must not be forgotten of it.

        A turn without calls and without commit was left out on purpose (its response failed), unless the file ends
        or is damaged inside it: then its text is kept.
        """
        turn, self._turn = self._turn, OpenTurn()
        if not turn.parts or not (turn.has_calls or at_end or turn.damaged):
            return None
        rebuilt = rebuild(turn, self._issuer)
        if rebuilt is not None:
            self._items.append(rebuilt.exchange)
            self._repaired.extend(result.call_id for result in rebuilt.made_up)
        return rebuilt

    def _repair(self, history: History, rebuilt: Rebuilt | None) -> tuple[Stamped, ...]:
        """Return the events that end a run without end. They bear the time of its last record: what is known of it."""
        run = self._run
        if run is None:
            return ()
        events = endings(run, rebuilt, Conversation(history).last_text())
        return tuple(Stamped(seq, run.id, self._last_at, event) for seq, event in enumerate(events, self._last_seq + 1))

    def _notices(self) -> Iterable[str]:
        if self._header is None and self._lines.good:
            yield "its first line, the header, could not be read"
        yield from self._lines.notices()
        if self._repaired:
            yield unanswered(self._repaired)


def load(path: Path, *, whole: bool = False) -> Loaded:
    """Read the session at `path`. Linear in the file; holds no more of it than the history.

    `whole` leaves in the history what compactions have taken out of it: for people, not for going on.

    Raises `SessionError` where it cannot be read at all, is no session, or is of a newer major version.
    """
    fold = Fold(str(path), whole=whole)
    for record in _records(path):
        fold.feed(record)
    return fold.close()


def events_of(path: Path) -> Iterator[Stamped]:
    """Yield the events on record at `path` that can be read, in order. Raises `SessionError`."""
    for record in _records(path):
        if isinstance(record, Record) and record.type in _KNOWN and (stamped := readable(record)) is not None:
            yield stamped


def _records(path: Path) -> Iterator[Record | Damaged]:
    try:
        with path.open("rb") as file:
            yield from read_lines(file)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror or error}") from error


def _event(record: Record, kind: type[E]) -> E:
    event = serial.load_stamped(record.data).event
    if not isinstance(event, kind):
        raise TypeError(f"a record of type {record.type!r} gave {event!r}")
    return event


def _run_number(run_id: str) -> int:
    tail = run_id.rpartition("-r")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else 0
