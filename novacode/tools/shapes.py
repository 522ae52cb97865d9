"""What a parameter may hold: one compiled reading of a type, used for its JSON schema and for the check of a value.

Because both come from the same object, what the model is told and what it is held to cannot differ. The check is
strict: a value is never turned into another type. Three readings are deliberate. `3.0` is an integer, as it is in JSON
schema. `null` for a field that has a default means "not given": models that were trained to fill in every field send
it. A number that is not finite is refused: JSON has none.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from novacode.values.parts import JSON

__all__ = [
    "SCALARS",
    "Anything",
    "Array",
    "Choice",
    "OneOf",
    "Problem",
    "Problems",
    "Scalar",
    "Shape",
    "Table",
    "packed",
    "wrong",
]

_SHOWN = 80  # characters of a wrong value that a message shows
_WHOLE = 2**53  # beyond this a float does not say which integer it means


class Problem(NamedTuple):
    """One thing that is wrong with arguments: where, what is there, and what was expected instead."""

    path: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"`{self.path}` {self.found}; {self.expected}"


Problems: TypeAlias = list[Problem]


class Shape(Protocol):
    """What a value may be."""

    @property
    def words(self) -> str:
        """It in words, to follow "it must be"."""
        ...

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        ...

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """Return `value` as the type says; or add to `problems` and return anything."""
        ...


def shown(value: JSON) -> str:
    """Return `value` as it would be written in JSON, cut to a length for messages."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def wrong(value: JSON, path: str, shape: Shape, hint: str = "") -> Problem:
    """Return the problem that `value` is not what `shape` wants."""
    return Problem(path, f"is {shown(value)}", f"it must be {shape.words}{hint}")


SCALARS: Mapping[type, tuple[str, str]] = {
    str: ("string", "a string"),
    bool: ("boolean", "true or false"),
    int: ("integer", "an integer"),
    float: ("number", "a number"),
    type(None): ("null", "null"),
}


class Scalar(NamedTuple):
    """A string, number, boolean or null."""

    kind: type

    @property
    def words(self) -> str:
        """It in words."""
        return SCALARS[self.kind][1]

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        return {"type": SCALARS[self.kind][0]}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        if type(value) is self.kind and (type(value) is not float or math.isfinite(value)):
            return value
        if self.kind is int and type(value) is float and value.is_integer() and abs(value) < _WHOLE:
            return int(value)
        if self.kind is float and type(value) is int and abs(value) < _WHOLE:
            return float(value)
        quoted = self.kind in (int, float, bool) and isinstance(value, str)
        problems.append(wrong(value, path, self, ", without quotes" if quoted else ""))
        return None


class Choice(NamedTuple):
    """One of a few values; `members` are the pairs of what is written and what it stands for."""

    members: tuple[tuple[JSON, Any], ...]

    @property
    def words(self) -> str:
        """It in words."""
        written = [shown(value) for value, _ in self.members]
        return written[0] if len(written) == 1 else f"one of {', '.join(written)}"

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        values = [value for value, _ in self.members]
        return ({"type": "string"} if all(isinstance(value, str) for value in values) else {}) | {"enum": values}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        for written, meant in self.members:
            if type(written) is type(value) and written == value:
                return meant
        texts = [written for written, _ in self.members if isinstance(written, str)]
        near = difflib.get_close_matches(value, texts, 1) if isinstance(value, str) else []
        problems.append(wrong(value, path, self, f"; did you mean {shown(near[0])}?" if near else ""))
        return None


class Array(NamedTuple):
    """A list of `item`s, made into a tuple or a list."""

    item: Shape
    make: type

    @property
    def words(self) -> str:
        """It in words."""
        return "a list"

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        return {"type": "array", "items": self.item.schema()}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        if not isinstance(value, list | tuple):
            problems.append(wrong(value, path, self, packed(value, "[", "the list")))
            return None
        return self.make(self.item.check(item, f"{path}[{at}]", problems) for at, item in enumerate(value))


class Table(NamedTuple):
    """An object with any keys."""

    item: Shape

    @property
    def words(self) -> str:
        """It in words."""
        return "an object"

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        return {"type": "object", "additionalProperties": self.item.schema()}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        if not isinstance(value, Mapping):
            problems.append(wrong(value, path, self, packed(value, "{", "the object")))
            return None
        return {str(key): self.item.check(item, f"{path}.{key}", problems) for key, item in value.items()}


class Anything:
    """Any JSON value."""

    words = "any JSON value"

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        return {}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        return value


class OneOf(NamedTuple):
    """Any of several shapes; the first that fits."""

    options: tuple[Shape, ...]

    @property
    def words(self) -> str:
        """It in words."""
        return " or ".join(option.words for option in self.options)

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        return {"anyOf": [option.schema() for option in self.options]}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        closest: Problems = []
        for option in self.options:
            found: Problems = []
            checked = option.check(value, path, found)
            if not found:
                return checked
            if all(problem.path != path for problem in found):  # the right kind of thing, wrong inside
                closest = closest or found
        problems.extend(closest or [wrong(value, path, self)])
        return None


def packed(value: JSON, opens: str, what: str) -> str:
    """Return a hint where JSON was sent as text inside a string, as models do."""
    return f": send {what} itself, not its JSON as a string" if str(value).lstrip().startswith(opens) else ""
