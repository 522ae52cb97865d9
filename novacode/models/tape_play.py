"""A tape as it is played: what was asked and answered is taken off it, and what was not is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

import attrs
import trio

from novacode.errors import InputError, ReplayMismatch
from novacode.models.tape_file import FIELDS, Tape, TapeLine, bytes_of
from novacode.models.tape_match import Names, body_of, first_difference
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind
from novacode.values.parts import JSON

__all__ = ["BROKEN_OFF", "LONG", "TapePlayer", "TapedChunk", "TapedRequest", "requests_of"]

LONG = 1e6
"""Seconds of virtual time after which what was waited for on a tape will not come: eleven days."""

BROKEN_OFF = "broken off"
"""How a response ended whose end is not on the tape."""

_UNKNOWN = Failure(FailureKind.NETWORK, "the connection broke", retryable=True)


@attrs.frozen
class TapedChunk:
    """Bytes that came together, `gap` seconds after what came before them."""

    gap: float
    data: bytes


@attrs.frozen
class TapedRequest:
    """A request and what came back. `line` is where it is on the tape; `status` is `None` where nothing came."""

    number: int
    line: int
    method: str
    path: str
    body: JSON
    wait: float = 0.0
    status: int | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    chunks: tuple[TapedChunk, ...] = ()
    how: str = BROKEN_OFF
    end_gap: float = 0.0
    failure: Failure = _UNKNOWN


@attrs.define(eq=False)
class _Stop:
    """Where a run was stopped: due once nothing that stands before it on the tape is left."""

    reason: str
    before: set[int]


class TapePlayer:
    """Plays a tape once. `names` make what is asked comparable to what is on it.

    `places` are the folders that the words on it stand for. `virtual` is whether the clock is: then everything takes
    the time it took. Else nothing is waited for. Something that is not on the tape is told to `on_miss`, which stops
    the run; without one it is raised.
    """

    def __init__(
        self,
        tape: Tape,
        names: Names | None = None,
        places: Mapping[str, str] | None = None,
        *,
        virtual: bool = False,
    ) -> None:
        self.tape = tape
        self.names = names or Names()
        self.virtual = virtual
        self.on_miss: Callable[[str], None] | None = None
        self.stop_due = trio.Event()
        self._requests = list(requests_of(tape))
        self._others = [line for line in tape.lines if line.type in ("tool", "answer", "hook")]
        self._places = dict(places or {})
        self._asked = 0
        self._stops = _stops(tape)

    def take_request(self, request: WireRequest) -> TapedRequest:
        """Return the first request on the tape that is not taken yet and has the same content as `request`.

        Raises `ReplayMismatch` where there is none, with the first difference to the next one on the tape.
        """
        self._asked += 1
        found = {"method": request.method, "path": self.names.text(request.path)}
        body = self.names.value(body_of(request))
        for at, taped in enumerate(self._requests):
            if {"method": taped.method, "path": taped.path} == found and first_difference(taped.body, body) is None:
                return self._requests.pop(at)
        raise ReplayMismatch(self._missing(found, body))

    def _missing(self, found: Mapping[str, str], body: JSON) -> str:
        said = f"request {self._asked} is not on the tape {self.tape.source}"
        if not self._requests:
            return f"{said}: at $: expected no further request, found {found['method']} {found['path']}"
        taped = self._requests[0]
        for name in ("method", "path"):
            if (there := first_difference(getattr(taped, name), found[name], name)) is not None:
                break
        else:
            there = first_difference(taped.body, body)
        return f"{said}: it differs from request {taped.number} (line {taped.line}) {there}"

    def take(self, kind: str, wanted: Mapping[str, JSON]) -> TapeLine | None:
        """Return the first line of type `kind` that is not taken yet and holds `wanted`; `None` where there is none."""
        for at, line in enumerate(self._others):
            if line.type == kind and all(line.data.get(name) == value for name, value in wanted.items()):
                return self._others.pop(at)
        return None

    async def miss(self, text: str) -> NoReturn:
        """Something is not on the tape: see that the run stops, and wait for it. Raises `ReplayMismatch` in the end."""
        if self.on_miss is not None:
            self.on_miss(text)
            await trio.sleep(LONG)
        raise ReplayMismatch(text)

    def here(self, value: JSON) -> JSON:
        """Return `value` from the tape with the folders that are meant in the place of the words for them."""
        match value:
            case str():
                for word, path in self._places.items():
                    value = value.replace(word, path)
                return value
            case Mapping():
                return {name: self.here(item) for name, item in value.items()}
            case list():
                return [self.here(item) for item in value]
            case _:
                return value

    def done(self, line: int) -> None:
        """What stands at `line` has happened, as far as it ever did."""
        if not self._stops:
            return
        for stop in self._stops:
            stop.before.discard(line)
        if not self._stops[0].before:
            self.stop_due.set()

    @property
    def stops_later(self) -> bool:
        """Whether the run was stopped at some time from now on."""
        return bool(self._stops)

    def take_stop(self) -> str | None:
        """Return why the run was stopped, once that is due; `None` where it was not."""
        if not self._stops or self._stops[0].before:
            return None
        self.stop_due = trio.Event()
        return self._stops.pop(0).reason

    def unused(self) -> tuple[str, ...]:
        """Return, for people, which requests were not made."""
        if not self._requests:
            return ()
        which = ", ".join(f"{taped.number} (line {taped.line})" for taped in self._requests)
        count = "1 request" if len(self._requests) == 1 else f"{len(self._requests)} requests"
        return (f"{count} on the tape {self.tape.source} were not made: {which}",)


def _stops(tape: Tape) -> list[_Stop]:
    stops: list[_Stop] = []
    before: set[int] = set()
    for line in tape.lines:
        if line.type == "stopped":
            stops.append(_Stop(line.data["reason"], set(before)))
        elif line.type in ("request", "tool", "answer", "hook"):
            before.add(line.number)
    return stops


def requests_of(tape: Tape) -> tuple[TapedRequest, ...]:
    """Return the requests on `tape`, in order. Raises `InputError` where lines do not belong together."""
    grouped: dict[int, list[TapeLine]] = {}
    for line in tape.lines:
        if "request" not in FIELDS[line.type]:
            continue
        number, place = line.data["request"], f"{tape.source}, line {line.number}"
        lines = grouped.get(number, [])
        if line.type == "request" and lines:
            raise InputError(f"{place}: there is a request {number} already, in line {lines[0].number}")
        if line.type != "request" and not lines:
            raise InputError(f"{place}: there is no request {number} before this {line.type}")
        if lines and lines[-1].type == "end":
            raise InputError(f"{place}: request {number} has ended before this {line.type}")
        if line.type == "chunk" and lines[-1].type not in ("response", "chunk"):
            raise InputError(f"{place}: this chunk comes before the response it is of")
        grouped.setdefault(number, lines).append(line)
    return tuple(map(_request, grouped.values()))


def _request(lines: Sequence[TapeLine]) -> TapedRequest:
    first, last = lines[0], lines[-1]
    asked = first.data
    taped = TapedRequest(asked["request"], first.number, asked["method"], asked["path"], asked.get("body"))
    for line in lines[1:]:
        if line.type == "response":
            data = line.data
            taped = attrs.evolve(taped, wait=data["gap"], status=data["status"], headers=data["headers"])
    chunks = tuple(TapedChunk(line.data["gap"], bytes_of(line.data)) for line in lines if line.type == "chunk")
    if last.type != "end":
        return attrs.evolve(taped, chunks=chunks)
    failure = _failure(last.data["failure"]) if isinstance(last.data.get("failure"), dict) else _UNKNOWN
    return attrs.evolve(taped, chunks=chunks, how=last.data["how"], end_gap=last.data["gap"], failure=failure)


def _failure(data: Mapping[str, JSON]) -> Failure:
    known: Iterable[str] = (field.name for field in attrs.fields(Failure))
    given = {name: data[name] for name in known if name in data}
    try:
        return attrs.evolve(_UNKNOWN, **given | {"kind": FailureKind(given.get("kind", _UNKNOWN.kind))})
    except ValueError:
        return attrs.evolve(_UNKNOWN, **given | {"kind": _UNKNOWN.kind})
