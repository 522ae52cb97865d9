"""Progress on a terminal: Markdown as it comes, a line for every call under way, diffs in colour.

What is final scrolls up and stays; below it a few live lines are drawn anew. Drawing happens in one task, at most
twenty times a second, from state that events have changed: a burst of events costs one drawing. rich is imported
when the first thing is drawn, so that runs without a terminal do not pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from novacode.cli.escape import in_one_line
from novacode.cli.outlet import Outlet
from novacode.cli.plain import PlainFace, marks
from novacode.cli.progress import Block, Kind, LiveCall, Progress
from novacode.grace import DEFAULT, cleanup
from novacode.values.events import Level, Phase, Stamped

if TYPE_CHECKING:
    from novacode.cli.painter import Painter

__all__ = ["Look", "TerminalFace", "make_face"]

_FRAME = 0.05
_TICK = 1.0  # how often the seconds of a running call move on
_MOST_BLOCKS = 2000


@attrs.frozen(eq=False, repr=False)
class Look:
    """How to show: `quiet` leaves warnings, `verbose` adds all notices. `environ` is for `TERM` and such.

    `waiting_for` names what stopping waits for; it is asked at each drawing.
    """

    quiet: bool = False
    verbose: bool = False
    environ: Mapping[str, str] = attrs.field(factory=dict)
    waiting_for: Callable[[], Sequence[str]] = tuple


def make_face(fd: int, encoding: str, look: Look) -> TerminalFace | PlainFace:
    """Return the face for the descriptor `fd`: drawn where it is a terminal that can move its cursor, else lines."""
    outlet = Outlet(fd, encoding)
    if look.quiet or not os.isatty(fd) or look.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return PlainFace(outlet, quiet=look.quiet, verbose=look.verbose)
    return TerminalFace(outlet, fd, look)


class TerminalFace:
    """Draws on the terminal `fd`. Subscribe it, run `run` in a task, call `close` when the last event has come.

    Around a question: `await suspend()`, then the terminal is the asker's until `resume()`.
    """

    def __init__(self, outlet: Outlet, fd: int, look: Look) -> None:
        self._outlet = outlet
        self._fd = fd
        self._look = look
        self._progress = Progress(Level.DEBUG if look.verbose else Level.WARNING)
        self._blocks: list[Block] = []
        self._left_out = 0
        self._marks = marks(outlet.encoding)
        self._wake = trio.Event()
        self._drawing = trio.Lock()
        self._suspended = False
        self._closed = False
        self._painter: Painter | None = None
        self._now = 0.0
        self._seen_at = 0.0

    def __call__(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe. Cheap, never blocks."""
        self._now = stamped.at
        self._seen_at = trio.current_time()
        for block in self._progress.apply(stamped.event, stamped.at):
            self._add(block)
        self._wake.set()

    def say(self, text: str) -> None:
        """Show a line from somewhere else than the events of a run."""
        self._add(Block(Kind.NOTICE, text))
        self._wake.set()

    async def run(self) -> None:
        """Draw until `close`. Cancelling draws what is final once more, within a second, and ends."""
        try:
            while not self._closed:
                with trio.move_on_after(_TICK if self._lively() else float("inf")):
                    await self._wake.wait()
                self._wake = trio.Event()
                await self._draw()
                await trio.sleep(_FRAME)
        finally:
            self._progress.calls.clear()
            self._suspended = False
            with cleanup(DEFAULT.wire):
                await self._draw()

    async def suspend(self) -> None:
        """Take the live lines away and return when everything final is on the terminal."""
        self._suspended = True
        await self._draw(final=True)

    def resume(self) -> None:
        """Draw again."""
        self._suspended = False
        self._wake.set()

    def close(self) -> None:
        """No more events will come; `run` ends when everything is drawn. Idempotent."""
        self._closed = True
        self._wake.set()

    def _add(self, block: Block) -> None:
        if len(self._blocks) >= _MOST_BLOCKS:  # the terminal does not take what we write
            self._left_out += 1
        else:
            self._blocks.append(block)

    async def _draw(self, *, final: bool = False) -> None:
        async with self._drawing:
            if self._suspended and not final:
                return
            painter = self._ready_painter()
            blocks, self._blocks = self._blocks, []
            if self._left_out:
                blocks.append(Block(Kind.NOTICE, f"[{self._left_out} lines left out: the terminal was stopped]"))
                self._left_out = 0
            live = [] if final else self._live_lines(painter.width)
            text = "" if final else self._progress.text
            self._outlet.write(painter.frame(blocks, text, live))
            await self._outlet.drain()

    def _ready_painter(self) -> Painter:
        if self._painter is None:
            from novacode.cli.painter import Painter  # rich takes a tenth of a second to import

            self._painter = Painter(self._marks, self._look.environ)
        try:
            self._painter.resize(*os.get_terminal_size(self._fd))
        except OSError:  # hung up, or a terminal that does not say
            self._painter.resize(80, 24)
        return self._painter

    def _lively(self) -> bool:
        return bool(self._progress.calls or self._look.waiting_for())

    def _live_lines(self, width: int) -> list[str]:
        now = self._now + (trio.current_time() - self._seen_at)
        lines = [line for call in self._progress.calls.values() for line in _call_lines(call, now, width)]
        lines += (in_one_line(f"waiting for {what}", width) for what in self._look.waiting_for())
        return lines


def _call_lines(call: LiveCall, now: float, width: int) -> list[str]:
    seconds = max(0, int(now - call.since))
    state = call.phase.value
    if call.phase is Phase.QUEUED and call.waits_for:
        state = f"waits for {', '.join(call.waits_for)}"
    head = f"{call.name} [{state} {seconds}s]" if seconds else f"{call.name} [{state}]"
    lines = [in_one_line(f"* {head} {call.summary}", width)]
    if call.last_line and call.phase is Phase.RUNNING:
        lines.append(f"  {in_one_line(f'| {call.last_line}', width - 2)}")
    return lines
