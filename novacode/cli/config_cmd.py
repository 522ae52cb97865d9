"""`novacode config`: every setting, its value and where it comes from; and whether this folder is trusted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import click

from novacode.app.settings import (
    Places,
    Settings,
    environment,
    field_of,
    home_folder,
    load_settings,
    project_folder,
    wanting_trust,
)
from novacode.app.settings_keys import KEYS
from novacode.app.trust import TrustedFolders
from novacode.cli.escape import visible
from novacode.errors import UsageError
from novacode.values.parts import JSON

__all__ = ["command"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_HIDDEN = "(not shown)"


@click.group("config", invoke_without_command=True, short_help="Every setting, and where it comes from.")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@click.option("-C", "--cwd", type=_FOLDER, default=Path(), metavar="DIR", help="What holds in DIR.")
@click.pass_context
def command(context: click.Context, as_json: bool, cwd: Path) -> None:
    """Show every setting, its value and where that comes from.

    Settings are read from your own file, the project's, the local one beside it and NOVACODE_* variables, in this
    order; a later one wins, and rules add up. Flags of a command come after all of them.
    """
    if context.invoked_subcommand is not None:
        return
    environ = environment()
    places = Places(home_folder(environ), cwd.absolute())
    settings = load_settings(places, environ)
    for warning in settings.warnings:
        click.echo(f"novacode: {visible(warning)}", err=True)
    told = {
        "settings": {key: _setting(settings, key) for key in KEYS},
        "files": [_file(places, kind, path) for kind, path in _files(places)],
        "trust": _trust(places),
    }
    click.echo(json.dumps(told, indent=2, ensure_ascii=False) if as_json else "\n".join(_lines(told)))


@command.command("trust", short_help="Let a project's settings run things.")
@click.argument("folder", type=_FOLDER, required=False, metavar="[DIR]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def trust_command(folder: Path | None, yes: bool) -> int:
    """Trust the project in DIR (this folder, where none is named), after showing what its settings would switch on.

    Trust is for the folder and everything below it, and it lasts: what is added to the settings later counts, too.
    """
    environ = environment()
    home = home_folder(environ)
    project = project_folder((folder or Path()).resolve())
    if project == Path(project.anchor) or project == Path(environ.get("HOME") or project.anchor).resolve():
        raise UsageError(f"{project} holds everything you will ever check out there; trust the project itself")
    trusted = TrustedFolders(home)
    if trusted.trusts(project):
        click.echo(f"{visible(str(project))} is trusted already ({visible(str(trusted.path))}).")
        return 0
    click.echo("\n".join(_wanted(Places(home, project))))
    if not yes and not _agreed(project):
        click.echo("Not trusted.", err=True)
        return 1
    trusted.add(project)
    click.echo(f"{visible(str(project))} is trusted from now on ({visible(str(trusted.path))}).")
    return 0


def _agreed(project: Path) -> bool:
    """Ask. Without a terminal nobody can be asked, and the answer is no."""
    if not _is_asked():
        raise UsageError("nobody can be asked here whether to trust this; look at it, and say --yes")
    return click.confirm(f"Trust {visible(str(project))} and everything below it?", default=False, err=True)


def _is_asked() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _wanted(places: Places) -> Iterator[str]:
    """Yield in lines what trust would switch on, every character visible."""
    found = wanting_trust(places)
    if not found:
        yield f"There are no settings in {visible(str(places.cwd))} that need trust. Those that come later would count."
        return
    yield "This would count from now on:"
    for path, key, value in found:
        yield f"  {visible(str(path))}: {key}"
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
        yield from (f"    | {line}" for line in visible(text).splitlines())


def _setting(settings: Settings, key: str) -> dict[str, JSON]:
    return {"value": _value(settings, key), "source": settings.where.get(key, "default")}


def _value(settings: Settings, key: str) -> JSON:
    """Return the value as JSON has it. Values of variables may be secrets, so only their names are shown."""
    match key:
        case "permissions.mode":
            return settings.mode.value
        case "permissions.allow" | "permissions.ask" | "permissions.deny":
            decision = key.removeprefix("permissions.")
            return [{"rule": rule.text, "source": rule.source} for rule in settings.rules if rule.decision == decision]
        case "env.set":
            return dict.fromkeys(settings.env_set, _HIDDEN)
        case "hooks":
            return [_hook(attrs.asdict(hook)) for hook in settings.hooks]
        case "mcp_servers":
            return [_server(attrs.asdict(server)) for server in settings.mcp_servers]
        case _:
            value = getattr(settings, field_of(key))
            return list(value) if isinstance(value, tuple) else value


def _server(fields: Mapping[str, JSON]) -> dict[str, JSON]:
    secret = {name: dict.fromkeys(fields[name], _HIDDEN) for name in ("env", "headers")}
    return {name: value for name, value in {**fields, **secret}.items() if value not in ("", (), {})}


def _hook(fields: Mapping[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in fields.items() if name != "function" and value not in ("", None)}


def _files(places: Places) -> Iterator[tuple[str, Path]]:
    yield "user", places.user
    yield "user", places.hooks
    yield "always allowed here", places.personal
    yield from (("project", path) for path in (*places.project, *places.project_hooks))


def _file(places: Places, kind: str, path: Path) -> dict[str, JSON]:
    return {"path": str(path), "kind": kind, "found": path.is_file()}


def _trust(places: Places) -> dict[str, JSON]:
    """Say whether the project's folder is trusted, and what is left out because it is not."""
    trusted = TrustedFolders(places.home)
    project = project_folder(places.cwd)
    is_trusted = trusted.trusts(project)
    left_out = [] if is_trusted else [{"file": str(path), "key": key} for path, key, _ in wanting_trust(places)]
    return {"folder": str(project), "trusted": is_trusted, "list": str(trusted.path), "left_out": left_out}


def _lines(told: Mapping[str, JSON]) -> Iterator[str]:
    width = max(map(len, told["settings"]))
    for key, setting in told["settings"].items():
        value, source = setting["value"], setting["source"]
        if key.startswith("permissions.") and isinstance(value, list):
            yield f"{key:<{width}}  {_number(value)}"
            yield from (f"{'':<{width}}    {visible(one['rule'])}  ({visible(one['source'])})" for one in value)
        elif key == "hooks":
            yield f"{key:<{width}}  {_number(value)}"
            yield from (f"{'':<{width}}    {_hook_line(one)}" for one in value)
        else:
            yield f"{key:<{width}}  {_text(value)}  ({visible(source)})"
    yield "\nFiles:"
    for one in told["files"]:
        yield f"  {'read' if one['found'] else 'none'}  {visible(one['path'])}  ({one['kind']})"
    trust = told["trust"]
    word = "trusted" if trust["trusted"] else "not trusted"
    yield f"\n{visible(trust['folder'])} is {word} ({visible(trust['list'])})"
    if trust["left_out"]:
        yield f"Left out because of that: {', '.join(sorted({one['key'] for one in trust['left_out']}))}"
        yield "`novacode config trust` shows it, and trusts the folder."


def _number(values: list[JSON]) -> str:
    return str(len(values)) if values else "none"


def _hook_line(hook: Mapping[str, JSON]) -> str:
    matcher = f" {hook['matcher']}" if "matcher" in hook else ""
    return visible(f"{hook['event']}{matcher}: {hook['command']}  ({hook.get('source', '')})")


def _text(value: JSON) -> str:
    if value is None:
        return "not set"
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
