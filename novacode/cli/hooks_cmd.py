"""`novacode hooks`: which hooks there are, and what they say to a sample."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
import click
import trio

from novacode.app.hook_plugins import plugin_hooks
from novacode.app.settings import Places, Settings, environment, home_folder, load_settings, project_folder
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hook_tools import own_arguments
from novacode.authority.hook_wire import HookFacts
from novacode.authority.hooks import HookEvent
from novacode.cli.escape import visible
from novacode.cli.hook_trial import Trial
from novacode.tools.toolset import our_name
from novacode.values.ids import CallId
from novacode.values.parts import JSON, ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["command"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_SAMPLES: Mapping[str, Mapping[str, JSON]] = {
    "shell": {"command": "echo hello"},
    "read": {"path": "README.md"},
    "write": {"path": "hello.txt", "content": "hello\n"},
    "edit": {"path": "hello.txt", "old": "hello", "new": "good morning"},
    "glob": {"pattern": "**/*.py"},
    "grep": {"pattern": "TODO"},
}


@click.group("hooks")
def command() -> None:
    """Look at hooks."""


@command.command("list", short_help="Which hooks there are.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.option("-C", "--cwd", type=_FOLDER, default=Path())
def list_command(as_json: bool, cwd: Path) -> None:
    """List the hooks of the settings and of installed packages, in the order in which their answers are read."""
    specs = _specs(_settings(cwd))
    if as_json:
        rows = [attrs.asdict(spec, filter=lambda field, _: field.name != "function") for spec in specs]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for spec in specs:
        head = f"{spec.event}  {spec.matcher or '*'}  {spec.command}"
        click.echo(visible(f"{head}\n  {spec.timeout:g} s, on failure {spec.on_failure}  ({spec.source})"))


@command.command("test", short_help="What hooks say to a sample.")
@click.argument("event", type=click.Choice([event.value for event in HookEvent], case_sensitive=False))
@click.option("--tool", default="Bash", show_default=True, help="The tool of the sample call, under any name.")
@click.option("--input", "given", metavar="JSON", help="Its arguments, under our names or the familiar ones.")
@click.option("--text", default="hello", show_default=True, help="The prompt, the answer or the message of the sample.")
@click.option("--only", metavar="TEXT", default="", help="Only hooks whose command holds this.")
@click.option("-C", "--cwd", type=_FOLDER, default=Path())
def test_command(event: str, tool: str, given: str | None, text: str, only: str, cwd: Path) -> int:
    """Run the hooks for EVENT on a sample and show what they were told, what they said, and what it means.

    The hooks really run, the sample call does not. Ends with 1 where a hook has failed.
    """
    settings = _settings(cwd)
    specs = [spec for spec in _specs(settings) if spec.event == event and only in spec.command]
    workspace = Workspace.at(cwd)
    facts = HookFacts("s-test", workspace, str(project_folder(workspace.root)), settings.model or "")
    trial = Trial(specs, facts, settings.mode)
    trio.run(trial.run, HookEvent(event), _call(tool, given, workspace), text)
    click.echo(visible(trial.report(), prose=True))
    return 1 if trial.failed else 0


def _settings(cwd: Path) -> Settings:
    environ = environment()
    settings = load_settings(Places(home_folder(environ), cwd.resolve()), environ)
    for warning in settings.warnings:
        click.echo(f"novacode: {visible(warning)}", err=True)
    return settings


def _specs(settings: Settings) -> tuple[HookSpec, ...]:
    return (*settings.hooks, *plugin_hooks(sys.path))


def _call(tool: str, given: str | None, workspace: Workspace) -> ToolCall:
    call = ToolCall(CallId("call_test"), 0, our_name(tool), _SAMPLES.get(our_name(tool), {}))
    if given is None:
        return call
    try:
        arguments = json.loads(given)
        if not isinstance(arguments, Mapping):
            raise ValueError("it is no JSON object")
        return attrs.evolve(call, arguments=own_arguments(call, workspace, arguments))
    except ValueError as error:
        raise click.UsageError(f"--input is {given!r}: {error}") from error
