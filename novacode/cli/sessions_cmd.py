"""`novacode sessions`: the list of them, which has to be quick, and the table of what can be done with one."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path

import click

from novacode.app.home import environment, home_folder
from novacode.cli.escape import in_one_line, visible
from novacode.sessions.listing import Summary, list_sessions, project_key

__all__ = ["command"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_TITLE = 60
_OTHERS = ("show", "export", "check", "repair", "fork", "timeline", "prune")


class _Sessions(click.Group):
    """A group whose commands on one session are imported when one of them is called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return ["list", *_OTHERS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command."""
        if cmd_name not in _OTHERS:
            return super().get_command(ctx, cmd_name)
        found = importlib.import_module("novacode.cli.session_commands").COMMANDS[cmd_name]
        assert isinstance(found, click.Command)
        return found


@click.group("sessions", cls=_Sessions, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look at sessions. ID is a session's id or the beginning of one; FILE is any transcript."""


@command.command("list", short_help="The sessions there are, latest first.")
@click.option("-C", "--cwd", type=_FOLDER, metavar="DIR", help="Only those begun in DIR.")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def list_command(cwd: Path | None, limit: int | None, as_json: bool) -> None:
    """List sessions, latest first, with the beginning of their first prompt."""
    root = home_folder(environment()) / "sessions"
    found = list_sessions(root, None if cwd is None else project_key(cwd))[:limit]
    if as_json:
        click.echo(json.dumps([one._asdict() for one in found], indent=1))
    elif found:
        click.echo("\n".join(map(_row, found)))
    else:
        click.echo("There are no sessions here yet.", err=True)


def _row(one: Summary) -> str:
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.last))  # the person's own time
    return f"{one.id}  {at}  {one.size / 1024:7.0f} KB  {in_one_line(one.title, _TITLE):<{_TITLE}}  {visible(one.cwd)}"
