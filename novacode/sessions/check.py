"""Whether a session file is whole: every line, and every call with exactly one result. Names the places where not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from novacode.errors import SessionError
from novacode.sessions.holders import holder
from novacode.sessions.lines import FORMAT
from novacode.sessions.mending import UNREADABLE
from novacode.sessions.record import Damaged, Record, parse_header, read_lines
from novacode.values import events, serial
from novacode.values.events import RunEvent
from novacode.values.ids import CallId
from novacode.values.results import ToolResult

__all__ = ["Problem", "Report", "check_session", "is_session"]

_HEAD = 64 * 1024
_KNOWN = frozenset(serial.TAGS.values())
_LEAVES = 3


@attrs.frozen
class Problem:
    """Something that is wrong at `place`: a line number, or the place of a message."""

    place: str
    text: str


@attrs.frozen
class Report:
    """What was found in a file: `problems` make it broken, `notes` do not."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    records: int = 0
    calls: int = 0


def is_session(path: Path) -> bool:
    """Whether the file at `path` is one of ours; also where its first line is damaged. Raises `OSError`."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return f'"format":"{FORMAT}"'.encode() in head or (b'{"seq":' in head and b'"run_id":' in head)


def check_session(path: Path) -> Report:
    """Read every record of the session at `path` and judge it. Changes nothing. Raises `SessionError`."""
    check = _Check(path)
    try:
        with path.open("rb") as file:
            for record in read_lines(file):
                check.feed(record)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror or error}") from error
    return check.close()


class _Check:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[Problem] = []
        self._notes: list[str] = []
        self._records = self._line = self._seq = 0
        self._sealed = self._damaged = False
        self._bare: list[int] = []  # lines without a checksum, as long as none had one
        self._run = ""
        self._opened: dict[CallId, int] = {}
        self._settled: dict[CallId, ToolResult] = {}
        self._committed: set[CallId] = set()

    def feed(self, record: Record | Damaged) -> None:
        self._line = record.line
        if isinstance(record, Record):
            if record.sealed and self._bare:
                self._problems += (
                    Problem(f"line {line}", "has no checksum, as later lines have") for line in self._bare
                )
                self._bare.clear()
            if not record.sealed and not self._sealed:
                self._bare.append(record.line)
            self._sealed = self._sealed or record.sealed
        if isinstance(record, Damaged):
            self._damage("was cut off by a crash" if record.torn else "is not a record")
        elif record.altered:
            self._damage("was changed after it was written: its checksum is wrong")
        elif self._sealed and not record.sealed:
            self._damage("has no checksum, as the lines before it have")
        elif record.type == "":
            self._header(record)
        elif record.type not in _KNOWN:
            self._notes.append(f"line {record.line} is of a kind this NovaCode does not know: {record.type!r}")
        else:
            self._records += 1
            self._record(record)

    def close(self) -> Report:
        if self._run:
            pid = holder(self._path)
            if pid is not None:
                self._notes.append(f"run {self._run} is under way in process {pid}")
            else:
                left = [call for call in self._opened if call not in self._committed]
                calls = f", and {len(left)} calls without a committed result: {', '.join(left)}" if left else ""
                self._say(f"run {self._run} has no end{calls}; `novacode sessions repair` gives it one")
        return Report(tuple(self._problems), tuple(self._notes), self._records, len(self._opened))

    def _say(self, text: str) -> None:
        self._problems.append(Problem(f"line {self._line}", text))

    def _damage(self, text: str) -> None:
        self._damaged = True
        self._say(text)

    def _header(self, record: Record) -> None:
        try:
            parse_header(record.data, str(self._path))
        except SessionError as error:
            self._damage(str(error))

    def _record(self, record: Record) -> None:
        try:
            stamped = serial.load_stamped(record.data)
        except UNREADABLE as error:
            self._damage(f"does not hold what its type {record.type!r} promises: {_reason(error)}")
            return
        if stamped.seq <= self._seq:
            self._say(f"event {stamped.seq} comes after event {self._seq}")
        self._seq = max(self._seq, stamped.seq)
        self._follow(stamped.event, stamped.run_id)
        # Behind a line that is lost, what is missing cannot be told from what is wrong.
        if not self._damaged:
            for text in self._judged(stamped.event):
                self._say(text)
        self._remember(stamped.event)

    def _follow(self, event: RunEvent, run_id: str) -> None:
        match event:
            case events.RunEnded():
                self._run = ""
            case events.RunBegan():
                if self._run:
                    self._notes.append(f"run {self._run} has no end; it was gone on from at line {self._line}")
                self._run = run_id
            case _:
                pass

    def _judged(self, event: RunEvent) -> Iterator[str]:
        match event:
            case events.CallReady(call=call) | events.CallBroken(call=call):
                if call.id in self._opened:
                    yield f"call {call.id} ({call.name}) has the id of the call at line {self._opened[call.id]}"
            case events.CallMoved(call_id=call_id, name=name) if call_id not in self._opened:
                yield f"call {call_id} ({name}) moved and was never made"
            case events.CallSettled(result=result):
                if result.call_id not in self._opened:
                    yield f"there is a result for call {result.call_id} ({result.name}), which was never made"
                elif result.call_id in self._settled:
                    yield f"call {result.call_id} ({result.name}) has a second result"
            case events.TurnCommitted(exchange=exchange):
                for result in exchange.results:
                    yield from self._judged_result(result)
            case _:
                pass

    def _judged_result(self, result: ToolResult) -> Iterator[str]:
        known = self._settled.get(result.call_id)
        if known is None:
            yield f"the result of call {result.call_id} ({result.name}) is in the history and was never settled"
        elif known != result:
            yield f"the result of call {result.call_id} ({result.name}) in the history is not what it was settled with"
        elif result.call_id in self._committed:
            yield f"call {result.call_id} ({result.name}) is in the history twice"

    def _remember(self, event: RunEvent) -> None:
        match event:
            case events.CallReady(call=call) | events.CallBroken(call=call):
                self._opened.setdefault(call.id, self._line)
            case events.CallSettled(result=result):
                self._settled.setdefault(result.call_id, result)
            case events.TurnCommitted(exchange=exchange):
                self._committed.update(result.call_id for result in exchange.results)
            case _:
                pass


def _reason(error: Exception) -> str:
    leaves: list[str] = []

    def collect(one: BaseException) -> None:
        if isinstance(one, BaseExceptionGroup):
            for inner in one.exceptions:
                collect(inner)
        else:
            leaves.append(f"{type(one).__name__}: {one}")

    collect(error)
    return "; ".join(leaves[:_LEAVES])
