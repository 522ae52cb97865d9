r"""The line format of a session: one JSON object a line, the first of them a header.

Lines end at `\n` and nowhere else. They are written by the standard library's encoder whatever is installed, so the
same events give the same bytes on every machine; `orjson` only makes reading faster.

Every line ends with the checksum of what stands before it (`,"crc":"0a1b2c3d"}`), so that a changed bit is noticed and
told by line number, also where the line still is JSON. A line without one is read as it is.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO

import attrs

from novacode.errors import SessionError
from novacode.sessions.lines import FORMAT, load_line
from novacode.values import events, serial
from novacode.values.events import Phase, RunEvent, Stamped
from novacode.values.ids import SessionId
from novacode.values.parts import JSON

__all__ = [
    "LINE_ENDS",
    "Damaged",
    "Header",
    "Record",
    "encode",
    "is_kept",
    "json_line",
    "parse_header",
    "read_lines",
]

LINE_ENDS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Raw, these are legal in JSON, and line ends to many readers of lines (`str.splitlines` among them)."""

_SEAL = b',"crc":"'
_SEAL_LENGTH = len(_SEAL) + 8 + len('"}')

_ALWAYS_KEPT = (
    events.RunBegan,
    events.TurnBegan,
    events.Started,
    events.Finished,
    events.AttemptDropped,
    events.PartDone,
    events.CallReady,
    events.CallBroken,
    events.FilesChanged,
    events.CallSettled,
    events.ApprovalAsked,
    events.ApprovalClosed,
    events.HookRan,
    events.TurnCommitted,
    events.UserAdded,
    events.Compacted,
    events.Notice,
    events.RunEnded,
)


@attrs.frozen
class Header:
    """The first line. `created` is seconds since 1970, `cwd` the folder the session was begun in."""

    session_id: SessionId
    cwd: str
    created: float
    version: int = serial.VERSION


@attrs.frozen
class Record:
    """A line that is one JSON object: `line` counts from 1, `type` is its tag, empty for a header.

    `altered`: the line is not what was written, its checksum says; what is in it may be wrong.
    `sealed`: it has a checksum.
    """

    line: int
    type: str
    data: Mapping[str, JSON]
    altered: bool = False
    sealed: bool = False


@attrs.frozen
class Damaged:
    """A line that is not one JSON object with a type. `torn`: it is the last one and has no line end."""

    line: int
    torn: bool = False


def is_kept(event: RunEvent) -> bool:
    """Whether `event` belongs into the journal.

    History folds over run beginnings, user messages, commits and compactions. The parts, calls, moves to `RUNNING` and
    results are kept so that a turn that was never committed, because of a crash, can be told to the model as what it
    was. Where streams begin and end, and where calls queue, is kept for the time-line.
    """
    if isinstance(event, events.CallMoved):
        return event.phase in (Phase.QUEUED, Phase.RUNNING)
    return isinstance(event, _ALWAYS_KEPT)


def json_line(data: Mapping[str, JSON]) -> bytes:
    """Return `data` as compact JSON and a line end, in UTF-8.

    Never fails for what a model or a tool may have said: half surrogate pairs are written as escapes, and numbers
    that JSON does not have (NaN, infinities) as `null`.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"))
    for raw, escaped in LINE_ENDS.items():
        if raw in text:
            text = text.replace(raw, escaped)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":")).encode() + b"\n"


def encode(thing: Header | Stamped) -> bytes:
    """Return the line that stands for `thing`, with its checksum."""
    if isinstance(thing, Stamped):
        return _seal(json_line(serial.dump_stamped(thing)))
    return _seal(
        json_line(
            {
                "format": FORMAT,
                "version": thing.version,
                "session_id": thing.session_id,
                "cwd": thing.cwd,
                "created": thing.created,
            }
        )
    )


def _seal(line: bytes) -> bytes:
    body = line[:-2]  # without brace and line end
    return b'%b%b%08x"}\n' % (body, _SEAL, zlib.crc32(body))


def _seal_of(line: bytes) -> bool | None:
    """Return whether the checksum of `line` is right; `None` where it has none."""
    end = len(line) - line.endswith(b"\n") - line.endswith(b"\r\n")
    start = max(0, end - _SEAL_LENGTH)
    if not line.startswith(_SEAL, start):
        return None
    return line[start + len(_SEAL) : end] == b'%08x"}' % zlib.crc32(memoryview(line)[:start])


def parse_header(data: Mapping[str, JSON], path: str) -> Header:
    """Return the header that `data` is. Raises `SessionError` for other formats and for newer major versions."""
    if data.get("format") != FORMAT:
        raise SessionError(f"{path} is not a NovaCode session: its first line says format={data.get('format')!r}")
    version = data.get("version")
    if not isinstance(version, int) or version > serial.VERSION:
        raise SessionError(
            f"{path} was written in version {version!r} of the session format; this NovaCode reads versions up to"
            f" {serial.VERSION}. Nothing was changed. Use the NovaCode that wrote it, or a newer one."
        )
    created = data.get("created")
    return Header(
        session_id=SessionId(str(data.get("session_id", ""))),
        cwd=str(data.get("cwd", "")),
        created=float(created) if isinstance(created, int | float) else 0.0,
        version=version,
    )


def read_lines(file: BinaryIO) -> Iterator[Record | Damaged]:
    """Yield every line of `file` that is not blank, one at a time: memory stays that of the longest line."""
    for number, raw in enumerate(file, start=1):
        if raw.isspace():
            continue
        data = load_line(raw)
        tag = data.get("type", "" if "format" in data else None) if isinstance(data, dict) else None
        if isinstance(tag, str):
            seal = _seal_of(raw)
            yield Record(number, tag, data, altered=seal is False, sealed=seal is not None)
        else:
            yield Damaged(number, torn=not raw.endswith(b"\n"))


def _finite(value: JSON) -> JSON:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
