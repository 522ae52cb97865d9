"""Schemas of foreign tools, mended as far as every provider takes them; and arguments held to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from novacode.tools.schema import Foreign, Problem
from novacode.values.parts import JSON

__all__ = ["Unusable", "mended", "parameters"]

_DEEPEST = 24
_MOST_NODES = 5_000
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KEYWORDS_DROPPED = frozenset({"$schema", "$id", "$anchor", "$defs", "definitions", "$comment"})
_CHOICES = ("anyOf", "oneOf", "allOf")
_MOST_PROBLEMS = 20


class Unusable(ValueError):
    """A schema that cannot be mended; the text says why."""


def mended(schema: JSON) -> tuple[dict[str, JSON], str]:
    """Return `schema` as every provider takes it, and what had to be changed in it, empty where nothing that matters.

    References are written out: a circle ends in "anything". What is changed makes the schema wider, never narrower, so
    no call that the server would take is refused for it. Raises `Unusable`.
    """
    if schema is None:
        return _nothing(), "it has no input schema, so it is offered without parameters"
    if not isinstance(schema, Mapping):
        raise Unusable(f"its input schema is {schema!r:.80} and not an object")
    made = _Mending(schema).node(schema, 0)
    note = ""
    if choices := [part for key in _CHOICES for part in made.pop(key, ())]:
        made, note = _merged(made, choices), "the alternatives at the top of its schema are offered as one object"
    kind = made.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise Unusable(f"its input schema is of type {kind!r}; the parameters of a tool are an object")
    made["type"] = "object"
    properties = made.setdefault("properties", {})
    if odd := [name for name in properties if not _PROPERTY.fullmatch(name)]:
        raise Unusable(f"its parameter {odd[0]!r} has a name that providers refuse")
    if "required" in made:
        made["required"] = [name for name in made["required"] if name in properties]
    return made, note


def parameters(schema: Mapping[str, JSON], checker: Callable[[Mapping[str, JSON]], Any] | None) -> Foreign:
    """Return `schema` as the parameters of a tool; `checker` makes a validator of it, without one nothing is checked.

    Raises `Unusable` for a schema that is none.
    """
    if checker is None:
        return Foreign(schema, lambda _arguments: ())
    try:
        validator = checker(schema)
    except Exception as error:
        raise Unusable(f"its input schema is not valid: {str(error).splitlines()[0]:.200}") from error
    return Foreign(schema, lambda arguments: _problems(validator, arguments))


def _problems(validator: Any, arguments: Mapping[str, JSON]) -> Sequence[Problem]:
    found: list[Problem] = []
    for error in validator.iter_errors(dict(arguments)):
        path = ".".join(str(step) for step in error.absolute_path) or "arguments"
        found.append(Problem(path, "does not fit", f"{error.message:.300}"))
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def _nothing() -> dict[str, JSON]:
    return {"type": "object", "properties": {}}


class _Mending:
    """Walks one schema, bounded in depth and size."""

    def __init__(self, root: Mapping[str, JSON]) -> None:
        self._root = root
        self._left = _MOST_NODES

    def node(self, schema: JSON, depth: int) -> dict[str, JSON]:
        self._left -= 1
        if self._left < 0:
            raise Unusable(f"its input schema has more than {_MOST_NODES} parts")
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return {}  # `true`, or a circle: anything
        schema = self._resolved(schema)
        made = {key: value for key, value in schema.items() if key not in _KEYWORDS_DROPPED}
        if isinstance(properties := made.get("properties"), Mapping):
            made["properties"] = {str(name): self.node(one, depth + 1) for name, one in properties.items()}
        else:
            made.pop("properties", None)
        for key in _CHOICES:
            if isinstance(choices := made.pop(key, None), list) and choices:
                made[key] = [self.node(one, depth + 1) for one in choices]
        if isinstance(more := made.get("additionalProperties"), Mapping):
            made["additionalProperties"] = self.node(more, depth + 1)
        if "items" in made or made.get("type") == "array":
            made["items"] = self.node(made.get("items"), depth + 1)
        if "required" in made:
            names = made["required"] if isinstance(made["required"], list) else []
            made["required"] = [name for name in names if isinstance(name, str)]
        if made.get("enum") in ([], None):
            made.pop("enum", None)
        return made

    def _resolved(self, schema: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Return `schema` with what it refers to in place; what is not in the same schema is never fetched."""
        for _ in range(_DEEPEST):
            if not isinstance(target := schema.get("$ref"), str):
                return schema
            found = self._find(target)
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**found, **rest}
        return {key: value for key, value in schema.items() if key != "$ref"}

    def _find(self, target: str) -> Mapping[str, JSON]:
        here: JSON = self._root
        for step in target.removeprefix("#").split("/")[1:] if target.startswith("#/") else ("?",):
            here = here.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
        return here if isinstance(here, Mapping) else {}


def _merged(made: dict[str, JSON], choices: Sequence[dict[str, JSON]]) -> dict[str, JSON]:
    """Return one object that takes whatever one of `choices` takes: all properties, none of them required."""
    if any(choice.get("type", "object") != "object" for choice in choices):
        raise Unusable("one of the alternatives at the top of its schema is not an object")
    properties: dict[str, JSON] = dict(made.get("properties", {}))
    for choice in choices:
        for name, about in choice.get("properties", {}).items():
            known = properties.setdefault(name, about)
            if known != about:
                properties[name] = {}
    made.pop("additionalProperties", None)
    return {**made, "type": "object", "properties": properties}
