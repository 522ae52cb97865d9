"""Settings: defaults < user < project < local < environment < flags, each value with where it came from.

A file that cannot be used is an error that names the file, the key, the value and what was expected; a key nobody
knows is a warning. What a project says that could run something counts only where its folder is trusted; its ask and
deny rules always count, since they can only make a run more careful.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from novacode.app.home import environment, home_folder
from novacode.app.hook_files import read_hook_file
from novacode.app.mcp_servers import read_mcp_file, settled_servers
from novacode.app.rule_settings import RulePlace, rule_of
from novacode.app.settings_keys import KEYS, Key
from novacode.app.settings_places import Places, folder_of, project_folder
from novacode.app.toml import TomlError, read_toml
from novacode.app.trust import TrustedFolders
from novacode.authority.hook_settings import HookSpec, parse_hooks
from novacode.authority.modes import Mode
from novacode.authority.rules import Rule
from novacode.errors import SettingsError, UsageError
from novacode.values.parts import JSON

if TYPE_CHECKING:
    from novacode.mcp.config import ServerConfig

__all__ = [
    "Places",
    "Settings",
    "environment",
    "field_of",
    "home_folder",
    "load_settings",
    "project_folder",
    "wanting_trust",
]

_PREFIX = "NOVACODE_"
_NOT_SETTINGS = frozenset({"NOVACODE_HOME", "NOVACODE_STREAMS"})
_RULE_KEYS = ("permissions.allow", "permissions.ask", "permissions.deny")
_COMMAND_LINE = "command line"


@attrs.frozen
class Settings:
    """What holds for a run. `None` where nothing was set and there is no default.

    `rules` are in the order of their sources, each with its own. `where` says of every key that was set which source
    decided, `warnings` are for stderr.
    """

    model: str | None = None
    base_url: str | None = None
    mode: Mode = Mode.DEFAULT
    rules: tuple[Rule, ...] = ()
    max_turns: int | None = None
    max_seconds: float | None = None
    max_output_tokens: int | None = None
    max_budget_usd: float | None = None
    context_window: int | None = None
    overlap: str = "declared"
    idle_timeout: float = 300.0
    retries: int = 8
    stream_retries: int = 5
    env_keep: tuple[str, ...] = ()
    env_set: Mapping[str, str] = attrs.field(factory=dict)
    secrets: tuple[str, ...] = ()
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    hooks: tuple[HookSpec, ...] = ()
    mcp_servers: tuple[ServerConfig, ...] = ()
    snapshots_enabled: bool = True
    snapshots_max_file_mb: int = 20
    snapshots_max_files: int = 50_000
    snapshots_max_total_mb: int = 1_000
    snapshots_ignored: bool = False
    snapshots_keep_days: int = 30
    snapshots_keep_mb: int = 2_000
    sandbox: bool = False
    sandbox_network: bool = False
    where: Mapping[str, str] = attrs.field(factory=dict)
    warnings: tuple[str, ...] = ()


@attrs.frozen(eq=False, repr=False)
class _Value:
    """A value as it was found. `place` is where, for people; `at` gives the place of one item of a list."""

    value: JSON
    place: str
    text: str = ""

    def at(self, item: str) -> str:
        """Return the file and line of `item`; the place alone where it is written in a way that hides it."""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if f'"{item}"' in line or f"'{item}'" in line:
                return f"{self.place}:{number}"
        return self.place


def load_settings(places: Places, environ: Mapping[str, str], flags: Mapping[str, JSON] | None = None) -> Settings:
    """Return what all sources add up to. `flags` are keys of the table with values; `None` values are not set.

    Raises `SettingsError` for a file or a variable, and `UsageError` for a flag, that cannot be used.
    """
    trusted = TrustedFolders(places.home)
    warnings: list[str] = []
    own = (places.user, places.hooks, places.personal)
    found: list[tuple[str, _Value]] = [item for path in own for item in _from_file(path, warnings)]
    for path in (*places.project, *places.project_hooks, places.servers):
        values = list(_from_file(path, warnings))
        if not trusted.trusts(folder_of(path)):
            values = _without_trust(path, values, warnings, trusted.path)
        found += values
    found += _from_environment(environ, warnings)
    found += [(key, _Value(value, _COMMAND_LINE)) for key, value in (flags or {}).items() if value is not None]
    return _put_together(found, warnings, places.cwd)


def wanting_trust(places: Places) -> tuple[tuple[Path, str, JSON], ...]:
    """Return what the project's files say that counts only where their folder is trusted: file, key and value.

    Raises `SettingsError` for a file that cannot be understood.
    """
    return tuple(
        (path, key, found.value)
        for path in (*places.project, *places.project_hooks, places.servers)
        for key, found in _from_file(path, [])
        if KEYS[key].needs_trust
    )


def _from_file(path: Path, warnings: list[str]) -> Iterator[tuple[str, _Value]]:
    if path.suffix == ".json":
        is_servers = path.name == ".mcp.json"
        found = read_mcp_file(path, warnings) if is_servers else read_hook_file(path, warnings)
        if found is not None:
            yield "mcp_servers" if is_servers else "hooks", _Value(found, str(path))
        return
    try:
        text = path.read_bytes().decode("utf-8-sig")
        data = read_toml(text)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        warnings.append(f"{path} cannot be read and is left out: {error.strerror or error}")
        return
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
        ) from error
    except TomlError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    for key, value in _flat(data):
        if key in KEYS:
            yield key, _Value(value, str(path), text)
        else:
            warnings.append(f"{path}: `{key}` is not a setting and is left out.{_guess(key, KEYS)}")


def _flat(data: Mapping[str, JSON], prefix: str = "") -> Iterator[tuple[str, JSON]]:
    for name, value in data.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in KEYS and any(known.startswith(f"{key}.") for known in KEYS):
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _without_trust(
    path: Path, values: Sequence[tuple[str, _Value]], warnings: list[str], trust_file: Path
) -> list[tuple[str, _Value]]:
    held = sorted({key for key, _ in values if KEYS[key].needs_trust})
    if held:
        warnings.append(
            f"{path}: {', '.join(f'`{key}`' for key in held)} is left out, because the folder is not trusted. If you"
            f" trust what it says: novacode config trust {shlex.quote(str(folder_of(path)))} (or, by hand, in"
            f' {trust_file}: folders = ["{folder_of(path)}"])'
        )
    return [(key, value) for key, value in values if not KEYS[key].needs_trust]


def _from_environment(environ: Mapping[str, str], warnings: list[str]) -> Iterator[tuple[str, _Value]]:
    names = {_PREFIX + key.replace(".", "_").upper(): key for key in KEYS if key != "hooks"}
    for name in sorted(environ):
        if name in names:
            if environ[name] != "":
                yield names[name], _Value(environ[name], name)
        elif name.startswith(_PREFIX) and name not in _NOT_SETTINGS and (guess := _guess_variable(name, names)):
            warnings.append(f"{name} is not a setting.{guess}")


def _put_together(found: Sequence[tuple[str, _Value]], warnings: list[str], folder: Path) -> Settings:
    values: dict[str, JSON] = {}
    where: dict[str, str] = {}
    rules: list[Rule] = []
    for key, given in found:
        value = _checked(KEYS[key], key, given)
        if key in _RULE_KEYS:
            rules += (_rule(key, item, given, folder) for item in value)
        elif key == "hooks":
            value, told = parse_hooks(value, given.place)
            warnings += told
        elif key == "mcp_servers":
            from novacode.mcp.config import parse_servers  # hardly any settings name one

            value, told = parse_servers(value, given.place)
            warnings += told
        values[key] = (*values.get(key, ()), *value) if KEYS[key].adds_up else value
        where[key] = f"{where[key]}, {given.place}" if KEYS[key].adds_up and key in where else given.place
    return Settings(
        rules=tuple(rules),
        where=where,
        warnings=tuple(warnings),
        mode=Mode(values.pop("permissions.mode", Mode.DEFAULT)),
        mcp_servers=settled_servers(values.pop("mcp_servers", ())),
        **{field_of(key): value for key, value in values.items() if key not in _RULE_KEYS},
    )


def _checked(key: Key, name: str, given: _Value) -> JSON:
    try:
        return key.read(given.value)
    except (ValueError, TypeError) as error:
        kind = UsageError if given.place == _COMMAND_LINE else SettingsError
        raise kind(f"{given.place}: `{name}` is {given.value!r}; it must be {key.expected}") from error


def _rule(key: str, item: JSON, given: _Value, folder: Path) -> Rule:
    decision = key.removeprefix("permissions.")
    flag = f"--{decision}" if given.place == _COMMAND_LINE else ""
    try:
        return rule_of(item, RulePlace(decision, lambda text: flag or given.at(text), folder))
    except SettingsError as error:
        raise (UsageError if given.place == _COMMAND_LINE else SettingsError)(str(error)) from error


def field_of(key: str) -> str:
    """Return the name of the field of `Settings` that holds `key`."""
    return key.removeprefix("limits.").replace(".", "_")


def _guess_variable(name: str, names: Mapping[str, str]) -> str:
    """Guess without the prefix, which all have in common and which would make any two of them look alike."""
    guess = _guess(name.removeprefix(_PREFIX), {known.removeprefix(_PREFIX): key for known, key in names.items()})
    return guess.replace("`", f"`{_PREFIX}", 1)


def _guess(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f" Did you mean `{close[0]}`?" if close else ""
