"""What is done with whole tapes: cutting pieces out, putting them together, looking for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from novacode.errors import InputError, UsageError
from novacode.models.key_shapes import find_keys
from novacode.models.tape_file import Tape, TapeHeader, TapeLine, bytes_of, dump_lines, read_tape
from novacode.models.tape_play import BROKEN_OFF, requests_of
from novacode.values.parts import JSON

__all__ = ["file_of", "merged", "pieces", "problems", "trimmed"]


def pieces(tape: Tape) -> tuple[tuple[TapeLine, ...], ...]:
    """Return the lines of `tape` by request: each with all that belongs to it.

    What tools, people and hooks said belongs to the request that was made last; what was said before any belongs to
    the first.
    """
    requests_of(tape)  # raises where lines do not belong together
    found: dict[int, list[TapeLine]] = {}
    early: list[TapeLine] = []
    last: list[TapeLine] = early
    for line in tape.lines:
        if line.type == "request":
            last = found[line.data["request"]] = []
        (found[line.data["request"]] if "request" in line.data else last).append(line)
    for lines in list(found.values())[:1]:
        lines[:0] = early
    return tuple(map(tuple, found.values()))


def trimmed(tape: Tape, first: int, last: int | None) -> bytes:
    """Return a tape of the requests `first` to `last` of `tape`, counted from 1, with what belongs to them.

    Raises `UsageError` where there are none of these.
    """
    found = pieces(tape)
    kept = found[first - 1 : last]
    if not kept:
        raise UsageError(f"{tape.source} has {len(found)} requests, and none from {first} to {last or 'its end'}")
    return file_of(tape.header, kept)


def merged(tapes: Sequence[Tape]) -> bytes:
    """Return a tape of all requests of `tapes`, one tape after the other, with the first one's header.

    Raises `UsageError` where they cannot be one: other models, or other folders, which answers may speak of.
    """
    first = tapes[0]
    for other in tapes[1:]:
        for name in ("model", "name", "protocol", "quirks", "issuer", "folder", "platform"):
            mine, theirs = getattr(first.header, name), getattr(other.header, name)
            if mine != theirs:
                raise UsageError(
                    f"{other.source} cannot follow {first.source}: its {name} is {theirs!r}, not {mine!r}. Where that "
                    "makes no difference, change it in its first line"
                )
    return file_of(first.header, [piece for tape in tapes for piece in pieces(tape)])


def file_of(header: TapeHeader, found: Sequence[Sequence[TapeLine]]) -> bytes:
    """Return a tape with these requests, numbered anew."""
    lines: list[dict[str, JSON]] = []
    for number, piece in enumerate(found, start=1):
        lines += [dict(line.data) | ({"request": number} if "request" in line.data else {}) for line in piece]
    return dump_lines([header, *lines])


def problems(path: Path) -> tuple[str, ...]:
    """Return what is wrong with the tape at `path`, with line numbers. Raises `InputError` only where it is none."""
    try:
        tape = read_tape(path)
        asked = requests_of(tape)
    except InputError as wrong:
        if not path.is_file() or "is not a tape" in str(wrong):
            raise
        return (str(wrong),)
    found = list(_keys(tape, path))
    if not path.read_bytes().endswith(b"\n"):
        found.append("the last line is not whole: the recording was killed while it was written, or the file was cut")
    found += [
        f"line {taped.line}: the answer to request {taped.number} has no end; a replay stops there"
        for taped in asked
        if taped.how == BROKEN_OFF
    ]
    return tuple(found)


def _keys(tape: Tape, path: Path) -> Iterator[str]:
    """Yield where there is something that looks like a key. One that is cut by the end of a chunk is not seen."""
    texts = [(1, json.dumps(attrs.asdict(tape.header), ensure_ascii=False))]
    for line in tape.lines:
        texts.append((line.number, json.dumps(dict(line.data), ensure_ascii=False)))
        if line.type == "chunk":
            texts.append((line.number, bytes_of(line.data).decode("utf-8", "replace")))
    seen = set()
    for number, text in texts:
        for kind in find_keys(text):
            if (number, kind) not in seen:
                seen.add((number, kind))
                yield f"line {number}: there is what looks like a {kind}; take it out, and make the key invalid"
