"""What `novacode sessions` does with one session: what was said in it, whether it is whole; mending and copying it."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from novacode.app.home import environment, home_folder
from novacode.app.settings import Places, load_settings
from novacode.cli.escape import visible
from novacode.cli.session_prune import prune_command
from novacode.errors import InputError, NovaError
from novacode.sessions.check import Report, check_session, is_session
from novacode.sessions.fold import events_of, load
from novacode.sessions.secrets import Secrets
from novacode.sessions.store import Store
from novacode.workspace.environment import is_provider_key

__all__ = ["COMMANDS"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FORMATS = ("markdown", "html", "anthropic", "openai")


def _store() -> Store:
    environ = environment()
    home = home_folder(environ)
    settings = load_settings(Places(home, Path.cwd()), environ)
    return Store(home, _now, secrets=Secrets((*filter(is_provider_key, environ), *settings.secrets), environ))


def _now() -> float:
    return datetime.datetime.now(datetime.UTC).timestamp()


@click.command("show", short_help="A session as a readable transcript.")
@click.argument("session", metavar="ID")
@click.option("--full", is_flag=True, help="Results in full.")
def show_command(session: str, full: bool) -> None:
    """Show what was said and done. Only reads, also while the session is in use."""
    from novacode.cli.session_text import plain_text

    loaded = load(_store().find(session, Path.cwd()), whole=True)
    _tell(loaded.notices)
    click.echo(plain_text(loaded, full=full), nl=False)


@click.command("export", short_help="A session in another form.")
@click.argument("session", metavar="ID")
@click.option("--format", "format_", type=click.Choice(_FORMATS), default="markdown", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write there.")
def export_command(session: str, format_: str, output: Path | None) -> None:
    """Write a session as Markdown, as an HTML page, or as messages of the Anthropic or OpenAI service."""
    from novacode.cli.session_export import export

    loaded = load(_store().find(session, Path.cwd()), whole=True)
    _tell(loaded.notices)
    _put(export(loaded, format_), output)


@click.command("check", short_help="Whether every call has exactly one result.")
@click.argument("what", nargs=-1, required=True, metavar="FILE|ID...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file.")
def check_command(what: Sequence[str], as_json: bool) -> int:
    """Judge sessions, and transcripts in the message forms of Anthropic and OpenAI.

    Names the places where a file is broken. The exit code is 1 where any is, and 42 where one cannot be judged.
    """
    store, codes = _store(), {0}
    for one in what:
        path = _path(store, one)
        try:
            report = _judged(path)
        except NovaError as error:
            click.echo(f"novacode: {visible(str(error))}", err=True)
            codes.add(error.exit_code)
            continue
        codes.add(1 if report.problems else 0)
        click.echo(_report_json(path, report) if as_json else _report_text(path, report))
    return max(codes)


@click.command("repair", short_help="Make a session or a transcript whole.")
@click.argument("what", metavar="ID|FILE")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="For a transcript: write there.")
def repair_command(what: str, output: Path | None) -> int:
    """Repair a session in place: what was lost is said, and nothing is taken away but half a record.

    Of a transcript that another program wrote a mended copy is made beside it.
    """
    store = _store()
    path = _path(store, what)
    if not _is_session(path):
        return _mend(path, output)
    session = store.open_file(path)
    session.close()
    if session.path is None:
        raise InputError(session.notices[-1])
    for text in session.notices:
        click.echo(f"{path}: {visible(text)}")
    report = check_session(path)
    click.echo(_report_text(path, report))
    return 1 if report.problems else 0


@click.command("fork", short_help="Begin a session as a copy of another.")
@click.argument("session", metavar="ID")
@click.option("-C", "--cwd", type=_FOLDER, metavar="DIR", help="Begun there; where the other was, without.")
def fork_command(session: str, cwd: Path | None) -> None:
    """Copy a session, and print the id of the copy. The other one is only read."""
    store = _store()
    header = load(store.find(session, Path.cwd())).header
    own = Path(header.cwd) if header and header.cwd and Path(header.cwd).is_dir() else Path.cwd()
    made = store.fork(session, cwd or own, near=Path.cwd())
    made.close()
    if made.path is None:
        raise InputError(made.notices[-1])
    _tell(made.notices)
    click.echo(made.id)


@click.command("timeline", short_help="What overlapped in a run.")
@click.argument("session", metavar="ID")
@click.option("--run", "number", type=click.IntRange(min=1), metavar="N", help="The Nth run; the last, without.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="As a page, into FILE.")
def timeline_command(session: str, number: int | None, html: Path | None) -> None:
    """Draw one lane for each stream and each call: waiting, asking, queued, running, and what a stop cost."""
    from novacode.cli.timeline_html import timeline_page
    from novacode.cli.timeline_text import draw
    from novacode.sessions.timeline import timelines

    path = _store().find(session, Path.cwd())
    found = timelines(events_of(path))
    if not found:
        raise InputError(f"{path} holds no run")
    if number is not None and number > len(found):
        raise InputError(f"--run is {number}; the session has {len(found)} run{'s' * (len(found) != 1)}")
    chosen = found[(number or len(found)) - 1]
    if html is not None:
        _put(timeline_page(chosen), html)
    else:
        draw(chosen)


def _path(store: Store, what: str) -> Path:
    given = Path(what)
    if given.is_file():
        return given
    if given.name != what or given.suffix:
        raise InputError(f"{what} is not a file")
    return store.find(what, Path.cwd())


def _is_session(path: Path) -> bool:
    try:
        return is_session(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _judged(path: Path) -> Report:
    if _is_session(path):
        return check_session(path)
    from novacode.sessions.transcripts import judge, read_transcript

    return judge(read_transcript(path))


def _mend(path: Path, output: Path | None) -> int:
    from novacode.sessions.transcripts import judge, mended, read_transcript, write_transcript

    transcript = read_transcript(path)
    before = judge(transcript)
    if not before.problems:
        click.echo(f"{path}: nothing to repair")
        return 0
    target = output or _free_name(path)
    try:
        with target.open("xb") as file:
            file.write(write_transcript(mended(transcript)))
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from error
    for problem in before.problems:
        click.echo(f"{path}: {problem.place}: {visible(problem.text)}")
    click.echo(f"{target}: a mended copy; {path} is as it was")
    return 0


def _free_name(path: Path) -> Path:
    names = (f"{path.stem}.mended{number}{path.suffix}" for number in ("", *(f"-{n}" for n in range(2, 1000))))
    return next((free for name in names if not (free := path.with_name(name)).exists()), path)


def _report_text(path: Path, report: Report) -> str:
    lines = [f"{path}: {problem.place}: {visible(problem.text)}" for problem in report.problems]
    lines += [f"{path}: {visible(note)}" for note in report.notes]
    count = len(report.problems)
    verdict = f"broken in {count} place{'s' * (count != 1)}" if count else "whole"
    return "\n".join((*lines, f"{path}: {verdict} ({report.records} records, {report.calls} calls)"))


def _report_json(path: Path, report: Report) -> str:
    return json.dumps({"file": str(path), "ok": not report.problems} | attrs.asdict(report))


def _tell(notices: Sequence[str]) -> None:
    for notice in notices:
        click.echo(f"novacode: {visible(notice)}", err=True)


def _put(text: str, output: Path | None) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if output is None:
        sys.stdout.buffer.write(data)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror or error}") from error
    click.echo(f"written: {output}", err=True)


COMMANDS = {
    one.name: one
    for one in (
        show_command,
        export_command,
        check_command,
        repair_command,
        fork_command,
        timeline_command,
        prune_command,
    )
}
"""Name -> command."""
