"""The type annotations and validators of a parameter class, read once."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union, cast

import attrs
from attrs import validators

from novacode.tools.bounds import Bounded, Bounds
from novacode.tools.records import Field, Record
from novacode.tools.shapes import SCALARS, Anything, Array, Choice, OneOf, Scalar, Shape, Table

__all__ = ["record_of"]


@cache
def record_of(cls: Any) -> Record:
    """Return the compiled shape of the attrs class `cls`. A class that contains itself is not supported.

    Raises `TypeError` for a field of a type that JSON has no form for.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    return Record(cls, tuple(_field(attribute, hints[attribute.name]) for attribute in attrs.fields(cls)))


def _field(attribute: attrs.Attribute[Any], hint: Any) -> Field:
    description, inner = "", hint
    if typing.get_origin(hint) is Annotated:
        inner, *notes = typing.get_args(hint)
        description = " ".join(note for note in notes if isinstance(note, str))
    shape = _shape(inner)
    bounds = _bounds(attribute.validator)
    if bounds != Bounds():
        shape = Bounded(shape, bounds)
    default = attribute.default
    return Field(
        name=attribute.name,
        keyword=attribute.alias or attribute.name,
        shape=shape,
        description=description,
        required=default is attrs.NOTHING,
        default=default if isinstance(default, str | int | float) else None,
    )


def _shape(hint: Any) -> Shape:
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _shape(parameters[0])
    if hint in SCALARS:
        return Scalar(hint)
    if hint is Any:
        return Anything()
    if origin is Literal:
        return Choice(tuple((value, value) for value in parameters))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Choice(tuple((member.value, member) for member in hint))
    if origin in (Union, types.UnionType):
        return OneOf(tuple(_shape(option) for option in parameters))
    if isinstance(hint, type) and attrs.has(hint):
        return record_of(hint)
    return _container(hint, origin, parameters)


def _container(hint: Any, origin: Any, parameters: tuple[Any, ...]) -> Shape:
    if origin in (list, Sequence):
        return Array(_shape(parameters[0]), list)
    if origin is tuple and len(parameters) == 2 and parameters[1] is Ellipsis:
        return Array(_shape(parameters[0]), tuple)
    if origin in (dict, Mapping) and parameters[0] is str:
        return Table(_shape(parameters[1]))
    raise TypeError(f"{hint!r} cannot be the type of a tool's parameter; use str, int, float, bool, Literal, an Enum, "
                    "list[…], tuple[…, ...], dict[str, …], an attrs class, or a union of these")  # fmt: skip


# attrs keeps the classes of its validators to itself; what they hold is public in their `repr` and stable.
_NUMBER: type = type(validators.ge(0))
_SHORTEST: type = type(validators.min_len(0))
_LONGEST: type = type(validators.max_len(0))
_AND: type = type(validators.and_(validators.ge(0)))
_OPTIONAL: type = type(validators.optional(validators.ge(0)))
_SIGNS = {">=": "ge", ">": "gt", "<=": "le", "<": "lt"}


def _bounds(validator: Any) -> Bounds:
    if isinstance(validator, _AND):
        made = Bounds()
        for one in cast("Any", validator)._validators:
            made = made._replace(**{name: limit for name, limit in _bounds(one)._asdict().items() if limit is not None})
        return made
    if isinstance(validator, _OPTIONAL):
        return _bounds(cast("Any", validator).validator)
    if isinstance(validator, _NUMBER):
        return Bounds()._replace(**{_SIGNS[cast("Any", validator).compare_op]: cast("Any", validator).bound})
    if isinstance(validator, _SHORTEST):
        return Bounds(shortest=cast("Any", validator).min_length)
    if isinstance(validator, _LONGEST):
        return Bounds(longest=cast("Any", validator).max_length)
    return Bounds()
