"""JSON of somebody else, held to bounds in size, depth and number of values before anything is built from it. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs

from novacode.values.parts import JSON

__all__ = ["BOUNDS", "BadMessage", "Bounds", "parse_object", "shown"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},]', re.DOTALL)
"""A text, whole or up to the end, or what opens, closes and separates. Linear for any input."""


@attrs.frozen
class Bounds:
    """How big one message of a client may be: in bytes, in levels of nesting, in values."""

    size: int = 1 << 20
    depth: int = 16
    values: int = 2000


BOUNDS = Bounds()


class BadMessage(Exception):
    """A message that cannot be used. `fatal`: the connection it came on should be closed."""

    def __init__(self, code: str, text: str, *, ref: str = "", fatal: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.ref = ref
        self.fatal = fatal

    def reply(self) -> dict[str, JSON]:
        """Return the `error` to send."""
        return {"type": "error", "code": self.code, "text": self.text, "ref": self.ref, "fatal": self.fatal}


def parse_object(text: str | bytes, bounds: Bounds = BOUNDS) -> dict[str, JSON]:
    """Return the JSON object that `text` is. Raises `BadMessage`; nothing deep or large is built before."""
    if len(text) > bounds.size or (isinstance(text, str) and len(text.encode("utf-8", "replace")) > bounds.size):
        raise BadMessage("too_big", f"a message has more than {bounds.size} bytes", fatal=True)
    try:
        plain = text if isinstance(text, str) else text.decode()
        _measure(plain, bounds)
        data = json.loads(plain, parse_constant=_no_number)
    except ValueError as error:
        raise BadMessage("bad_message", f"this is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadMessage("bad_message", f"a message is one JSON object, and not {shown(data)}")
    return data


def _measure(text: str, bounds: Bounds) -> None:
    """Raise `BadMessage` where `text` is nested too deep or has too many values; stops reading there."""
    depth = values = 0
    for found in _TOKEN.finditer(text):
        match found[0][0]:
            case "[" | "{":
                depth += 1
                values += 1
            case "]" | "}":
                depth -= 1
            case ",":
                values += 1
            case _:
                continue
        if depth > bounds.depth:
            raise BadMessage("too_big", f"a message is nested deeper than {bounds.depth} levels", fatal=True)
        if values > bounds.values:
            raise BadMessage("too_big", f"a message has more than {bounds.values} values", fatal=True)


def shown(value: JSON) -> str:
    """Return `value` for people, shortened."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
