"""`novacode lab`: the cancellation lab. Each of its commands is imported when it is called for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

__all__ = ["COMMANDS", "command"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "explore": ("novacode.cli.lab_explore_cmd", "Stop scenarios at every step, and judge what is left."),
    "compare": ("novacode.cli.lab_compare_cmd", "The trio runtime beside asyncio executors, right and broken."),
    "faults": ("novacode.cli.lab_faults_cmd", "Break the runtime on purpose: does the lab notice?"),
    "report": ("novacode.cli.lab_report_cmd", "One page about what was found."),
    "scenarios": ("novacode.cli.lab_scenarios_cmd", "List the scenarios that come with NovaCode."),
    "sweep": ("novacode.cli.lab_sweep_cmd", "Many runs over many parameters."),
}
"""Name -> module with a `command` in it, and the line that `--help` shows without importing it."""


class _Lab(click.Group):
    """A group that imports a command's module when the command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        found = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group("lab", cls=_Lab, short_help="The cancellation lab.")
def command() -> None:
    """The cancellation lab: the real runtime over scripted models and simulated tools, stopped at every step.

    Nothing real is run, read or written, and every result can be had again from one line.
    """
