"""`novacode decode`: a recorded reply body as events, for looking at what a provider really sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

import attrs
import click

from novacode.errors import NovaError
from novacode.protocols.base import Decoder
from novacode.protocols.summary import PROTOCOLS, codec_for, summarise
from novacode.sessions.record import json_line
from novacode.values.events import ModelEvent
from novacode.values.ids import CallIds
from novacode.values.serial import dump_event

__all__ = ["command"]

_CHUNK = 64 * 1024


@attrs.define
class _Decoding:
    """A decoder, and what ended it."""

    decoder: Decoder
    error: NovaError | None = None

    def events(self, file: BinaryIO, chunk: int) -> Iterator[ModelEvent]:
        """Yield the events of `file`, fed `chunk` bytes at a time; `error` is set where it is found wrong."""
        try:
            while data := file.read(chunk):
                yield from self.decoder.feed(data)
            yield from self.decoder.close()
            self.error = self.decoder.error  # found together with the last events
        except NovaError as error:
            self.error = error


@click.command("decode", short_help="A recorded reply body as events.")
@click.option("--protocol", required=True, metavar="NAME", help=f"One of {', '.join(PROTOCOLS)}.")
@click.option("--summary", is_flag=True, help="One object with text, calls, stop and usage instead of events.")
@click.option("--chunk", type=click.IntRange(min=1), default=_CHUNK, help="Feed this many bytes at a time.")
@click.argument("file", type=click.File("rb"), default="-")
def command(protocol: str, summary: bool, chunk: int, file: BinaryIO) -> None:
    """Decode FILE (or stdin), the body of a streamed reply, as the events it means.

    Where the body is not what the protocol says the events before that are shown all the same, and the exit code
    is 1; a summary has the error in it.
    """
    decoding = _Decoding(codec_for(protocol).decoder(CallIds()))
    found = decoding.events(file, chunk)
    if summary:
        events = list(found)  # to its end first: only then is it known how the decoding ended
        click.echo(json.dumps(summarise(events, decoding.error), indent=2))
    else:
        for event in found:
            click.echo(json_line(dump_event(event)), nl=False)
    if decoding.error is not None and not summary:
        click.echo(f"novacode: {type(decoding.error).__name__}: {decoding.error}", err=True)
        raise SystemExit(1)
