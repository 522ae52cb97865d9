"""Everybody who shows, asks and writes while a session runs: what `run` and `chat` have in common."""

from __future__ import annotations

import locale
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs
import trio

from novacode.app.rule_store import personal_file
from novacode.app.wiring import App
from novacode.cli.outlet import Outlet
from novacode.cli.plain import PlainFace
from novacode.cli.render import Look, TerminalFace, make_face
from novacode.cli.stdout import Stdout
from novacode.cli.weakness import tell_weakness
from novacode.engine.bus import Sink

if TYPE_CHECKING:
    from novacode.cli.approving import Approver

__all__ = ["Faces", "faces"]

_STDOUT_GONE = "SIGPIPE"
_SOON = 0.5  # seconds after which somebody who waits wants to know for what
_MOST_NAMED = 5


@attrs.frozen(eq=False, repr=False)
class Faces:
    """Who is there. `approver` is `None` where nobody can be asked."""

    face: TerminalFace | PlainFace
    approver: Approver | None

    @property
    def draws_answers(self) -> bool:
        """Whether what the model says is on the terminal already."""
        return isinstance(self.face, TerminalFace)


@asynccontextmanager
async def faces(
    app: App, stdout: Stdout, sinks: Sequence[Sink] = (), *, quiet: bool = False, verbose: bool = False
) -> AsyncIterator[Faces]:
    """Subscribe everybody to `app`, and `sinks` first; when the body is over all of them have ended.

    Signals are received meanwhile, the journal is brought to the disk, and a standard output that nobody reads any
    more cancels the run. The body handles its `NovaError`s itself: out of here they come as a group.
    """
    encoding = locale.getpreferredencoding(False)
    face = make_face(2, encoding, Look(quiet, verbose, app.setup.environ, app.processes.waiting_for))
    for notice in () if quiet else app.notices:
        face.say(notice)
    for sink in (*sinks, face):
        app.bus.subscribe(sink)
    if not quiet:
        app.bus.subscribe(tell_weakness(app.processes, face.say))
    stops = _Stops()
    _explain_stops(app, face, stops)
    stdout.on_broken = lambda: _reader_gone(app)
    approver = _approver(app, face, encoding) if app.setup.somebody else None
    async with trio.open_nursery() as nursery:
        await nursery.start(app.background)
        nursery.start_soon(stdout.run)
        nursery.start_soon(stdout.watch)
        nursery.start_soon(face.run)
        if isinstance(face, PlainFace):  # the other one draws it all the time
            nursery.start_soon(_name_what_takes_long, app, face, stops)
        if approver is not None:
            approver.subscribe(app.bus)
            nursery.start_soon(approver.run)
        yield Faces(face, approver)
        await app.mcp.stop()  # while signals are received: who presses again does not wait for a slow server
        face.close()
        nursery.cancel_scope.cancel()


def _approver(app: App, face: TerminalFace | PlainFace, encoding: str) -> Approver:
    from novacode.cli.approving import Approver  # lazy: 2 ms that only who can be asked pays

    kept_in = str(personal_file(app.setup.home, app.setup.rules_of or app.setup.cwd))
    return Approver(app.agent, Outlet(2, encoding), face, kept_in)


def _reader_gone(app: App) -> None:
    app.agent.cancel(_STDOUT_GONE)


@attrs.define(eq=False, repr=False)
class _Stops:
    """Stops that were asked for; `asked` is replaced when it was seen."""

    asked: trio.Event = attrs.field(factory=trio.Event)


async def _name_what_takes_long(app: App, face: PlainFace, stops: _Stops) -> None:
    """Name, some time after each stop, the processes that have not ended yet."""
    while True:
        await stops.asked.wait()
        stops.asked = trio.Event()
        await trio.sleep(_SOON)
        if waiting := app.processes.waiting_for():
            more = f" and {len(waiting) - _MOST_NAMED} more" if len(waiting) > _MOST_NAMED else ""
            face.say(f"waiting for {'; '.join(waiting[:_MOST_NAMED])}{more}")


def _explain_stops(app: App, face: TerminalFace | PlainFace, stops: _Stops) -> None:
    """Say at the first press what is being stopped, and how to be faster."""
    first = app.ladder.first

    def stop(signal_name: str) -> None:
        first(signal_name)
        stops.asked.set()
        waiting = app.processes.waiting_for()
        what = f" and waiting for {len(waiting)} process(es)" if waiting else ""
        face.say(f"{signal_name}: stopping the run{what}; again to kill at once")

    app.ladder.first = stop
