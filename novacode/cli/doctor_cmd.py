"""`novacode doctor`: what there is on this machine, what is missing, and what to do about it."""

from __future__ import annotations

import json
import sys

import attrs
import click
import trio

from novacode.app.settings import environment
from novacode.cli.checkup import Check, State, checkup
from novacode.cli.escape import visible

__all__ = ["command"]

_MARKS = {State.OK: "ok  ", State.NOTE: "note", State.WRONG: "FAIL"}


@click.command("doctor", short_help="What is missing on this machine.")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
def command(as_json: bool) -> int:
    """Look at what NovaCode needs and what it can use, and say of everything that is missing what to do.

    Starts git, the MCP servers of this folder, and a process that has to be found and stopped again; asks no model.
    Ends with 0 where a run can work and with 1 where it cannot.
    """
    terminals = tuple(file is not None and file.isatty() for file in (sys.stdin, sys.stdout, sys.stderr))
    checks = trio.run(checkup, environment(), terminals)
    healthy = all(check.state is not State.WRONG for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": healthy, "checks": [attrs.asdict(check) for check in checks]}, indent=2))
    else:
        for check in checks:
            click.echo(_line(check))
    return 0 if healthy else 1


def _line(check: Check) -> str:
    advice = f"\n      {visible(check.advice)}" if check.advice else ""
    return f"{_MARKS[check.state]}  {check.name}: {visible(check.found)}{advice}"
