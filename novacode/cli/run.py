"""`novacode run`: its options, and what they come to."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from novacode.app.wiring import SessionWish
from novacode.authority.policy import Mode
from novacode.cli.headless import RunWish, run_prompt
from novacode.cli.output import FORMATS
from novacode.errors import InputError
from novacode.values.parts import JSON

__all__ = ["command"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("prompt", required=False)
@click.option("-p", "--print", "print_", is_flag=True, hidden=True, help="Accepted and ignored: run always prints.")
@click.option("-m", "--model", metavar="NAME", help="provider/model, script:FILE, or demo.")
@click.option("--base-url", metavar="URL", help="Another endpoint for the model's protocol.")
@click.option("--output-format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--include-partial-messages", "partial", is_flag=True, help="With stream-json: also what is being said.")
@click.option("--permission-mode", "mode", metavar="MODE", help=f"{', '.join(Mode)}; camelCase is understood.")
@click.option(
    "--yolo", "--dangerously-skip-permissions", "yolo", is_flag=True, help="Same as --permission-mode bypass."
)
@click.option("--allow", "--allowed-tools", "--allowedTools", "allow", multiple=True, metavar="RULE")
@click.option("--ask", "ask", multiple=True, metavar="RULE")
@click.option("--deny", "--disallowed-tools", "--disallowedTools", "deny", multiple=True, metavar="RULE")
@click.option("--max-turns", type=click.IntRange(min=1), metavar="N")
@click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="S")
@click.option("--max-output-tokens", type=click.IntRange(min=1), metavar="N")
@click.option("--max-budget-usd", "--max-price", "max_budget_usd", type=click.FloatRange(min=0), metavar="X")
@click.option("-c", "--continue", "continue_", is_flag=True, help="Go on with the latest session of this folder.")
@click.option("-r", "--resume", metavar="ID", default="", help="Go on with the session ID (its beginning will do).")
@click.option("--fork-session", is_flag=True, help="With -c or -r: go on with a copy.")
@click.option("--no-session", "--ephemeral", "no_session", is_flag=True, help="Keep nothing.")
@click.option("-C", "--cwd", type=_FOLDER, default=None, metavar="DIR", help="Work there.")
@click.option("--add-dir", type=_FOLDER, multiple=True, metavar="DIR", help="Another folder that belongs to the work.")
@click.option("--deterministic", is_flag=True, help="The same bytes out every time; implied by script: and demo.")
@click.option("--simulate", is_flag=True, help="A world in memory: nothing real is run, read or written.")
@click.option("--seed", type=int, default=0, metavar="N", help="Which order of what may happen in any order.")
@click.option("--system-prompt", metavar="TEXT", help="Instead of NovaCode's own.")
@click.option("--append-system-prompt", metavar="TEXT")
@click.option("--overlap", type=click.Choice(("declared", "all", "none")), help="Which calls of a turn may overlap.")
@click.option("-q", "--quiet", is_flag=True)
@click.option("-v", "--verbose", is_flag=True)
def command(**given: Any) -> int:
    """Run one task to its end. PROMPT may be - or come from a pipe."""
    cwd = (given["cwd"] or Path.cwd()).absolute()
    wish = RunWish(
        _prompt(given["prompt"]),
        given["format_"],
        given["partial"],
        cwd,
        tuple(path.absolute() for path in given["add_dir"]),
        SessionWish(given["continue_"], given["resume"], given["fork_session"], not given["no_session"]),
        _flags(given),
        given["deterministic"],
        given["seed"],
        given["simulate"],
        given["quiet"],
        given["verbose"],
    )
    return run_prompt(wish)


def _flags(given: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the options that are settings, under the keys of the settings table."""
    return {
        "model": given["model"],
        "base_url": given["base_url"],
        "permissions.mode": "bypass" if given["yolo"] else given["mode"],
        "permissions.allow": list(given["allow"]) or None,
        "permissions.ask": list(given["ask"]) or None,
        "permissions.deny": list(given["deny"]) or None,
        "limits.max_turns": given["max_turns"],
        "limits.max_seconds": given["max_seconds"],
        "limits.max_output_tokens": given["max_output_tokens"],
        "limits.max_budget_usd": given["max_budget_usd"],
        "overlap": given["overlap"],
        "system_prompt": given["system_prompt"],
        "append_system_prompt": given["append_system_prompt"],
    }


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
