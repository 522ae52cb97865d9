"""`novacode permissions explain`: which rule decides about a call, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import click

from novacode.app.settings import Places, environment, home_folder, load_settings
from novacode.authority.commands import analyse
from novacode.authority.explain import explain, explain_text, parse_call
from novacode.authority.policy import Policy
from novacode.cli.escape import visible
from novacode.tools.base import Effects
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.parts import JSON, ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["command"]

_RULES = {"allow": "May happen without a question.", "ask": "Asks.", "deny": "Is refused."}


@click.group("permissions")
def command() -> None:
    """Look at permissions."""


@command.command("explain", short_help="Which rule decides about a call.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--allow", multiple=True, metavar="RULE", help=_RULES["allow"])
@click.option("--ask", multiple=True, metavar="RULE", help=_RULES["ask"])
@click.option("--deny", multiple=True, metavar="RULE", help=_RULES["deny"])
@click.option("--permission-mode", metavar="MODE", help="default, accept-edits, plan or bypass.")
@click.option("-C", "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.argument("call")
def explain_command(
    as_json: bool,
    permission_mode: str | None,
    cwd: Path,
    call: str,
    **rules: tuple[str, ...],
) -> None:
    """Say what would be decided about CALL, for example 'shell(git push)', and by which rule of which file and line.

    Nothing is run, whatever the answer.
    """
    flags: dict[str, JSON] = {f"permissions.{kind}": list(texts) or None for kind, texts in rules.items()}
    flags["permissions.mode"] = permission_mode
    workspace = Workspace.at(cwd)
    environ = environment()
    settings = load_settings(Places(home_folder(environ), workspace.root), environ, flags)
    for warning in settings.warnings:
        click.echo(f"novacode: {visible(warning)}", err=True)
    parsed = parse_call(call)
    effects, known = _effects(parsed, workspace)
    policy = Policy(settings.mode, settings.rules, analyse)
    if not known:
        policy = attrs.evolve(policy, changes=policy.changes | {parsed.name})
    if as_json:
        click.echo(json.dumps(explain(policy, parsed, effects, workspace), indent=2))
    else:
        click.echo(visible(explain_text(policy, parsed, effects, workspace)))


def _effects(call: ToolCall, workspace: Workspace) -> tuple[Effects, bool]:
    """Return what the tool says the call would do, and whether that is known.

    Of a tool that is not there nothing is known but the host it would talk to, so it may change something.
    """
    tool = Toolset(builtin_tools(lambda line: analyse(line).read_only)).find(call.name)
    if tool is not None:
        return tool.effects(call.arguments, workspace), True
    host = _host(str(call.arguments.get("url", "")))
    return Effects(call.name, hosts=(host,) if host else ()), bool(host)


def _host(url: str) -> str:
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:  # brackets that are no address
        return ""
