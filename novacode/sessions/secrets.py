"""Values that must not get into a session file: each is written as the name of the variable it came from.

Only what the journal writes is changed. The run under way goes on with the true values; a session that is resumed
has the names.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from novacode.sessions.record import LINE_ENDS
from novacode.values.events import Stamped

__all__ = ["SHORTEST", "Secrets"]

SHORTEST = 8
"""Values shorter than this are not hidden: they would be found everywhere, and are no secrets."""


class Secrets:
    """The values of `names` in `environ`; a name that is not set, or whose value is short, hides nothing."""

    def __init__(self, names: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> None:
        found = {name: (environ or {}).get(name, "") for name in names}
        long_enough = [(value, f"[secret {name}]") for name, value in sorted(found.items()) if len(value) >= SHORTEST]
        # The longest first: one value may be the beginning of another.
        self._words = sorted(long_enough, key=lambda pair: -len(pair[0]))
        self._traces = tuple({trace for value, _ in self._words for trace in _traces(value)})

    def hide(self, stamped: Stamped, encode: Callable[[Stamped], bytes]) -> bytes:
        """Return `stamped` as `encode` writes it, without any of the values.

        The line is searched first, which is quick. Only where something is found the event is looked through: in the
        line itself a value could be a part of the format.
        """
        line = encode(stamped)
        if not any(trace in line for trace in self._traces):
            return line
        return encode(attrs.evolve(stamped, event=self._without(stamped.event)))

    def text(self, text: str) -> str:
        """Return `text` with every value replaced."""
        for value, word in self._words:
            text = text.replace(value, word)
        return text

    def _without(self, value: Any) -> Any:
        """Return `value` with every text in it replaced, however deep."""
        match value:
            case enum.Enum():
                return value
            case str():
                return self.text(value)
            case Mapping():
                return {self._without(key): self._without(item) for key, item in value.items()}
            case tuple() | list():
                return type(value)(self._without(item) for item in value)
            case _ if attrs.has(type(value)):
                changed = {name: self._without(getattr(value, name)) for name in _fields(value)}
                return attrs.evolve(value, **changed)
            case _:
                return value


def _fields(value: Any) -> list[str]:
    return [field.name for field in attrs.fields(type(value)) if field.init]


def _traces(value: str) -> set[bytes]:
    """Return the forms a value can have inside a line: JSON with and without escapes for what is not ASCII."""
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    for raw, escaped in LINE_ENDS.items():
        plain = plain.replace(raw, escaped)
    return {json.dumps(value)[1:-1].encode(), plain.encode("utf-8", "surrogatepass")}
