"""`novacode tools`: what the model may call, and with which arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click
import trio

from novacode.app.mcp_servers import try_servers
from novacode.app.settings import Places, environment, home_folder, load_settings
from novacode.authority.commands import analyse
from novacode.cli.escape import visible
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.parts import JSON
from novacode.values.request import ToolOffer
from novacode.workspace.processes import RealProcesses

__all__ = ["command"]


@click.command("tools", short_help="What the model may call.")
@click.option("--json", "as_json", is_flag=True, help="Names, descriptions and JSON schemas as one JSON array.")
@click.option("--mcp", "start", is_flag=True, help="Start the MCP servers, and show their tools, too.")
def command(as_json: bool, start: bool) -> None:
    """Show the tools a model is offered.

    MCP servers are named on standard error; they are started only with --mcp.
    """
    tools = Toolset(builtin_tools(lambda line: analyse(line).read_only))
    environ = environment()
    settings = load_settings(Places(home_folder(environ), Path.cwd()), environ)
    if start and settings.mcp_servers:
        _, news = trio.run(try_servers, settings, RealProcesses(), Path.cwd(), environ, tools)
        for text in news:
            click.echo(f"novacode: {visible(text)}", err=True)
    elif settings.mcp_servers:
        names = ", ".join(visible(server.name) for server in settings.mcp_servers)
        click.echo(f"novacode: not started: the MCP servers {names}; --mcp shows their tools, too", err=True)
    offers = tools.offers()
    if as_json:
        rows = [{"name": one.name, "description": one.description, "schema": one.schema} for one in offers]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for offer in offers:
        click.echo(visible(_described(offer)))


def _described(offer: ToolOffer) -> str:
    first = offer.description.strip().split("\n", 1)[0]
    lines = [f"{offer.name}  {first}"]
    needed = offer.schema.get("required", ())
    for name, about in offer.schema.get("properties", {}).items():
        lines.append(f"  {name}{'' if name in needed else '?'}: {_kind(about)}")
    return "\n".join(lines)


def _kind(about: Mapping[str, JSON]) -> str:
    """Return the type of a parameter in a word, and what it is for."""
    if "enum" in about:
        kind = " or ".join(str(value) for value in about["enum"])
    elif "anyOf" in about:
        kind = " or ".join(_kind(one) for one in about["anyOf"] if one.get("type") != "null")
    elif about.get("type") == "array":
        kind = f"list of {_kind(about.get('items', {}))}"
    else:
        kind = str(about.get("type", "any"))
    words = str(about.get("description", "")).strip().split("\n", 1)[0]
    return f"{kind}  {words}" if words else kind
