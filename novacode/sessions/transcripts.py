"""Transcripts that other programs wrote: reading them, judging whether calls and results are one to one, mending them.

Read are a JSON array of messages, an object with `messages`, and JSON lines of messages, bare or inside a `message`
field as streams of agents have them. What is not a message (a header, a summary) is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import attrs

from novacode.errors import InputError
from novacode.sessions.check import Problem, Report
from novacode.sessions.dialects import Call, Dialect, Result, dialect_of
from novacode.sessions.lines import load_line
from novacode.sessions.record import json_line
from novacode.values.parts import JSON

__all__ = ["Transcript", "judge", "mended", "read_transcript", "write_transcript"]

_LOST = "There is no result on record for this call: its outcome is unknown."

Form = Literal["array", "object", "lines"]


@attrs.frozen
class Entry:
    """One place of a transcript: `message` is what of `raw` is one; `None` where it is something else."""

    place: str
    raw: JSON
    message: Mapping[str, JSON] | None

    def holding(self, message: Mapping[str, JSON]) -> Entry:
        """Return this place with another message."""
        raw = message if self.raw is self.message else {**self.raw, "message": message}
        return Entry(self.place, raw, message)


@attrs.frozen
class Transcript:
    """A transcript as read. `unreadable` are the places that hold no JSON; `around` is the object of that form."""

    form: Form
    entries: tuple[Entry, ...]
    unreadable: tuple[Problem, ...] = ()
    around: Mapping[str, JSON] = attrs.field(factory=dict)

    @property
    def dialect(self) -> Dialect:
        """How its messages are written."""
        return dialect_of(entry.message for entry in self.entries if entry.message is not None)


def read_transcript(path: Path) -> Transcript:
    """Read the file at `path`. Raises `InputError` where it cannot be read or holds no messages."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    transcript = _read(data)
    if not any(entry.message is not None for entry in transcript.entries):
        raise InputError(
            f"{path} holds no messages: expected is a session of NovaCode, a JSON array of messages, an object with"
            " `messages`, or a message a line"
        )
    return transcript


def write_transcript(transcript: Transcript) -> bytes:
    """Return `transcript` in the form it was read in."""
    raw = [entry.raw for entry in transcript.entries]
    if transcript.form == "lines":
        return b"".join(json_line(one) for one in raw)
    whole: JSON = raw if transcript.form == "array" else {**transcript.around, "messages": raw}
    return json.dumps(whole, indent=2).encode() + b"\n"


def judge(transcript: Transcript) -> Report:
    """Return whether every call has exactly one result, where it belongs, and names the places where not."""
    dialect, calls = transcript.dialect, 0
    problems = list(transcript.unreadable)
    seen: set[str] = set()
    open_: dict[str, Call] = {}
    last_role = ""
    for entry in transcript.entries:
        message = entry.message
        if message is None:
            continue
        role = str(message.get("role", ""))
        same_turn = dialect.merges and role == last_role
        for result in dialect.results(message):
            problems += (Problem(entry.place, text) for text in _wrong_result(result, open_, seen))
            open_.pop(result.id, None)
        if open_ and dialect.says_more(message) and not (same_turn and role == "assistant"):
            problems.append(Problem(entry.place, f"comes before the results of {_named(open_.values())}"))
            open_ = {}
        for call in dialect.calls(message):
            calls += 1
            problems += (Problem(entry.place, text) for text in _wrong_call(call, open_, seen, dialect))
            open_[call.id] = call
            seen.add(call.id)
        last_role = role
    if open_:
        problems.append(Problem("at the end", f"there is no result for {_named(open_.values())}"))
    return Report(tuple(problems), (), len(transcript.entries), calls)


def _wrong_result(result: Result, open_: Mapping[str, Call], seen: set[str]) -> Iterator[str]:
    if result.id in open_:
        if result.late:
            yield f"the result for {result.id!r} stands after other content"
    elif result.id in seen:
        yield f"there is another result for {result.id!r}, or it stands too late"
    else:
        yield f"there is a result for {result.id!r}, which was not called"


def _wrong_call(call: Call, open_: Mapping[str, Call], seen: set[str], dialect: Dialect) -> Iterator[str]:
    if not call.id:
        yield f"a call of {call.name!r} has no id"
    elif call.id in open_ or (call.id in seen and dialect.merges):
        yield f"the call id {call.id!r} is used twice"


def mended(transcript: Transcript) -> Transcript:
    """Return `transcript` with exactly one result for each call, right behind it.

    A result that stands elsewhere is moved, the first of several wins, one without a call is left out, one that is
    missing says that the outcome is unknown. Ids that are missing or used twice are replaced. Lines that hold no JSON
    are left out.
    """
    return attrs.evolve(transcript, entries=tuple(_mended(transcript)), unreadable=())


def _mended(transcript: Transcript) -> Iterator[Entry]:
    dialect = transcript.dialect
    entries = [entry for entry in transcript.entries if entry.message is not None]
    owed = _Owed(dialect, [(at, result) for at, entry in enumerate(entries) for result in _results(dialect, entry)])
    at = -1
    for entry in transcript.entries:
        message = entry.message
        if message is None:
            yield entry
            continue
        at += 1
        assistant = message.get("role") == "assistant"
        if owed.items and not (assistant and dialect.merges):
            answers = owed.pay(message if dialect.says_more(message) and not assistant else None)
            yield from (entry.holding(one) for one in answers)
            if not assistant:
                continue
        if assistant:
            kept = dialect.answers([], message) if dialect.results(message) else [message]
            yield from (entry.holding(owed.take(one, at)) for one in kept)
        elif not dialect.results(message):
            yield entry
        elif dialect.says_more(message):
            yield from (entry.holding(one) for one in dialect.answers([], message))
    if owed.items and at >= 0:
        for one in owed.pay(None):
            yield Entry("at the end", one if entries[-1].raw is entries[-1].message else _wrapped(one), one)


class _Owed:
    """The results that have to follow next, and where each is taken from."""

    def __init__(self, dialect: Dialect, results: list[tuple[int, Result]]) -> None:
        self.items: list[tuple[str, JSON]] = []
        self._dialect = dialect
        self._results = results
        self._ids: set[str] = set()

    def take(self, message: Mapping[str, JSON], at: int) -> Mapping[str, JSON]:
        """Note what the calls of `message` need, and return it with ids that are its own."""
        calls = self._dialect.calls(message)
        new = [self._fresh(call.id) for call in calls]
        for call, identity in zip(calls, new, strict=True):
            self.items.append((identity, self._found(call.id, at) or self._dialect.made_up(identity, _LOST)))
        return self._dialect.renamed(message, new) if calls else message

    def pay(self, more: Mapping[str, JSON] | None) -> list[Mapping[str, JSON]]:
        """Return the messages with what is owed, and what `more` says behind it."""
        items, self.items = self.items, []
        return self._dialect.answers(items, more)

    def _found(self, wanted: str, after: int) -> JSON:
        for place, (at, result) in enumerate(self._results):
            if at > after and result.id == wanted:
                del self._results[place]
                return result.item
        return None

    def _fresh(self, wanted: str) -> str:
        identity, number = wanted or "call", 1
        while identity in self._ids or not identity:
            number += 1
            identity = f"{wanted or 'call'}_{number}"
        self._ids.add(identity)
        return identity


def _results(dialect: Dialect, entry: Entry) -> list[Result]:
    return dialect.results(entry.message) if entry.message is not None else []


def _wrapped(message: Mapping[str, JSON]) -> JSON:
    return {"type": str(message.get("role")), "message": message}


def _read(data: bytes) -> Transcript:
    whole = load_line(data)
    if isinstance(whole, Mapping) and isinstance(whole.get("messages"), list):
        return Transcript("object", _entries(whole["messages"]), around=whole)
    if isinstance(whole, list):
        return Transcript("array", _entries(whole))
    entries: list[Entry] = []
    unreadable: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        value = load_line(line)
        if isinstance(value, Mapping):
            entries.append(Entry(f"line {number}", value, _message(value)))
        else:
            unreadable.append(Problem(f"line {number}", "is not a JSON object"))
    return Transcript("lines", tuple(entries), tuple(unreadable))


def _entries(values: list[JSON]) -> tuple[Entry, ...]:
    return tuple(Entry(f"message {number}", value, _message(value)) for number, value in enumerate(values, start=1))


def _message(value: JSON) -> Mapping[str, JSON] | None:
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("role"), str):
        return value
    inner = value.get("message")
    return inner if isinstance(inner, Mapping) and isinstance(inner.get("role"), str) else None


def _named(calls: Iterable[Call]) -> str:
    return ", ".join(f"{call.name} {call.id}" for call in calls)
