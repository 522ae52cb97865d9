"""`novacode chat`: prompts at a terminal, each run on the same session."""

from __future__ import annotations

import importlib.util
import locale
import sys
from pathlib import Path
from typing import Any

import attrs
import click

from novacode._version import VERSION
from novacode.app.setup import SessionWish, Setup
from novacode.app.wiring import App, open_app
from novacode.cli.escape import visible
from novacode.cli.faces import faces
from novacode.cli.isolation import working_folder
from novacode.cli.opening import Opening, opening_of, opening_options, setup_of, start
from novacode.cli.outlet import Outlet, can_ask
from novacode.cli.reading import LineReader, Reader, kept_modes
from novacode.cli.slash import Reopen
from novacode.cli.stdout import Stdout
from novacode.cli.talk import Talk
from novacode.values.parts import User

__all__ = ["command"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@opening_options
def command(**given: Any) -> int:
    """Work with the model at the terminal, prompt after prompt. /help in there says what can be typed.

    A prompt from a pipe is for `novacode run`.
    """
    if not can_ask():
        raise click.UsageError("a chat needs a terminal; `novacode run` takes a prompt as an argument or from a pipe.")
    opening = opening_of(given)
    with kept_modes(0):
        return start(opening, _chat, opening)


async def _chat(opening: Opening) -> int:
    stdout = Stdout()
    try:
        async with working_folder(opening) as cwd:
            return await _sessions(opening, cwd, stdout)
    finally:
        stdout.close()


async def _sessions(opening: Opening, cwd: Path, stdout: Stdout) -> int:
    """Talk in one session after the other, until the person has had enough."""
    setup = setup_of(opening, cwd)
    while True:
        async with open_app(setup) as app:
            outcome = await _talk(app, opening, stdout)
        if isinstance(outcome, int):
            return outcome
        setup = _again(opening, setup, outcome)


async def _talk(app: App, opening: Opening, stdout: Stdout) -> int | Reopen:
    outlet = Outlet(2, locale.getpreferredencoding(False))
    try:
        async with faces(app, stdout, quiet=opening.quiet, verbose=opening.verbose) as shown:
            talk = Talk(app, shown, _reader(app, outlet), outlet, stdout)
            if not opening.quiet:
                shown.face.say(_greeting(app))
            outcome = await talk.run()
        _part(app, outlet)
    finally:
        outlet.close()
    return outcome


def _again(opening: Opening, setup: Setup, wish: Reopen) -> Setup:
    """Return what the next session is made from: the mode stays; the rules stay where it is the same session."""
    fresh = setup_of(opening, setup.cwd)
    settings = attrs.evolve(
        fresh.settings,
        mode=wish.mode,
        model=wish.model or setup.settings.model,
        rules=fresh.settings.rules if wish.rules is None else wish.rules,
    )
    return attrs.evolve(fresh, settings=settings, session=SessionWish(wanted=wish.session, keep=setup.session.keep))


def _reader(app: App, outlet: Outlet) -> Reader:
    """Return the line editor where it is installed and the terminal can move its cursor; else plain lines."""
    environ = app.setup.environ
    dumb = environ.get("TERM", "dumb") in ("", "dumb", "unknown")
    if dumb or importlib.util.find_spec("prompt_toolkit") is None:
        return LineReader(0, outlet)
    from novacode.cli.editing import EditorReader  # an optional part, and a seventh of a second to import

    said = [
        item.text for item in app.session.loaded.history.items if isinstance(item, User) and item.origin == "person"
    ]
    return EditorReader(said)


def _greeting(app: App) -> str:
    mode = app.agent.services.permissions.policy.mode
    place = visible(str(app.setup.cwd))
    return f"NovaCode {VERSION}: {app.choice.label} in {place}, mode {mode}. /help says what can be typed."


def _part(app: App, outlet: Outlet) -> None:
    """Say how to come back to a session in which something was said."""
    if app.session.path is not None and app.agent.talk.history.items and sys.stderr is not None:
        outlet.write(f"novacode chat -r {app.session.id} goes on with this session.\n")
        outlet.drain_now()
