"""Hooks as they are written down: one list of specs from either of two forms. Pure.

The flat form, for TOML:            The nested form, as it is widely used, for JSON and TOML:

    [[hooks]]                           {"hooks": {"PreToolUse": [
    event = "PreToolUse"                    {"matcher": "Bash", "hooks": [
    matcher = "Bash"                            {"type": "command", "command": "./guard.sh", "timeout": 5}]}]}}
    command = "./guard.sh"
    timeout = 5
"""

from __future__ import annotations

import difflib
import enum
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from novacode.authority.hooks import HookEvent
from novacode.errors import SettingsError
from novacode.tools.toolset import our_name
from novacode.values.parts import JSON

__all__ = ["DEFAULT_TIMEOUT", "HookFunction", "HookSpec", "OnFailure", "parse_hooks"]

DEFAULT_TIMEOUT = 60.0

HookFunction = Callable[[Mapping[str, JSON]], Awaitable[Mapping[str, JSON] | None] | Mapping[str, JSON] | None]
"""A hook in this process: takes what a program would get on stdin, and returns what it would print, or nothing."""

_ELSEWHERE = frozenset(
    {
        "BeforeAgent",
        "BeforeModel",
        "BeforeTool",
        "PermissionRequest",
        "PostCompact",
        "PostToolBatch",
        "Setup",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "TaskCompleted",
        "TeammateIdle",
    }
)
"""Events of other agents that never happen here: a file with hooks for them can be used, without those."""

_FLAT_KEYS = frozenset({"event", "matcher", "command", "timeout", "on_failure", "type"})
_PLAIN_MATCHER = re.compile(r"[\w|\s-]*")
_MATCHED = frozenset(
    {
        HookEvent.PRE_TOOL_USE,
        HookEvent.POST_TOOL_USE,
        HookEvent.POST_TOOL_USE_FAILURE,
        HookEvent.SESSION_START,
        HookEvent.SESSION_END,
        HookEvent.PRE_COMPACT,
        HookEvent.NOTIFICATION,
    }
)


class OnFailure(enum.StrEnum):
    """What follows where a guard crashes, takes too long or answers with something that cannot be understood."""

    DENY = "deny"
    CONTINUE = "continue"


@attrs.frozen
class HookSpec:
    """One hook. `command` is a shell line; with `function` it is the name of a hook in this process.

    `timeout` is in seconds. `source` is where it was written down.
    """

    event: HookEvent
    command: str
    matcher: str = ""
    timeout: float = DEFAULT_TIMEOUT
    on_failure: OnFailure = OnFailure.DENY
    source: str = ""
    function: HookFunction | None = None

    def matches(self, subjects: Sequence[str]) -> bool:
        """Whether the hook is for an event about `subjects`: the names of a tool, or what started a session, say.

        A matcher of names (`Bash`, `Edit|Write`) is for exactly these; any other is a regular expression that is
        looked for in the name. Empty or `*` is for everything.
        """
        if self.event not in _MATCHED or self.matcher in ("", "*"):
            return True
        if _PLAIN_MATCHER.fullmatch(self.matcher):
            wanted = {name.strip() for name in self.matcher.split("|")}
            wanted |= {our_name(name) for name in wanted}
            return not wanted.isdisjoint(subjects)
        return any(re.search(self.matcher, subject) for subject in subjects)


def parse_hooks(value: JSON, source: str) -> tuple[tuple[HookSpec, ...], tuple[str, ...]]:
    """Return the hooks that `value` describes, in order, and what to warn about.

    Raises `SettingsError` for what cannot be understood: a guard must not be lost for a slip of the pen. Events that
    only other agents have, and keys nobody knows, are warnings.
    """
    warnings: list[str] = []
    found: list[HookSpec] = []
    for place, table in _tables(value, source):
        event = _event(table.get("event"), place)
        if event is None:
            warnings.append(f"{place}: there is no event {table['event']!r} here; its hooks are left out")
            continue
        unknown = sorted(set(table) - _FLAT_KEYS)
        if unknown:
            warnings.append(f"{place}: {', '.join(f'`{key}`' for key in unknown)} is not known and is left out")
        found.append(_spec(event, table, place, source))
    return tuple(found), tuple(warnings)


def _tables(value: JSON, source: str) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    """Yield one flat table for each hook, and the words for where it stands."""
    if isinstance(value, Mapping):
        for event, groups in value.items():
            yield from _of_event(event, groups, source)
        return
    for number, table in enumerate(_list(value, f"{source}: `hooks`", "tables, each begun with [[hooks]]"), start=1):
        place = f"{source}: hook {number}"
        yield place, _table(table, place)


def _of_event(event: str, groups: JSON, source: str) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    if event in _ELSEWHERE:
        yield f"{source}: `{event}`", {"event": event}
        return
    for group in _list(groups, f"{source}: `{event}`", 'a list of {"matcher": …, "hooks": […]}'):
        table = _table(group, f"{source}: `{event}`")
        inner = _list(table.get("hooks"), f"{source}: `hooks` of `{event}`", 'a list of {"type": "command", …}')
        for number, hook in enumerate(inner, start=1):
            place = f"{source}: `{event}` hook {number}"
            own = _table(hook, place)
            yield place, {**own, "event": event, "matcher": table.get("matcher", "")}


def _event(name: JSON, place: str) -> HookEvent | None:
    """Return the event called `name`, in either spelling, and `None` for one that only other agents have."""
    if isinstance(name, str):
        if name in _ELSEWHERE:
            return None
        for event in HookEvent:
            if name.replace("_", "").lower() == event.value.lower():
                return event
    close = difflib.get_close_matches(str(name), list(HookEvent), n=1)
    guess = f" Did you mean {close[0]}?" if close else f" There are {', '.join(HookEvent)}."
    raise SettingsError(f"{place}: `event` is {name!r}, which is no event.{guess}")


def _spec(event: HookEvent, table: Mapping[str, JSON], place: str, source: str) -> HookSpec:
    kind = table.get("type", "command")
    if kind != "command":
        raise SettingsError(f"{place}: `type` is {kind!r}; only hooks of type 'command' can be run")
    command = table.get("command")
    if not isinstance(command, str) or not command.strip():
        raise SettingsError(f"{place}: `command` is {command!r}; it must be a shell command")
    return HookSpec(
        event,
        command,
        _matcher(table.get("matcher"), place),
        _timeout(table.get("timeout", DEFAULT_TIMEOUT), place),
        _on_failure(table.get("on_failure", "deny"), place),
        source,
    )


def _matcher(value: JSON, place: str) -> str:
    if value is None or value in ("", "*"):
        return ""
    problem: Any = "it must be a name, names with | between them, or a regular expression"
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            problem = f"it is no regular expression: {error}"
        else:
            return value
    raise SettingsError(f"{place}: `matcher` is {value!r}; {problem}")


def _timeout(value: JSON, place: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise SettingsError(f"{place}: `timeout` is {value!r}; it must be a number of seconds greater than 0")
    return float(value)


def _on_failure(value: JSON, place: str) -> OnFailure:
    if value == "block":
        return OnFailure.DENY
    try:
        return OnFailure(value)
    except ValueError:
        raise SettingsError(f"{place}: `on_failure` is {value!r}; it must be deny or continue") from None


def _list(value: JSON, place: str, expected: str) -> Sequence[JSON]:
    if not isinstance(value, list | tuple):
        raise SettingsError(f"{place} is {value!r}; it must be {expected}")
    return value


def _table(value: JSON, place: str) -> Mapping[str, JSON]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{place} is {value!r}; it must be a table")
    return value
