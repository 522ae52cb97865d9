"""One line of a session file as JSON. Imports next to nothing: the list of sessions is made of this."""

from __future__ import annotations

import json
from typing import Any

try:
    import orjson
except ImportError:  # the `fast` extra is not installed
    _loads: Any = json.loads
else:
    _loads = orjson.loads

__all__ = ["FORMAT", "load_line"]

FORMAT = "novacode-session"


def load_line(raw: bytes) -> Any:
    """Return the value that `raw` holds, or `None` where it is not JSON.

    The standard library has the second word: it reads half surrogate pairs and very large numbers, orjson does not.
    """
    try:
        return _loads(raw)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
