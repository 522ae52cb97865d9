"""Which MCP servers there are, as settings name them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import attrs

from novacode.errors import SettingsError
from novacode.values.parts import JSON

__all__ = ["ServerConfig", "expanded", "parse_servers"]

_FIELDS = frozenset(
    {"command", "args", "env", "cwd", "url", "headers", "startup_timeout", "call_timeout", "disabled", "type"}
)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@attrs.frozen
class ServerConfig:
    """One server: a program that is talked to over its pipes (`command`), or one behind an address (`url`).

    `env` and `headers` are as written, `${NAME}` not yet replaced; neither shows in a `repr`. Times are in seconds.
    `place` is where it was written.
    """

    name: str
    place: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    startup_timeout: float = 5.0
    call_timeout: float = 120.0
    disabled: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """What is started."""
        program = str(Path(self.command).expanduser()) if self.command.startswith("~") else self.command
        return (program, *self.args)

    def folder(self, workspace: Path) -> Path:
        """Return where its process runs; a relative `cwd` starts at the workspace."""
        return (workspace / Path(self.cwd).expanduser()) if self.cwd else workspace


def parse_servers(value: Mapping[str, JSON], place: str) -> tuple[tuple[ServerConfig, ...], tuple[str, ...]]:
    """Return the servers that `value` names, and warnings about fields that nobody knows.

    Raises `SettingsError` with the place, the field and what it must be. No value of `env` or `headers` is in it.
    """
    servers, warnings = [], []
    for name, table in value.items():
        where = f"{place}: `mcp_servers.{name}`"
        if not isinstance(table, Mapping):
            raise SettingsError(f"{where} must be a table with `command` or `url`")
        if odd := sorted(map(str, table.keys() - _FIELDS)):
            warnings.append(f"{where}: {', '.join(f'`{one}`' for one in odd)} is not known and is left out")
        servers.append(_server(str(name), table, place, where))
    return tuple(servers), tuple(warnings)


def _server(name: str, table: Mapping[str, JSON], place: str, where: str) -> ServerConfig:
    if not name.strip():
        raise SettingsError(f"{where} has no name")
    if bool(table.get("command")) == bool(table.get("url")):
        raise SettingsError(f"{where} needs either `command` (a program) or `url` (an address), and not both")
    made = ServerConfig(
        name,
        place,
        command=_text(table, "command", where),
        args=_texts(table, where),
        env=_table(table, "env", where),
        cwd=_text(table, "cwd", where),
        url=_text(table, "url", where),
        headers=_table(table, "headers", where),
        startup_timeout=_seconds(table, "startup_timeout", 5.0, where),
        call_timeout=_seconds(table, "call_timeout", 120.0, where),
        disabled=_flag(table, where),
    )
    if made.url and (urlsplit(made.url).scheme not in ("http", "https") or not urlsplit(made.url).hostname):
        _refuse(where, "url", made.url, "an address that begins with http:// or https://")
    return made


def expanded(texts: Mapping[str, str], environ: Mapping[str, str], what: str) -> dict[str, str]:
    """Return `texts` with each `${NAME}` replaced by that variable, `${NAME:-text}` by `text` where it is not set.

    Raises `SettingsError` that names the variable that is missing.
    """

    def value(name: str, match: re.Match[str]) -> str:
        variable, otherwise = match[1], match[2]
        if variable in environ:
            return environ[variable]
        if otherwise is None:
            raise SettingsError(f"`{what}.{name}` needs the environment variable {variable}, which is not set: set it")
        return otherwise

    return {name: _VARIABLE.sub(functools.partial(value, name), text) for name, text in texts.items()}


def _refuse(where: str, field: str, value: JSON, expected: str) -> NoReturn:
    raise SettingsError(f"{where}: `{field}` is {value!r:.200}; it must be {expected}")


def _text(table: Mapping[str, JSON], field: str, where: str) -> str:
    value = table.get(field, "")
    return value if isinstance(value, str) else _refuse(where, field, value, "a text")


def _texts(table: Mapping[str, JSON], where: str) -> tuple[str, ...]:
    value = table.get("args", ())
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        _refuse(where, "args", value, "a list of texts")
    return tuple(value)


def _table(table: Mapping[str, JSON], field: str, where: str) -> dict[str, str]:
    value = table.get(field, {})
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise SettingsError(f"{where}: `{field}` must be a table of names and texts")  # its values may be secret
    return dict(value)


def _seconds(table: Mapping[str, JSON], field: str, default: float, where: str) -> float:
    value = table.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        _refuse(where, field, value, "a number of seconds greater than 0")
    return float(value)


def _flag(table: Mapping[str, JSON], where: str) -> bool:
    value = table.get("disabled", False)
    return value if isinstance(value, bool) else _refuse(where, "disabled", value, "true or false")
