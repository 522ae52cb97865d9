"""Running one prompt from the command line, from the opened session to the exit code."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import attrs
import trio

from novacode.app.interrupts import exit_code_of
from novacode.app.wiring import App, open_app
from novacode.cli.early import HERE
from novacode.cli.escape import visible
from novacode.cli.faces import faces
from novacode.cli.isolation import working_folder
from novacode.cli.opening import Opening, setup_of, start
from novacode.cli.outlet import Outlet
from novacode.cli.output import Format, Output
from novacode.cli.result import UNKEPT, exit_code
from novacode.cli.stdout import Stdout
from novacode.cli.text_output import failure_text
from novacode.errors import NovaError
from novacode.values.events import RunEnded

if TYPE_CHECKING:
    from novacode.cli.stream_json import Init

__all__ = ["RunWish", "run_prompt"]


@attrs.frozen(eq=False, repr=False)
class RunWish:
    """What `novacode run` was asked for."""

    prompt: str
    opening: Opening
    format: Format = "text"
    include_partial: bool = False
    fail_on_denial: bool = False


def run_prompt(wish: RunWish) -> int:
    """Run and return the exit code. Every failure that is not a bug ends in words, a result object and a code."""
    return start(wish.opening, _run, wish)


async def _run(wish: RunWish) -> int:
    output = Output(wish.format, Stdout(), wish.include_partial, wish.fail_on_denial)
    session_id = ""
    outcome: RunEnded | NovaError
    unkept = None
    HERE.last = lambda number: output.give_up(signal.Signals(number).name, session_id)
    try:
        async with working_folder(wish.opening) as cwd, open_app(setup_of(wish.opening, cwd)) as app:
            session_id = app.session.id
            outcome = await _with_faces(app, wish, output)
        unkept = app.session.journal.failed  # the last flush comes after the run
    except NovaError as error:
        outcome = error
    if isinstance(outcome, NovaError):
        _complain(str(outcome))
    elif unkept is not None:
        _complain(str(unkept))
    elif output.denied(outcome):
        _complain(f"{len(output.watch.denials)} of its calls were denied, which --fail-on-denial makes a failure")
    HERE.last = lambda _: None
    output.finish(outcome, session_id)
    given_up = await _handed_over(output)
    code = exit_code(outcome) or (UNKEPT if unkept is not None else int(output.denied(outcome)))
    return given_up or (141 if output.stdout.broken and code == 0 else code)


async def _handed_over(output: Output) -> int:
    """Wait until everything is written; a signal ends that, where nobody reads. Returns its exit code, or 0."""
    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:
        # A handler may run between any two instructions of the loop, so it only leaves a note.
        HERE.act = lambda _: token.run_sync_soon(scope.cancel)
        await output.stdout.drain()
    HERE.act = lambda _: None
    output.stdout.close()
    return exit_code_of(HERE.taken()[-1]) if scope.cancelled_caught else 0


async def _with_faces(app: App, wish: RunWish, output: Output) -> RunEnded | NovaError:
    """Run with everybody subscribed who shows, asks or writes; when this returns all of them have ended."""
    outcome: RunEnded | NovaError
    sinks = output.sinks(partial(_init_of, app), canonical=app.deterministic, timed=app.unreal)
    app.ladder.missed, app.ladder.third = HERE.taken, partial(_end_here, app, output)
    async with faces(app, output.stdout, sinks, quiet=wish.opening.quiet, verbose=wish.opening.verbose) as shown:
        if app.ladder.asked:  # while everybody was being gathered
            app.agent.cancel_next(app.ladder.asked)
        try:
            outcome = await app.agent.run(wish.prompt)
        except NovaError as error:
            outcome = error
        if isinstance(outcome, RunEnded) and (said := failure_text(outcome)):
            shown.face.say(said)
        if isinstance(outcome, RunEnded) and outcome.reason != "replay_mismatch":
            for text in app.leftovers():
                shown.face.say(f"novacode: {text}")
        output.already_shown = shown.draws_answers
    return outcome


def _init_of(app: App) -> Init:
    from novacode.cli.stream_json import Init  # lazy: only one format has it

    return Init(
        app.session.id,
        app.choice.label,
        str(app.folder),
        lambda: [offer.name for offer in app.tools.offers()],
        app.setup.settings.mode.value,
        app.sandbox.facts if app.sandbox else None,
        app.mcp.states,
    )


def _end_here(app: App, output: Output, _code: int) -> None:
    """End the program at the third press: say what is known, and wait for nothing that has not ended."""
    alive = app.processes.waiting_for()
    outlet = Outlet(2)
    left = f"; still alive: {visible('; '.join(alive))}" if alive else ""
    outlet.write(
        f"novacode: ended without waiting{left}. The session says what is not known when it is gone on with.\n"
    )
    outlet.drain_now()
    output.give_up(app.ladder.asked, app.session.id, [int(one.partition(" ")[0]) for one in alive])
    os._exit(exit_code_of(signal.Signals[app.ladder.asked]))  # of the first press, as the result says


def _complain(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"novacode: {visible(text)}\n")
