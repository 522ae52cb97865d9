"""Limits on a value: how attrs validators state them, how a JSON schema does, and in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from novacode.tools.shapes import Problems, Shape, wrong
from novacode.values.parts import JSON

__all__ = ["Bounded", "Bounds"]


class Bounds(NamedTuple):
    """Limits on a value, as attrs validators state them."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    shortest: int | None = None
    longest: int | None = None

    def broken_by(self, value: Any) -> bool:
        """Whether `value` is outside."""
        if isinstance(value, int | float):
            return (
                (self.ge is not None and value < self.ge)
                or (self.gt is not None and value <= self.gt)
                or (self.le is not None and value > self.le)
                or (self.lt is not None and value >= self.lt)
            )
        if isinstance(value, str | list | tuple | dict):
            return len(value) < (self.shortest or 0) or (self.longest is not None and len(value) > self.longest)
        return False


_LENGTH_NAMES = {"string": "Length", "array": "Items", "object": "Properties"}


class Bounded(NamedTuple):
    """A shape within bounds."""

    shape: Shape
    bounds: Bounds

    @property
    def words(self) -> str:
        """It in words."""
        limits = self.bounds
        said = [
            f"{word} {limit:g}"
            for word, limit in (
                ("at least", limits.ge),
                ("more than", limits.gt),
                ("at most", limits.le),
                ("less than", limits.lt),
            )
            if limit is not None
        ]
        if limits.shortest:
            said.append("not empty" if limits.shortest == 1 else f"{limits.shortest} or more long")
        if limits.longest is not None:
            said.append(f"{limits.longest} or less long")
        return f"{self.shape.words}, {' and '.join(said)}"

    def schema(self) -> dict[str, JSON]:
        """It as a JSON schema."""
        made = self.shape.schema()
        limits = self.bounds
        length = _LENGTH_NAMES.get(made.get("type", ""), "Length")
        keywords = {
            "minimum": limits.ge,
            "exclusiveMinimum": limits.gt,
            "maximum": limits.le,
            "exclusiveMaximum": limits.lt,
            f"min{length}": limits.shortest,
            f"max{length}": limits.longest,
        }
        return made | {word: limit for word, limit in keywords.items() if limit is not None}

    def check(self, value: JSON, path: str, problems: Problems) -> Any:
        """See `Shape.check`."""
        before = len(problems)
        checked = self.shape.check(value, path, problems)
        if len(problems) == before and self.bounds.broken_by(checked):
            problems.append(wrong(value, path, self))
        return checked
