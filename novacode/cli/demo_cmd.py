"""`novacode demo`: the main job on the embedded model, with real tools and a real test, and the three checks."""

from __future__ import annotations

import locale
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import click
import trio

from novacode.app.choosing import scripted
from novacode.app.settings import Places, environment, load_settings
from novacode.app.setup import SessionWish, Setup
from novacode.app.wiring import App, open_app
from novacode.cli.render import Look, make_face
from novacode.models.script import tour_script
from novacode.values.events import CallOutput, CallReady, CallSettled, RunEnded, RunStatus, Stamped
from novacode.values.results import Outcome

__all__ = ["command"]

_FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\n\nfrom calc import add\n\n\n"
        "class AddTest(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
}
_TEST = ("python3", "-m", "unittest", "-q")
_ALLOW = [f"shell({' '.join(_TEST)})", "shell(sleep:*)"]
_DENY = ["shell(touch forbidden.txt)"]


@attrs.define
class _Record:
    """What the events of all runs said, for the three checks."""

    called: list[str] = attrs.field(factory=list)
    settled: list[str] = attrs.field(factory=list)
    outcomes: set[Outcome] = attrs.field(factory=set)
    ended: list[RunEnded] = attrs.field(factory=list)

    def __call__(self, stamped: Stamped) -> None:
        match stamped.event:
            case CallReady(call=call):
                self.called.append(call.id)
            case CallSettled(result=result):
                self.settled.append(result.call_id)
                self.outcomes.add(result.outcome)
            case RunEnded() as ended:
                self.ended.append(ended)
            case _:
                pass


@click.command()
def command() -> int:
    """See the main job done: a failing test is mended with real tools, and the three checks are shown.

    Works in a temporary folder that is removed afterwards. Needs no key and no network.
    """
    with tempfile.TemporaryDirectory(prefix="novacode-demo-") as name:
        folder = Path(name).resolve()
        for file, text in _FILES.items():
            (folder / file).write_text(text)
        click.echo(f"A small project in {folder}: calc.py has a bug, and its test fails.\n")
        record = _Record()
        trio.run(_show, folder, record)
        passed = _checks(folder, record)
    click.echo(f"\n{'All of it held.' if all(passed) else 'Something did not hold: see above.'}")
    return 0 if all(passed) else 1


async def _show(folder: Path, record: _Record) -> None:
    environ = environment()
    home = folder / ".novacode-home"  # nothing of the person's own settings or sessions is read or written
    flags = {
        "permissions.mode": "accept-edits",
        "permissions.allow": _ALLOW,
        "permissions.deny": _DENY,
    }
    settings = load_settings(Places(home, folder), {}, flags)
    choice = scripted("demo", tour_script())
    setup = Setup(settings, environ, home, folder, session=SessionWish(keep=False), choice=choice)
    async with open_app(setup) as app:
        face = make_face(2, locale.getpreferredencoding(False), Look(environ=environ))
        app.bus.subscribe(record)
        app.bus.subscribe(face)
        async with trio.open_nursery() as nursery:
            await nursery.start(app.background)
            nursery.start_soon(face.run)
            await _steps(app)
            face.close()
            nursery.cancel_scope.cancel()


async def _steps(app: App) -> None:
    """Run after run, as long as each of them ends as it should."""
    for step in (_mend, _refuse, _stop, _again):
        if not await step(app):
            return


async def _mend(app: App) -> bool:
    return _went_on(await app.agent.run("The test fails. Find out why, mend it, and run the test again."))


async def _refuse(app: App) -> bool:
    return _went_on(await app.agent.run("Now try something that is forbidden here."))


async def _stop(app: App) -> bool:
    """Start a command with a child in the background, and stop the run while it is under way."""

    def on(stamped: Stamped) -> None:
        if isinstance(stamped.event, CallOutput):  # the command has said that it started
            app.agent.cancel("the demo")

    app.bus.subscribe(on)
    try:
        await app.agent.run("Now start something long.")
    finally:
        app.bus.unsubscribe(on)
    return app.ladder.presses == 0  # a person who presses Ctrl-C wants no further run


async def _again(app: App) -> bool:
    return _went_on(await app.agent.run("Are you still there?"))


def _went_on(ended: RunEnded) -> bool:
    return ended.status is RunStatus.COMPLETED


def _checks(folder: Path, record: _Record) -> Sequence[bool]:
    test = subprocess.run(
        [sys.executable, *_TEST[1:]], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    stopped = [ended for ended in record.ended if ended.status is RunStatus.CANCELLED]
    reaped = stopped[0].reaped if stopped else None
    checks = (
        (test.returncode == 0, "the test that failed passes now, run once more from outside"),
        (
            record.called == list(dict.fromkeys(record.called)) and sorted(record.called) == sorted(record.settled),
            f"1. calls and results are one to one: {len(record.called)} calls, {len(record.settled)} results",
        ),
        (
            Outcome.DENIED in record.outcomes and not (folder / "forbidden.txt").exists(),
            "2. the refused call executed nothing: forbidden.txt does not exist",
        ),
        (
            reaped is not None
            and not reaped.survivors
            and reaped.processes > 0
            and record.ended[-1].status is RunStatus.COMPLETED,
            f"3. the stopped run left nothing: {reaped.processes if reaped else 0} processes stopped and reaped, "
            f"none left, and a new run worked",
        ),
    )
    click.echo()
    for held, text in checks:
        click.echo(f"{'ok  ' if held else 'FAIL'} {text}")
    return [held for held, _ in checks]
