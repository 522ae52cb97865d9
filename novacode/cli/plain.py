"""Progress as short lines, for whatever is no capable terminal: a log, a pipe, `TERM=dumb`."""

from __future__ import annotations

import os

import trio

from novacode.cli.escape import in_one_line
from novacode.cli.outlet import Outlet
from novacode.cli.progress import Block, Kind, Progress
from novacode.grace import DEFAULT, cleanup
from novacode.values.events import CallMoved, Level, Phase, Stamped

__all__ = ["PlainFace", "marks"]

_LONGEST = 300


def marks(encoding: str) -> tuple[str, str]:
    """Return the marks for good and bad that `encoding` can write."""
    try:
        "✓✗".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "ok", "FAILED"
    return "✓", "✗"


class PlainFace:
    """Writes lines to `outlet`. `quiet` leaves warnings, `verbose` adds texts, diffs and all notices.

    Subscribe the object, run `run` in a task of a nursery, and call `close` when the last event has come.
    """

    def __init__(self, outlet: Outlet, *, quiet: bool = False, verbose: bool = False) -> None:
        self._outlet = outlet
        self._quiet = quiet
        self._verbose = verbose
        self._progress = Progress(Level.DEBUG if verbose else Level.WARNING)
        self._good, self._bad = marks(outlet.encoding)
        self._wake = trio.Event()
        self._closed = False

    def __call__(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe. Cheap, never blocks."""
        for block in self._progress.apply(stamped.event, stamped.at):
            self._show(block)
        match stamped.event:
            case CallMoved(call_id=call_id, name=name, phase=Phase.RUNNING) if not self._quiet:
                summary = self._progress.calls[call_id].summary
                self._line(f"> {in_one_line(f'{name}  {summary}', _LONGEST)}")
            case _:
                pass

    def say(self, text: str) -> None:
        """Show a line from somewhere else than the events of a run."""
        self._line(text)

    async def run(self) -> None:
        """Write what there is to write, until `close`. Cancelling writes what is taken at once, and ends."""
        try:
            while not self._closed:
                await self._wake.wait()
                self._wake = trio.Event()
                await self._outlet.drain()
        finally:
            with cleanup(DEFAULT.wire):
                await self._outlet.drain()

    async def suspend(self) -> None:
        """Return when everything is written: what follows is somebody else's."""
        await self._outlet.drain()

    def resume(self) -> None:
        """Go on."""

    def close(self) -> None:
        """No more events will come; `run` ends when everything is written. Idempotent."""
        self._closed = True
        self._wake.set()

    def _show(self, block: Block) -> None:
        if self._quiet and block.kind is not Kind.WARNING:
            return
        match block.kind:
            case Kind.CALL:
                mark = self._good if block.good else self._bad
                head = in_one_line(f"{block.name}  {block.text}", _LONGEST)
                self._line(f"{mark} {head}" + (f"  ({in_one_line(block.detail, _LONGEST)})" if block.detail else ""))
            case Kind.TEXT | Kind.DIFF:
                if self._verbose:
                    self._line(block.text.rstrip("\n"))
            case Kind.NOTICE | Kind.WARNING:
                self._line(f"novacode: {block.text}")

    def _line(self, text: str) -> None:
        self._outlet.write(text.rstrip("\n") + os.linesep)
        self._wake.set()
