"""Calls as hooks see them: with the tool names and arguments that scripts in the wild expect.

There is one rule, whatever form a hook was written down in: `tool_name` and `tool_input` are the familiar ones
(`Bash {command}`, `Edit {file_path, old_string, new_string}`), with paths as permission judges them: absolute, links
and `..` resolved. What has no familiar form is shown as it is. A hook's `updatedInput` is read back by the same table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from novacode.values.parts import JSON, ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["familiar_input", "familiar_name", "own_arguments", "subjects"]


@attrs.frozen
class _Familiar:
    """How others call a tool and its parameters. `paths` and `milliseconds` are parameters that change their form."""

    name: str
    parameters: Mapping[str, str] = attrs.field(factory=dict)
    paths: frozenset[str] = frozenset()
    milliseconds: frozenset[str] = frozenset()


_PATH = frozenset({"path"})
_TABLE: Mapping[str, _Familiar] = {
    "shell": _Familiar("Bash", milliseconds=frozenset({"timeout"})),
    "read": _Familiar("Read", {"path": "file_path"}, _PATH),
    "write": _Familiar("Write", {"path": "file_path"}, _PATH),
    "edit": _Familiar("Edit", {"path": "file_path", "old": "old_string", "new": "new_string"}, _PATH),
    "glob": _Familiar("Glob", paths=_PATH),
    "grep": _Familiar("Grep", {"ignore_case": "-i", "context": "-C", "limit": "head_limit"}, _PATH),
    "fetch": _Familiar("WebFetch"),
}


def familiar_name(name: str) -> str:
    """Return what other agents call our tool `name`; `name` itself where there is no such word."""
    return _TABLE[name].name if name in _TABLE else name


def subjects(name: str) -> tuple[str, ...]:
    """Return the names that matchers are held against for our tool `name`."""
    return tuple(dict.fromkeys((familiar_name(name), name)))


def familiar_input(call: ToolCall, workspace: Workspace) -> dict[str, JSON]:
    """Return the arguments of `call` as other agents would write them."""
    form = _TABLE.get(call.name, _Familiar(call.name))
    return {form.parameters.get(key, key): _shown(form, key, value, workspace) for key, value in call.arguments.items()}


def own_arguments(call: ToolCall, workspace: Workspace, updated: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return `updated`, which a hook wants instead of the input of `call`, as arguments of our own.

    It is the whole of the new input: what it leaves out is left out. A value the hook has not changed is exactly the
    one the model gave. Raises `ValueError` where one parameter is given under two names.
    """
    form = _TABLE.get(call.name, _Familiar(call.name))
    own_names = {theirs: ours for ours, theirs in form.parameters.items()}
    made: dict[str, JSON] = {}
    for key, value in updated.items():
        ours = own_names.get(key, key)
        if ours in made:
            raise ValueError(f"`updatedInput` gives `{ours}` twice, also as `{form.parameters[ours]}`")
        made[ours] = _unshown(form, ours, value, call, workspace)
    return made


def _shown(form: _Familiar, key: str, value: JSON, workspace: Workspace) -> JSON:
    if key in form.paths and isinstance(value, str) and value:
        return str(workspace.resolve(value))
    if key in form.milliseconds and _is_number(value):
        return round(value * 1000)
    return value


def _unshown(form: _Familiar, key: str, value: JSON, call: ToolCall, workspace: Workspace) -> JSON:
    if key in call.arguments and _same(value, _shown(form, key, call.arguments[key], workspace)):
        return call.arguments[key]
    if key in form.milliseconds and _is_number(value):
        return value / 1000
    return value


def _same(one: JSON, other: JSON) -> bool:
    """Whether two values are the same JSON: `1` and `true` are not, though Python says so."""
    return type(one) is type(other) and bool(one == other)


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
