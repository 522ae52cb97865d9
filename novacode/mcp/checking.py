"""Validators of foreign schemas. Imported where there is a server: it needs the package jsonschema, of the extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry

from novacode.values.parts import JSON

__all__ = ["validator"]


def validator(schema: Mapping[str, JSON]) -> Any:
    """Return a validator; raises for what is no schema. An empty registry: no schema is ever fetched."""
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, registry=Registry())
