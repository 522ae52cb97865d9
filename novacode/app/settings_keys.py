"""Every setting there is: its key, what its value must be, and who may set it.

A key is dotted (`limits.max_turns`); the same table reads TOML, `NOVACODE_LIMITS_MAX_TURNS` and flags.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import attrs

from novacode.app.rule_settings import read_rules
from novacode.authority.modes import parse_mode
from novacode.errors import SettingsError
from novacode.values.parts import JSON

__all__ = ["KEYS", "Key"]

_OVERLAPS = ("declared", "all", "none")


@attrs.frozen(eq=False, repr=False)
class Key:
    """One setting. `read` takes a value of TOML, or the text of a variable, and raises `ValueError` for a wrong one.

    `needs_trust`: a project may set it only where its folder is trusted, because it can run something, open the
    permissions, or send the key elsewhere. `adds_up`: the values of all sources count, not only the last one.
    """

    read: Callable[[JSON], JSON]
    expected: str
    needs_trust: bool = False
    adds_up: bool = False


def _text(value: JSON) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _texts(value: JSON) -> tuple[str, ...]:
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(_text(item) for item in value)


def _url(value: JSON) -> str:
    parts = urlsplit(_text(value))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError
    return _text(value).rstrip("/")


def _whole(least: int) -> Callable[[JSON], int]:
    def read(value: JSON) -> int:
        number = int(value) if isinstance(value, str) else value
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise ValueError
        return number

    return read


def _positive(value: JSON) -> float:
    number = float(value) if isinstance(value, str) else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number) or number <= 0:
        raise ValueError
    return float(number)


def _yes_or_no(value: JSON) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = known.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError
    return found


def _mode(value: JSON) -> str:
    try:
        return parse_mode(_text(value)).value
    except SettingsError as error:
        raise ValueError from error


def _overlap(value: JSON) -> str:
    if value not in _OVERLAPS:
        raise ValueError
    return str(value)


def _table_of_texts(value: JSON) -> Mapping[str, str]:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError
    return dict(value)


def _hooks(value: JSON) -> JSON:
    """Tell apart what may be hooks and what cannot; each hook is read where its file and place are known."""
    if not isinstance(value, list | tuple | Mapping):
        raise ValueError
    return value


def _servers(value: JSON) -> Mapping[str, JSON]:
    """Tell apart what may be servers and what cannot; each is read where its file is known."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping):
        raise ValueError
    return value


def _rules(value: JSON) -> tuple[JSON, ...]:
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [value]
    return read_rules(value)


_RULES = (
    'a list of rules, for example ["shell(git log:*)", { rule = "edit(src/**)", match = ["src/a.py"],'
    ' not_match = ["docs/a.md"] }]'
)

KEYS: Mapping[str, Key] = {
    "model": Key(_text, 'the name of a model, for example "anthropic/claude-sonnet-4-5"'),
    "base_url": Key(_url, "an address that begins with http:// or https://", needs_trust=True),
    "permissions.mode": Key(_mode, "default, accept-edits, plan or bypass", needs_trust=True),
    "permissions.allow": Key(_rules, _RULES, needs_trust=True, adds_up=True),
    "permissions.ask": Key(_rules, _RULES, adds_up=True),
    "permissions.deny": Key(_rules, _RULES, adds_up=True),
    "limits.max_turns": Key(_whole(1), "a whole number of 1 or more"),
    "limits.max_seconds": Key(_positive, "a number of seconds greater than 0"),
    "limits.max_output_tokens": Key(_whole(1), "a whole number of 1 or more"),
    "limits.max_budget_usd": Key(_positive, "an amount in US dollars greater than 0"),
    "context_window": Key(_whole(1_000), "a whole number of tokens, 1000 or more"),
    "overlap": Key(_overlap, "declared, all or none"),
    "idle_timeout": Key(_positive, "a number of seconds greater than 0"),
    "retries": Key(_whole(0), "a whole number of 0 or more"),
    "stream_retries": Key(_whole(0), "a whole number of 0 or more"),
    "env.keep": Key(_texts, "a list of names of environment variables", needs_trust=True, adds_up=True),
    "env.set": Key(_table_of_texts, "a table of names and texts", needs_trust=True),
    "secrets": Key(_texts, "a list of names of environment variables", adds_up=True),
    "snapshots.enabled": Key(_yes_or_no, "true or false", needs_trust=True),
    "snapshots.max_file_mb": Key(_whole(0), "a whole number of megabytes"),
    "snapshots.max_files": Key(_whole(0), "a whole number of files and folders"),
    "snapshots.max_total_mb": Key(_whole(0), "a whole number of megabytes"),
    "snapshots.ignored": Key(_yes_or_no, "true or false"),
    "snapshots.keep_days": Key(_whole(0), "a whole number of days; 0 for ever", needs_trust=True),
    "snapshots.keep_mb": Key(_whole(0), "a whole number of megabytes; 0 for no bound", needs_trust=True),
    "sandbox": Key(_yes_or_no, "true or false", needs_trust=True),
    "sandbox_network": Key(_yes_or_no, "true or false", needs_trust=True),
    "system_prompt": Key(_text, "a text"),
    "append_system_prompt": Key(_text, "a text"),
    "mcp_servers": Key(_servers, "tables, each begun with [mcp_servers.NAME]", needs_trust=True, adds_up=True),
    "hooks": Key(
        _hooks, "tables, each begun with [[hooks]], or lists of hooks by event", needs_trust=True, adds_up=True
    ),
}
