r"""The file a tape is: JSON lines that a person can read and edit, the first of them a header.

    {"format":"novacode-tape","version":1,"model":"anthropic/…","folder":"/home/me/project",…}
    {"type":"request","request":1,"method":"POST","path":"/v1/messages","body":{…}}
    {"type":"response","request":1,"gap":0.41,"status":200,"headers":{"content-type":"text/event-stream"}}
    {"type":"chunk","request":1,"gap":0.02,"text":"event: message_start\ndata: {…}\n\n"}
    {"type":"tool","call":"toolu_1","name":"shell","arguments":{…},"took":0.12,"how":"done","content":[…]}
    {"type":"end","request":1,"gap":0.0,"how":"end"}

Every line is written the moment what it tells has happened, so a recording that was killed can still be read. Lines of
several requests may be mixed: `request` says which one a line belongs to. Times are seconds.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from novacode.errors import InputError
from novacode.values.parts import JSON

__all__ = [
    "FIELDS",
    "FORMAT",
    "HOWS",
    "VERSION",
    "Tape",
    "TapeHeader",
    "TapeLine",
    "TapeWriter",
    "bytes_of",
    "dump_lines",
    "packed",
    "read_header",
    "read_tape",
]

FORMAT = "novacode-tape"
VERSION = 1

HOWS = ("end", "cut", "stall", "left", "stopped")
"""How a response ended: by its end, a broken connection, silence, the reader had enough, or the run was stopped."""

FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "request": {"request": int, "method": str, "path": str},
    "response": {"request": int, "gap": (int, float), "status": int, "headers": dict},
    "chunk": {"request": int, "gap": (int, float)},
    "end": {"request": int, "gap": (int, float), "how": str},
    "tool": {"call": str, "name": str, "arguments": dict, "took": (int, float), "how": str},
    "answer": {"call": str, "allowed": bool, "by": str},
    "hook": {"event": str, "answer": dict},
    "stopped": {"reason": str},
}
"""What each type of line must have, and of which type it is."""

_HEADER_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "scripted": bool,
    "seed": int,
    "clock": (int, float),
    "somebody": bool,
}

_LINE_ENDS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Raw, these are legal in JSON, and line ends to many editors."""


@attrs.frozen
class TapeHeader:
    """The first line: what was recorded, and where.

    `model` is what people call the model, `name` what its provider does; `protocol`, `quirks` and `issuer` say how to
    read it. `folder` is the working folder, `repository` the root of its repository. `clock` is the time the recording
    began at, and `somebody` whether a person could be asked.
    """

    model: str
    name: str
    protocol: str
    quirks: str = ""
    issuer: str = ""
    scripted: bool = False
    folder: str = ""
    repository: str = ""
    platform: str = ""
    seed: int = 0
    clock: float = 0.0
    somebody: bool = False


@attrs.frozen
class TapeLine:
    """A line after the header: `number` counts from 1, the header's; `type` is a key of `FIELDS`."""

    number: int
    type: str
    data: Mapping[str, JSON]


@attrs.frozen
class Tape:
    """A tape as it was read. `source` is its path, for messages."""

    source: str
    header: TapeHeader
    lines: tuple[TapeLine, ...]


class TapeWriter:
    """Writes a tape, line by line, each at once and synchronously.

    The file is opened when this is made, so that a place that cannot be written is told before anything happens, and
    what it held is replaced by the first line. Raises `InputError` where there is a file that is no tape. A disk that
    does not take a line is told to `on_failure`, once; nothing is written from then on.
    """

    def __init__(self, path: Path, header: TapeHeader) -> None:
        self.path = path
        self.on_failure: Callable[[OSError], None] = lambda _: None
        self._header: TapeHeader | None = header
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(f"the tape {path} cannot be written: {error.strerror or error}") from None
        if not _may_be_replaced(self._fd):
            os.close(self._fd)
            raise InputError(f"{path} is there and is not a tape, so it is not overwritten: name another file")

    def write(self, kind: str, fields: Mapping[str, JSON]) -> None:
        """Append a line of type `kind`."""
        if self._fd < 0:
            return
        data = dump_lines([{"type": kind, **fields}])
        try:
            if self._header is not None:
                os.ftruncate(self._fd, 0)
                data = dump_lines([_header_data(self._header)]) + data
                self._header = None
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self.close()
            self.on_failure(error)

    def close(self) -> None:
        """Nothing more is written. Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _may_be_replaced(fd: int) -> bool:
    begin = os.pread(fd, 4096, 0)
    return not begin or f'"{FORMAT}"'.encode() in begin


def _header_data(header: TapeHeader) -> dict[str, JSON]:
    return {"format": FORMAT, "version": VERSION, **attrs.asdict(header)}


def dump_lines(lines: Iterable[Mapping[str, JSON] | TapeHeader]) -> bytes:
    """Return `lines` as they stand in a file."""
    return b"".join(_line(_header_data(line) if isinstance(line, TapeHeader) else line) for line in lines)


def _line(data: Mapping[str, JSON]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for raw, escaped in _LINE_ENDS.items():
        text = text.replace(raw, escaped)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair; as an escape it is JSON
        return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def packed(data: bytes, hide: Callable[[str], str] = str) -> dict[str, JSON]:
    """Return bytes as a line holds them: as text where they are UTF-8, changed by `hide`, else as base64."""
    try:
        return {"text": hide(data.decode())}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def bytes_of(data: Mapping[str, JSON]) -> bytes:
    """Return the bytes that `packed` has packed. Raises `ValueError` for anything else."""
    match data:
        case {"text": str(text)}:
            return text.encode("utf-8", "surrogatepass")
        case {"base64": str(text)}:
            return base64.b64decode(text, validate=True)
        case _:
            raise ValueError("neither `text` nor `base64` is a text")


def read_header(path: Path) -> TapeHeader:
    """Return the header of the tape at `path`; the rest is not read. Raises `InputError`."""
    try:
        with path.open("rb") as file:
            return _header(str(path), file.readline())
    except OSError as error:
        raise InputError(f"the tape {path} cannot be read: {error.strerror or error}") from None


def read_tape(path: Path) -> Tape:
    """Return the tape at `path`. Raises `InputError` with the number of the line that is wrong.

    Half a last line, as a recording leaves it that was killed, is left out. Lines that are blank are skipped.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"the tape {path} cannot be read: {error.strerror or error}") from None
    first, *rest = raw.split(b"\n")
    header, lines = _header(str(path), first), []
    for number, line in enumerate(rest, start=2):
        if not line.strip():
            continue
        torn = number == len(rest) + 1 and not raw.endswith(b"\n")
        try:
            lines.append(_parsed(number, line))
        except ValueError as wrong:
            if torn:
                break
            raise InputError(f"{path}, line {number}: {wrong}") from None
    return Tape(str(path), header, tuple(lines))


def _parsed(number: int, line: bytes) -> TapeLine:
    data = _object(line)
    kind = data.get("type")
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise ValueError(f"its type is {kind!r}; there are {', '.join(FIELDS)}")
    for name, wanted in fields.items():
        value = data.get(name)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise ValueError(f"`{name}` of a {kind} is {value!r}")
    if kind == "chunk":
        try:
            bytes_of(data)
        except (ValueError, binascii.Error) as wrong:
            raise ValueError(f"a chunk has no bytes that can be read: {wrong}") from None
    if kind == "end" and data["how"] not in HOWS:
        raise ValueError(f"`how` of an end is {data['how']!r}; there are {', '.join(HOWS)}")
    return TapeLine(number, str(kind), data)


def _object(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"this is no JSON: {wrong}") from None
    if not isinstance(data, dict):
        raise ValueError("this is no JSON object")
    return data


def _header(source: str, line: bytes) -> TapeHeader:
    try:
        data = _object(line)
    except ValueError:
        data = {}
    if data.get("format") != FORMAT:
        raise InputError(f"{source} is not a tape: its first line does not say {FORMAT!r}")
    version = data.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"{source} is a tape of version {version!r}; this NovaCode reads versions up to {VERSION}")
    given = {field.name: data[field.name] for field in attrs.fields(TapeHeader) if field.name in data}
    for field in attrs.fields(TapeHeader):
        value = given.get(field.name, None if field.default is attrs.NOTHING else field.default)
        wanted = _HEADER_TYPES.get(field.name, str)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise InputError(f"{source}, line 1: `{field.name}` is {value!r}")
    return TapeHeader(**given)
