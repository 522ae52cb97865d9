"""`novacode tape`: what is on a tape, and the scissors and paste for it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from novacode.cli.escape import in_one_line, visible
from novacode.errors import InputError, NovaError
from novacode.models.tape_edit import merged, pieces, problems, trimmed
from novacode.models.tape_file import Tape, TapeLine, read_tape
from novacode.models.tape_play import TapedRequest, requests_of
from novacode.protocols.summary import PROTOCOLS, codec_for, summarise
from novacode.values.events import ModelEvent
from novacode.values.ids import CallIds
from novacode.values.parts import JSON

__all__ = ["command"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_WIDTH = 100
_RANGE = re.compile(r"(\d+)(-)?(\d+)?")


@click.group("tape", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look at tapes, cut them and put them together. `novacode run --record TAPE` makes one."""


@command.command("show", short_help="What was asked and what came back.")
@click.argument("tape", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a request.")
def show_command(tape: Path, as_json: bool) -> None:
    """List TAPE by request: what was asked last, what was said, which calls were made and what came of them."""
    read = read_tape(tape)
    asked = {taped.number: taped for taped in requests_of(read)}
    if not as_json:
        header = read.header
        click.echo(visible(f"{header.model} ({header.protocol}), recorded in {header.folder or 'no folder'}"))
    for piece in pieces(read):
        number = next(line.data["request"] for line in piece if line.type == "request")
        told = _told(read, asked[number], piece)
        click.echo(json.dumps(told, ensure_ascii=False) if as_json else "\n".join(_lines(told)))


@command.command("trim", short_help="A tape of some of its requests.")
@click.argument("tape", type=_FILE)
@click.argument("requests", metavar="RANGE")
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write there; else to standard output.")
def trim_command(tape: Path, requests: str, output: Path | None) -> None:
    """Write a tape of the requests RANGE of TAPE (3, 2-4 or 2-), with the calls that followed them."""
    first, last = _range(requests)
    _put(trimmed(read_tape(tape), first, last), output)


@command.command("merge", short_help="Several tapes as one.")
@click.argument("tapes", nargs=-1, required=True, type=_FILE)
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write there; else to standard output.")
def merge_command(tapes: Sequence[Path], output: Path | None) -> None:
    """Write one tape of all TAPES, one after the other. They must be of the same model and folder."""
    _put(merged([read_tape(path) for path in tapes]), output)


@command.command("check", short_help="Whether tapes are whole, and hold no keys.")
@click.argument("tapes", nargs=-1, required=True, type=_FILE)
def check_command(tapes: Sequence[Path]) -> int:
    """Check version, form and order of TAPES, and look for what has the shape of a key.

    Exit 1 where something is wrong, and 42 where a file is no tape.
    """
    codes = {0}
    for path in tapes:
        try:
            found = problems(path)
        except NovaError as error:
            click.echo(f"novacode: {visible(str(error))}", err=True)
            codes.add(error.exit_code)
            continue
        codes.add(1 if found else 0)
        for text in found:
            click.echo(visible(f"{path}: {text}"))
        if not found:
            click.echo(visible(f"{path}: {len(requests_of(read_tape(path)))} requests, nothing wrong"))
    return max(codes)


def _range(text: str) -> tuple[int, int | None]:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise click.UsageError(f"{text!r} is not a range of requests: write 3, 2-4 or 2-")
    first, dash, last = found.groups()
    start = int(first)
    end = int(last) if last else None if dash else start
    if start < 1 or (end is not None and end < start):
        raise click.UsageError(f"{text!r} is not a range of requests: they count from 1, and the first comes first")
    return start, end


def _put(data: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(data)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror or error}") from None


def _told(tape: Tape, taped: TapedRequest, piece: Sequence[TapeLine]) -> dict[str, JSON]:
    """Return what is worth knowing of one request."""
    return {
        "request": taped.number,
        "line": taped.line,
        "asked": f"{taped.method} {taped.path}",
        "last_message": _last_text(taped.body),
        "status": taped.status,
        "chunks": len(taped.chunks),
        "bytes": sum(len(chunk.data) for chunk in taped.chunks),
        "seconds": round(taped.wait + taped.end_gap + sum(chunk.gap for chunk in taped.chunks), 6),
        "how": taped.how,
        "failure": taped.failure.message if taped.how == "cut" else None,
        **_said(tape, taped),
        "others": [dict(line.data) for line in piece if "request" not in line.data],
    }


def _said(tape: Tape, taped: TapedRequest) -> dict[str, JSON]:
    """Return what the model said, as far as its protocol is known and it was an answer."""
    if taped.status != 200 or tape.header.protocol not in PROTOCOLS:
        return {"text": b"".join(chunk.data for chunk in taped.chunks).decode("utf-8", "replace"), "calls": []}
    decoder = codec_for(tape.header.protocol).decoder(CallIds())
    events: list[ModelEvent] = []
    error: NovaError | None = None
    try:
        for chunk in taped.chunks:
            events += decoder.feed(chunk.data)
        events += decoder.close()
    except NovaError as wrong:
        error = wrong
    summary = summarise(events, error)
    return {"text": summary["text"], "calls": summary["tool_calls"]}


def _last_text(body: JSON) -> str:
    """Return the last text anywhere in the last message: what was new with this request, in any protocol."""
    if not isinstance(body, dict):
        return str(body)
    messages: list[JSON] = next(
        (body[name] for name in ("messages", "input", "contents") if isinstance(body.get(name), list)), []
    )
    texts = list(_texts(messages[-1])) if messages else []
    return texts[-1] if texts else ""


def _texts(value: JSON) -> Iterator[str]:
    match value:
        case {"text": str(text)} | {"content": str(text)} | {"output": str(text)}:
            yield text
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case _:
            pass


def _lines(told: dict[str, JSON]) -> Iterator[str]:
    yield ""
    yield visible(f"request {told['request']}  (line {told['line']})  {told['asked']}")
    yield f"  asked   {in_one_line(told['last_message'], _WIDTH)}"
    size = f"{told['chunks']} chunks, {told['bytes']} bytes, {told['seconds']:.3f} s, {told['how']}"
    yield f"  answer  {told['status'] or 'none'}: {size}"
    if told["failure"]:
        yield f"  failed  {in_one_line(told['failure'], _WIDTH)}"
    if told["text"]:
        yield f"  said    {in_one_line(told['text'], _WIDTH)}"
    for call in told["calls"]:
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        shown = in_one_line(f"{call['name']} {arguments}", _WIDTH)
        yield f"  call    {shown}  ({in_one_line(call['id'], 40)})"
    yield from map(_other, told["others"])


def _other(data: dict[str, JSON]) -> str:
    match data["type"]:
        case "tool":
            said = "".join(str(part.get("text", "")) for part in data.get("content", ())) or str(data.get("words", ""))
            text = f"{data['name']} {data['call']} {data['how']} in {data['took']:.3f} s: {said}"
        case "answer":
            text = f"{data['call']} {'allowed' if data['allowed'] else 'denied'} by {data['by']}"
        case "hook":
            text = f"{data['event']}: {json.dumps(data['answer'], ensure_ascii=False)}"
        case _:
            text = str(data.get("reason", ""))
    return f"  {data['type']:<7} {in_one_line(text, _WIDTH)}"
