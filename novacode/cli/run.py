"""`novacode run`: its options, and what they come to."""

from __future__ import annotations

import sys
from typing import Any

import click

from novacode.cli.headless import RunWish, run_prompt
from novacode.cli.opening import opening_of, opening_options
from novacode.cli.output import FORMATS
from novacode.errors import InputError

__all__ = ["command"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("prompt", required=False)
@click.option("-p", "--print", "print_", is_flag=True, hidden=True, help="Accepted and ignored: run always prints.")
@click.option("--output-format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--include-partial-messages", "partial", is_flag=True, help="With stream-json: also what is being said.")
@opening_options
def command(**given: Any) -> int:
    """Run one task to its end. PROMPT may be - or come from a pipe."""
    prompt, worktree = given["prompt"], given["worktree"]
    if prompt is None and worktree and any(character.isspace() for character in worktree):
        # `run -w "fix it"`: the option has taken the prompt, which cannot be a name.
        prompt, given["worktree"] = worktree, ""
    return run_prompt(RunWish(_prompt(prompt), opening_of(given), given["format_"], given["partial"]))


def _prompt(given: str | None) -> str:
    """Return the prompt: the argument; for `-`, or without one, what comes from a pipe.

    A prompt on the command line is the whole prompt: standard input is then not read, and nothing waits for its end.
    """
    if given is not None and given != "-":
        text = given
    elif given == "-" or (sys.stdin is not None and not sys.stdin.isatty()):
        text = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    else:
        raise click.UsageError("there is no prompt: give one as an argument, or pipe it in (- reads standard input).")
    if not text.strip():
        raise InputError("the prompt is empty: say what is to be done.")
    return text
