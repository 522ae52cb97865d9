"""What a simulated world begins with, and reading it from the `[simulate]` table of a script.

Files and tools are the world. The rest is for the lab, which has neither settings nor a person: what is permitted,
who answers, what hooks say, and how far a run may go. `novacode run --simulate` has its own for all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import attrs

from novacode.errors import InputError

__all__ = ["Around", "Person", "ScriptedHook", "ScriptedTool", "Simulation", "parse_simulation"]

T = TypeVar("T")

_Kind = type | tuple[type, ...]
_NUMBER: _Kind = (int, float)


@attrs.frozen
class ScriptedTool:
    """What calls of the tool `name` come to whose subject (command, path, pattern) fits the glob `when`.

    `takes` and `cleanup` are seconds: of work, and of what must be done when it is cancelled. `writes` are files that
    are written when the work is done. `raises` makes the tool fail with a bug of that text. Without an `output` the
    tool answers from the files in memory. `sin` is what a tool must never do: `swallow` its cancellation, or work in
    a nursery whose other child fails when it is stopped, so that a `group` of errors comes out.
    """

    name: str
    when: str = "*"
    output: str | None = None
    exit: int = 0
    takes: float = 0.0
    cleanup: float = 0.0
    raises: str = ""
    prints: str = ""
    writes: Mapping[str, str] = attrs.field(factory=dict)
    sin: str = ""


@attrs.frozen
class ScriptedHook:
    """What the `pre_tool_use` hook does about calls of `name` whose subject fits `when`, after `takes` seconds.

    `deny` refuses with these words, `rewrite` replaces arguments, `ask` wants a person to decide, `raises` is a hook
    that fails with a bug.
    """

    name: str
    when: str = "*"
    takes: float = 0.0
    deny: str = ""
    ask: str = ""
    raises: str = ""
    rewrite: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Person:
    """Who answers questions: `allow` or `deny` after so many seconds, `none` never, `absent` is nobody to ask."""

    answers: str = "allow"
    after: float = 0.0


@attrs.frozen
class Around:
    """What surrounds a run in the lab: permissions as written in settings, limits by their names there, and more."""

    mode: str = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    person: Person = attrs.field(factory=Person)
    hooks: tuple[ScriptedHook, ...] = ()
    limits: Mapping[str, float] = attrs.field(factory=dict)
    disabled: tuple[str, ...] = ()
    overlap: str = "declared"

    def hook(self, name: str, subject: str) -> ScriptedHook | None:
        """Return what hooks do about a call of `name` with that subject: the first that fits counts."""
        return next((hook for hook in self.hooks if hook.name == name and fnmatchcase(subject, hook.when)), None)


@attrs.frozen
class Simulation:
    """What a world begins with. The first tool that fits a call is the one that counts."""

    files: Mapping[str, str] = attrs.field(factory=dict)
    tools: tuple[ScriptedTool, ...] = ()
    around: Around = attrs.field(factory=Around)

    def tool(self, name: str, subject: str) -> ScriptedTool:
        """Return what a call of `name` with that subject comes to."""
        found = (tool for tool in self.tools if tool.name == name and fnmatchcase(subject, tool.when))
        return next(found, None) or ScriptedTool(name)


_WORLD: Mapping[str, _Kind] = {
    "files": dict,
    "tool": object,
    "hook": object,
    "permissions": dict,
    "person": dict,
    "limits": dict,
    "disabled": list,
    "overlap": str,
}
_TOOL: Mapping[str, _Kind] = {
    "name": str,
    "when": str,
    "output": str,
    "exit": int,
    "takes": _NUMBER,
    "cleanup": _NUMBER,
    "raises": str,
    "prints": str,
    "writes": dict,
    "sin": str,
}
_HOOK: Mapping[str, _Kind] = {
    "name": str,
    "when": str,
    "takes": _NUMBER,
    "deny": str,
    "ask": str,
    "raises": str,
    "rewrite": dict,
}
_PERMISSIONS: Mapping[str, _Kind] = {"mode": str, "allow": list, "ask": list, "deny": list}
_PERSON: Mapping[str, _Kind] = {"answers": str, "after": _NUMBER}
_LIMITS: Mapping[str, _Kind] = {
    "max_turns": int,
    "max_seconds": _NUMBER,
    "max_output_tokens": int,
    "continuations": int,
}
_ANSWERS = ("allow", "deny", "none", "absent")
_OVERLAPS = ("declared", "all", "none")
_SINS = ("", "swallow", "group")


def parse_simulation(table: Mapping[str, Any], source: str) -> Simulation:
    """Return the simulation that the `[simulate]` table of a script describes.

    Raises `InputError` that names the place, the key, the value and what was expected.
    """
    where = f"{source}: [simulate]"
    _check(table, _WORLD, where)
    return Simulation(
        files=_texts(table.get("files", {}), f"{source}: [simulate.files]"),
        tools=_each(table, "tool", where, _tool),
        around=_around(table, where),
    )


def _around(table: Mapping[str, Any], where: str) -> Around:
    permissions = _check(table.get("permissions", {}), _PERMISSIONS, f"{where}: `permissions`")
    person = _check(table.get("person", {}), _PERSON, f"{where}: `person`")
    rules = {key: _words(permissions.get(key, []), f"{where}: `permissions.{key}`") for key in ("allow", "ask", "deny")}
    return Around(
        mode=permissions.get("mode", "default"),
        **rules,
        person=Person(_one_of(person, "answers", _ANSWERS, f"{where}: `person`"), float(person.get("after", 0.0))),
        hooks=_each(table, "hook", where, _hook),
        limits=_check(table.get("limits", {}), _LIMITS, f"{where}: `limits`"),
        disabled=_words(table.get("disabled", []), f"{where}: `disabled`"),
        overlap=_one_of(table, "overlap", _OVERLAPS, where),
    )


def _tool(entry: Mapping[str, Any], where: str) -> ScriptedTool:
    _check(entry, _TOOL, where)
    _texts(entry.get("writes", {}), f"{where}: `writes`")
    _one_of(entry, "sin", _SINS, where)
    return ScriptedTool(**entry)


def _hook(entry: Mapping[str, Any], where: str) -> ScriptedHook:
    return ScriptedHook(**_check(entry, _HOOK, where))


def _each(table: Mapping[str, Any], key: str, where: str, read: Callable[[Mapping[str, Any], str], T]) -> tuple[T, ...]:
    entries = table.get(key, [])
    if not isinstance(entries, list):
        raise InputError(f"{where} `{key}` is {entries!r}; write [[simulate.{key}]] tables")
    made = []
    for at, entry in enumerate(entries, 1):
        place = f"{where.removesuffix(' [simulate]')} simulate.{key} {at}"
        if not isinstance(entry, dict) or "name" not in entry:
            raise InputError(f"{place} is {entry!r}; it needs at least a `name`")
        made.append(read(entry, place))
    return tuple(made)


def _check(table: Any, kinds: Mapping[str, _Kind], where: str) -> Mapping[str, Any]:
    """Return `table`; raises `InputError` where it has a key, or a value of a kind, that is not in `kinds`."""
    if not isinstance(table, dict):
        raise InputError(f"{where} is {table!r}; it takes a table with {', '.join(kinds)}")
    for key, value in table.items():
        if key not in kinds:
            raise InputError(f"{where} has `{key}`; it takes {', '.join(kinds)}")
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            raise InputError(f"{where}: `{key}` is {value!r}, which is not {_named(kinds[key])}")
        # Written so that NaN, which is neither, is refused too.
        if isinstance(value, int | float) and key != "exit" and not 0 <= value < float("inf"):
            raise InputError(f"{where}: `{key}` is {value!r}; it must be 0 or more")
    return table


def _one_of(table: Mapping[str, Any], key: str, known: tuple[str, ...], where: str) -> str:
    value = table.get(key, known[0])
    if value not in known:
        raise InputError(f"{where}: `{key}` is {value!r}; it is one of {', '.join(filter(None, known))}")
    return str(value)


def _words(items: Any, where: str) -> tuple[str, ...]:
    if not all(isinstance(item, str) for item in items):
        raise InputError(f"{where} is {items!r}; it takes a list of texts")
    return tuple(items)


def _texts(table: Any, where: str) -> Mapping[str, str]:
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise InputError(f"{where} is {table!r}; it takes paths with their text")
    return table


def _named(wanted: _Kind) -> str:
    words = {str: "text", int: "a whole number", dict: "a table", list: "a list"}
    return "a number" if isinstance(wanted, tuple) else words[wanted]
