"""Parameter classes as JSON schemas, and raw arguments as instances of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast

import attrs

from novacode.errors import NovaError
from novacode.tools.parameters import record_of
from novacode.tools.shapes import Problem
from novacode.values.parts import JSON

__all__ = ["Foreign", "InvalidArguments", "Problem", "schema_of", "structure", "text_of"]

T = TypeVar("T")


class InvalidArguments(NovaError):
    """Arguments that do not fit a tool's parameters. `problems` holds every one; the text is for the model."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "One problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{count} with the arguments; nothing was executed.", *(f"- {problem}" for problem in self.problems)]
        super().__init__("\n".join(lines))


@attrs.frozen(eq=False, repr=False)
class Foreign:
    """Parameters that somebody else has declared, in the place of an attrs class.

    `problems` says what is wrong with arguments. What a tool gets is the arguments themselves.
    """

    schema: Mapping[str, JSON]
    problems: Callable[[Mapping[str, JSON]], Sequence[Problem]]


@cache
def schema_of(cls: Any) -> Mapping[str, JSON]:
    """Return the JSON schema of the attrs class `cls`; made when first asked for. Not to be changed by the caller.

    The text in `Annotated[…, "text"]` becomes a description, limits come from attrs validators. Raises `TypeError`
    for a class whose fields have no form in JSON.
    """
    if isinstance(cls, Foreign):
        return cls.schema
    return record_of(cls).schema()


def structure(cls: type[T], arguments: Mapping[str, JSON]) -> T:
    """Return `arguments` as a `cls`, strictly. Raises `InvalidArguments` with every problem there is."""
    problems: list[Problem] = []
    declared: Any = cls
    if isinstance(declared, Foreign):
        problems += declared.problems(arguments)
        if problems:
            raise InvalidArguments(problems)
        return cast("T", arguments)
    made: Any = record_of(cast("Any", cls)).check(arguments, "", problems)
    if problems:
        raise InvalidArguments(problems)
    return cast("T", made)


def text_of(arguments: Mapping[str, JSON], name: str) -> str | None:
    """Return the argument `name` where it is a string, for readers of raw arguments that must not fail."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None
