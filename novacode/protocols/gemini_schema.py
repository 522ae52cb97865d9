"""JSON schema to the dialect Gemini takes for parameters: a part of OpenAPI 3.0, anything else is refused."""

from __future__ import annotations

from collections.abc import Mapping

from novacode.values.parts import JSON

__all__ = ["gemini_schema"]

_KEPT = frozenset(
    {
        "description",
        "title",
        "default",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
        "pattern",
        "required",
        "propertyOrdering",
    }
)
_FORMATS: Mapping[str, frozenset[str]] = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}
_DEEPEST = 24  # a schema that refers to itself has to end somewhere


def gemini_schema(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return `schema` in Gemini's dialect. References are written out; what cannot be said is left out."""
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    return _convert(schema, definitions, 0)


def _convert(schema: JSON, definitions: Mapping[str, JSON], depth: int) -> dict[str, JSON]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {"type": "string"}
    schema = _resolved(schema, definitions)
    made: dict[str, JSON] = {key: value for key, value in schema.items() if key in _KEPT}
    choices = schema.get("anyOf") or schema.get("oneOf")
    kinds = schema.get("type")
    if isinstance(kinds, list):
        choices = choices or [{**schema, "type": kind} for kind in kinds]
        kinds = None
    if choices:
        return _choose(made, choices, definitions, depth)
    made["type"] = kinds = kinds or _guess(schema)
    if schema.get("format") in _FORMATS.get(kinds, ()):
        made["format"] = schema["format"]
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values:
        made["type"] = "string"  # only strings can be listed
        made["enum"] = [str(value) for value in values if value is not None]
    if kinds == "array":
        made["items"] = _convert(schema.get("items") or {}, definitions, depth + 1)
    if kinds == "object" and schema.get("properties"):
        made["properties"] = {
            key: _convert(value, definitions, depth + 1) for key, value in schema["properties"].items()
        }
        made["required"] = [key for key in schema.get("required") or () if key in made["properties"]]
    if not made.get("required"):
        made.pop("required", None)
    return made


def _choose(made: dict[str, JSON], choices: JSON, definitions: Mapping[str, JSON], depth: int) -> dict[str, JSON]:
    """Say alternatives; one that is null becomes `nullable`."""
    real = [choice for choice in choices if not (isinstance(choice, Mapping) and choice.get("type") == "null")]
    made.pop("required", None)
    if len(real) < len(choices):
        made["nullable"] = True
    converted = [_convert(choice, definitions, depth + 1) for choice in real]
    if len(converted) == 1:
        return converted[0] | made
    return made | ({"anyOf": converted} if converted else {"type": "string"})


def _resolved(schema: Mapping[str, JSON], definitions: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return `schema` with what it refers to in place; several steps of reference are followed, circles end."""
    for _ in range(_DEEPEST):
        target = schema.get("$ref")
        found = definitions.get(target.rpartition("/")[2]) if isinstance(target, str) else None
        if isinstance(found, Mapping):
            schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
        whole = schema.get("allOf")
        if whole:
            schema = {key: value for key, value in schema.items() if key != "allOf"}
            for part in whole:
                schema = {**part, **schema}
        if "$ref" not in schema and "allOf" not in schema:
            break
        if found is None and not whole:
            break
    return schema


def _guess(schema: Mapping[str, JSON]) -> str:
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"
