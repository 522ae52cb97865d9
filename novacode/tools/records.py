"""Attrs classes as parameters: an object with known fields, and no others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from novacode.tools.shapes import Problem, Problems, Shape, packed, wrong
from novacode.values.parts import JSON

__all__ = ["Field", "Record"]


class Field(NamedTuple):
    """One parameter. `default` is what the schema shows of it; `required` is whether there is none."""

    name: str
    keyword: str
    shape: Shape
    description: str
    required: bool
    default: JSON = None

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        made = self.shape.schema()
        if self.description:
            made["description"] = self.description
        if self.default is not None:
            made["default"] = self.default
        return made


class Record(NamedTuple):
    """An object with the fields of an attrs class, and no others."""

    cls: type
    fields: tuple[Field, ...]

    @property
    def words(self) -> str:
        """It in words."""
        return f"an object with {', '.join(f'`{field.name}`' for field in self.fields) or 'no fields'}"

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        return {
            "type": "object",
            "properties": {field.name: field.schema() for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        if not isinstance(value, Mapping):
            problems.append(wrong(value, path, self, packed(value, "{", "the object")))
            return None
        before = len(problems)
        self._refuse_unknown(value, path, problems)
        given: dict[str, Any] = {}
        for field in self.fields:
            if field.name not in value:
                if field.required:
                    about = f": {field.description}" if field.description else ""
                    problems.append(
                        Problem(_below(path, field.name), "is missing", f"it must be {field.shape.words}{about}")
                    )
                continue
            self._check_field(field, value[field.name], path, given, problems)
        return self._built(given, path, problems) if len(problems) == before else None

    def _check_field(self, field: Field, value: JSON, path: str, given: dict[str, Any], problems: Problems) -> None:
        found: Problems = []
        checked = field.shape.check(value, _below(path, field.name), found)
        if found and value is None and not field.required:
            return  # null where there is a default: not given
        problems.extend(found)
        given[field.keyword] = checked

    def _refuse_unknown(self, value: Mapping[str, JSON], path: str, problems: Problems) -> None:
        names = [field.name for field in self.fields]
        for name in value:
            if name not in names:
                near = _similar(str(name), names)
                hint = f"did you mean `{near}`? " if near else ""
                listed = ", ".join(f"`{known}`" for known in names) or "none"
                problems.append(Problem(_below(path, str(name)), "is not a parameter", f"{hint}There are: {listed}"))

    def _built(self, given: dict[str, Any], path: str, problems: Problems) -> Any:
        try:
            return self.cls(**given)
        except (ValueError, TypeError) as refused:  # a validator of the class's own, beyond the bounds above
            text = refused.args[0] if refused.args else type(refused).__name__
            problems.append(Problem(path or "arguments", "cannot be used", str(text)))
            return None


def _similar(name: str, names: Sequence[str]) -> str | None:
    """Return which of `names` was probably meant: `file_path` is `path`, `old_string` is `old`."""
    words = set(re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
    for known in names:
        if known in words or known.replace("_", "") == name.replace("_", "").lower():
            return known
    close = difflib.get_close_matches(name, names, 1)
    return close[0] if close else None


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
