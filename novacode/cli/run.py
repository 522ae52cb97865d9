"""`novacode run`: its options, and what they come to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from novacode.cli.headless import RunWish, run_prompt
from novacode.cli.opening import opening_of, opening_options, taped
from novacode.cli.output import FORMATS
from novacode.errors import InputError

__all__ = ["command"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("prompt", required=False)
@click.option("-p", "--print", "print_", is_flag=True, hidden=True, help="Accepted and ignored: run always prints.")
@click.option("--output-format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--include-partial-messages", "partial", is_flag=True, help="With stream-json: also what is being said.")
@click.option("--fail-on-denial", is_flag=True, help="Exit code 1 where a call was denied, also if the model went on.")
@click.option("--record", type=_FILE, metavar="TAPE", help="Write everything that comes in onto a tape.")
@click.option("--replay", type=_FILE, metavar="TAPE", help="Play a tape: no network, no key, the same bytes out.")
@click.option(
    "--replay-tools",
    type=click.Choice(("tape", "real")),
    default=None,
    help="With --replay: tools, hooks and answers come from the tape, too (default), or only the model does.",
)
@opening_options
def command(**given: Any) -> int:
    """Run one task to its end. PROMPT may be - or come from a pipe."""
    prompt, worktree = given["prompt"], given["worktree"]
    if prompt is None and worktree and any(character.isspace() for character in worktree):
        # `run -w "fix it"`: the option has taken the prompt, which cannot be a name.
        prompt, given["worktree"] = worktree, ""
    opening = taped(opening_of(given), given["record"], given["replay"], given["replay_tools"])
    text = _prompt(prompt, given["worktree"])
    return run_prompt(RunWish(text, opening, given["format_"], given["partial"], given["fail_on_denial"]))


def _prompt(given: str | None, worktree: str | None) -> str:
    """Return the prompt: the argument; for `-`, or without one, what comes from a pipe.

    A prompt on the command line is the whole prompt: standard input is then not read, and nothing waits for its end.
    Where there is none it may be what stands behind `-w`, as the name of the `worktree`; that is told and not guessed.
    """
    hint = f" {worktree!r} is the name of the worktree; for a prompt without a name write -w -- PROMPT." * bool(
        worktree
    )
    if given is not None and given != "-":
        text = given
    elif given == "-" or (sys.stdin is not None and not sys.stdin.isatty()):
        text = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    else:
        text = "there is no prompt: give one as an argument, or pipe it in (- reads standard input)."
        raise click.UsageError(text + hint)
    if not text.strip():
        raise InputError("the prompt is empty: say what is to be done." + hint)
    return text
