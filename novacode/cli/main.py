"""The table of commands. Each is imported when it is called for, so that none pays for another."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import click

from novacode._version import VERSION
from novacode.cli.early import Interrupted
from novacode.errors import NovaError

__all__ = ["COMMANDS", "entry", "interrupted"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("novacode.cli.run", "Run one task to its end."),
    "chat": ("novacode.cli.chat", "Work with the model at the terminal."),
    "serve": ("novacode.cli.serve_cmd", "Watch, prompt and approve in a browser."),
    "demo": ("novacode.cli.demo_cmd", "See the main job done, without key or network."),
    "sessions": ("novacode.cli.sessions_cmd", "List, show, export, check, repair, fork sessions."),
    "tools": ("novacode.cli.tools_cmd", "List what the model may call."),
    "config": ("novacode.cli.config_cmd", "Show every setting, and where it comes from."),
    "doctor": ("novacode.cli.doctor_cmd", "Look for what is missing on this machine."),
    "models": ("novacode.cli.models_cmd", "List providers, keys and prices."),
    "permissions": ("novacode.cli.permissions_cmd", "Explain which rule decides about a call."),
    "hooks": ("novacode.cli.hooks_cmd", "List hooks, and try them on a sample."),
    "lab": ("novacode.cli.lab_cmd", "Explore what happens when a run is stopped, at every step."),
    "tape": ("novacode.cli.tape_cmd", "Show, trim, merge, check recorded sessions."),
    "decode": ("novacode.cli.decode_cmd", "Show a recorded reply as events."),
    "rewind": ("novacode.cli.rewind_cmd", "Put files back to before a call, a turn or a run."),
}
"""Name -> module with a `command` in it, and the line that `--help` shows without importing it."""


class _Lazy(click.Group):
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
        gc.freeze()  # what was imported stays until the end, and need not be looked at again
        gc.enable()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-V", "--version", message="novacode %(version)s")
def _group() -> None:
    """NovaCode: a coding agent at the command line.

    Every tool call has exactly one result, nothing runs that was not authorised, and when a run stops, everything it
    started has stopped.
    """


def entry(arguments: Sequence[str]) -> int:
    """Run the command line `arguments` and return the exit code. Never raises but for a bug."""
    _keep_standard_files()
    if not arguments and not (os.isatty(0) and os.isatty(2)):
        click.echo(_group.get_help(click.Context(_group, info_name="novacode")), err=True)
        return 2
    arguments = _completed(arguments)
    try:
        code = _group.main(list(arguments), prog_name="novacode", standalone_mode=False)
    except click.Abort:
        return 130
    except (click.ClickException, NovaError) as error:
        return _failed(error, arguments)
    return code if isinstance(code, int) else 0


def _completed(arguments: Sequence[str]) -> Sequence[str]:
    """Return no arguments as a chat, and `novacode -p PROMPT`, or any other that begin with an option, as a run."""
    if not arguments:
        return ["chat"]
    if not arguments[0].startswith("-") or arguments[0] in ("-h", "--help", "-V", "--version"):
        return arguments
    return ["run", *arguments]


def _failed(error: click.ClickException | NovaError, arguments: Sequence[str]) -> int:
    # The parts of the command line are imported here only: most calls do not fail.
    from novacode.cli.escape import visible
    from novacode.cli.result import exit_code, failure_result
    from novacode.sessions.record import json_line

    words = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if sys.stderr is not None:
        sys.stderr.write(f"novacode: {visible(words)}\n")
    if arguments[:1] == ["run"]:
        _say_result(arguments, json_line(failure_result(error)))
    return exit_code(error)


def interrupted(signalled: Interrupted, arguments: Sequence[str]) -> int:
    """Say how a run ended that a signal stopped before it began, and return its exit code."""
    from novacode.cli.result import ResultWatch, build_result, exit_code  # as in `_failed`
    from novacode.sessions.record import json_line
    from novacode.values.events import RunEnded, RunStatus

    ended = RunEnded(RunStatus.CANCELLED, str(signalled))
    if sys.stderr is not None:
        sys.stderr.write(f"novacode: {signalled}: stopped before anything had begun.\n")
    _say_result(arguments, json_line(build_result(ended, ResultWatch(), "")))
    return exit_code(ended)


def _say_result(arguments: Sequence[str], line: bytes) -> None:
    if _wants_json(arguments) and sys.stdout is not None:
        with contextlib.suppress(OSError):
            sys.stdout.write(line.decode())
            sys.stdout.flush()


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether the output format asked for is one of objects; read by hand, since the options could not be parsed."""
    given = ""
    for position, argument in enumerate(arguments):
        if argument == "--output-format":
            given = "".join(arguments[position + 1 : position + 2])
        elif argument.startswith("--output-format="):
            given = argument.partition("=")[2]
    return given in ("json", "stream-json", "events")


def _keep_standard_files() -> None:
    """See that 0, 1 and 2 are open: else the next file to be opened, a journal say, becomes standard output.

    What takes the place of a closed output cannot be written to, so that its loss is noticed as it would be.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
