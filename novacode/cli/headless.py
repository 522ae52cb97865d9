"""Running one prompt from the command line, from the opened session to the exit code."""

from __future__ import annotations

import locale
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
import trio

from novacode.app.scheduling import seed_scheduler
from novacode.app.settings import Places, environment, home_folder, load_settings
from novacode.app.wiring import App, SessionWish, Setup, open_app
from novacode.cli.approving import Approver, can_ask
from novacode.cli.escape import visible
from novacode.cli.outlet import Outlet
from novacode.cli.output import Format, Output
from novacode.cli.plain import PlainFace
from novacode.cli.render import Look, TerminalFace, make_face
from novacode.cli.result import UNKEPT, exit_code
from novacode.cli.stdout import Stdout
from novacode.cli.stream_json import Init
from novacode.cli.text_output import failure_text
from novacode.errors import NovaError
from novacode.values.events import RunEnded
from novacode.values.parts import JSON

__all__ = ["RunWish", "run_prompt"]

_STDOUT_GONE = "SIGPIPE"


@attrs.frozen
class RunWish:
    """What `novacode run` was asked for. `flags` are settings keys with values; `None` values are not set."""

    prompt: str
    format: Format = "text"
    include_partial: bool = False
    cwd: Path = attrs.field(factory=Path.cwd)
    extra: tuple[Path, ...] = ()
    session: SessionWish = attrs.field(factory=SessionWish)
    flags: Mapping[str, JSON] = attrs.field(factory=dict)
    deterministic: bool = False
    seed: int = 0
    simulate: bool = False
    quiet: bool = False
    verbose: bool = False


def run_prompt(wish: RunWish) -> int:
    """Run and return the exit code. Every failure that is not a bug ends in words, a result object and a code."""
    if wish.deterministic or _is_script(wish):
        seed_scheduler(wish.seed)
    return trio.run(_run, wish, clock=_clock(wish))


def _clock(wish: RunWish) -> trio.abc.Clock | None:
    """Return the virtual clock for a simulation that nobody has to be waited for in; else the real one.

    With a person at the terminal a virtual clock would run ahead of them: nothing else happens while they think.
    """
    if not wish.simulate or can_ask():
        return None
    from trio.testing import MockClock  # only here: a real run does not pay for importing it

    return MockClock(autojump_threshold=0)


def _is_script(wish: RunWish) -> bool:
    model = str(wish.flags.get("model") or "")
    return model == "demo" or model.startswith("script:")


async def _run(wish: RunWish) -> int:
    output = Output(wish.format, Stdout(), wish.include_partial)
    session_id = ""
    outcome: RunEnded | NovaError
    unkept = None
    try:
        async with open_app(_setup(wish)) as app:
            session_id = app.session.id
            outcome = await _with_faces(app, wish, output)
        unkept = app.session.journal.failed
    except NovaError as error:
        outcome = error
    if isinstance(outcome, NovaError):
        _complain(str(outcome))
    elif unkept is not None:
        _complain(str(unkept))
    output.finish(outcome, session_id)
    await output.stdout.drain()
    output.stdout.close()
    code = exit_code(outcome) or (UNKEPT if unkept is not None else 0)
    return 141 if output.stdout.broken and code == 0 else code


def _setup(wish: RunWish) -> Setup:
    environ = environment()
    home = home_folder(environ)
    settings = load_settings(Places(home, wish.cwd), environ, wish.flags)
    return Setup(
        settings,
        environ,
        home,
        wish.cwd,
        wish.extra,
        wish.session,
        somebody=can_ask(),
        deterministic=wish.deterministic,
        seed=wish.seed,
        simulate=wish.simulate,
    )


async def _with_faces(app: App, wish: RunWish, output: Output) -> RunEnded | NovaError:
    """Run with everybody subscribed who shows, asks or writes; when this returns all of them have ended."""
    encoding = locale.getpreferredencoding(False)
    look = Look(wish.quiet, wish.verbose, app.setup.environ, app.processes.waiting_for)
    face = make_face(2, encoding, look)
    for notice in () if wish.quiet else app.notices:
        face.say(notice)
    init = Init(
        app.session.id,
        app.choice.label,
        str(app.setup.cwd),
        [offer.name for offer in app.tools.offers()],
        app.setup.settings.mode.value,
    )
    for sink in output.sinks(init, canonical=app.deterministic):
        app.bus.subscribe(sink)
    app.bus.subscribe(face)
    _explain_stops(app, face)
    output.stdout.on_broken = lambda: _reader_gone(app)
    outcome: RunEnded | NovaError
    async with trio.open_nursery() as nursery:
        await nursery.start(app.background)
        nursery.start_soon(output.stdout.run)
        nursery.start_soon(output.stdout.watch)
        nursery.start_soon(face.run)
        if app.setup.somebody:
            approver = Approver(app.agent, Outlet(2, encoding), face)
            approver.subscribe(app.bus)
            nursery.start_soon(approver.run)
        try:
            outcome = await app.agent.run(wish.prompt)
        except NovaError as error:
            outcome = error
        if isinstance(outcome, RunEnded) and (said := failure_text(outcome)):
            face.say(said)
        face.close()
        nursery.cancel_scope.cancel()
    output.already_shown = isinstance(face, TerminalFace)
    return outcome


def _reader_gone(app: App) -> None:
    app.agent.cancel(_STDOUT_GONE)


def _explain_stops(app: App, face: TerminalFace | PlainFace) -> None:
    """Say at the first press what is being stopped, and how to be faster."""
    first = app.ladder.first

    def stop(signal_name: str) -> None:
        first(signal_name)
        waiting = app.processes.waiting_for()
        what = f" and waiting for {len(waiting)} process(es)" if waiting else ""
        face.say(f"{signal_name}: stopping the run{what}; again to kill at once")

    app.ladder.first = stop


def _complain(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"novacode: {visible(text)}\n")
