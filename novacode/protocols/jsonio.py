"""JSON as the wire has it: read forgivingly where meaning is not at stake, written always the same.

Messages of a stream are read with orjson where it is installed. It reads integers over 64 bits as floats, so what a
tool will run with is read by `load_exact`, and a request is always written by the standard library: its bytes must
not depend on what is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite

from novacode.values.parts import JSON

try:
    import orjson
except ImportError:  # an optional speed-up
    _fast: Callable[[bytes], JSON] | None = None
else:
    _fast = orjson.loads

__all__ = ["dump", "dump_text", "load", "load_exact", "mend"]

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MEANINGLESS: Callable[[str], None] = lambda _: None  # noqa: E731


def load(data: bytes) -> JSON:
    """Return the value of one message, which is UTF-8 whatever the server says.

    What no JSON text may hold but some servers send is made harmless: bytes that are not UTF-8 and half surrogates
    become U+FFFD, `NaN` and `Infinity` become null. Raises `ValueError` or `RecursionError` for everything else.
    """
    if _fast is None:
        return load_exact(data)
    try:
        return _fast(data)
    except ValueError:
        return load_exact(data)


def load_exact(data: bytes) -> JSON:
    """Do the same without losing digits of large integers."""
    value = json.loads(str(data, "utf-8", "replace"), parse_constant=_MEANINGLESS)
    return mend(value) if _SURROGATE_ESCAPE.search(data) else value


def mend(value: JSON) -> JSON:
    """Return `value` with half surrogates as U+FFFD and numbers that are not finite as null."""
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {mend(str(key)): mend(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mend(item) for item in value]
    return value


def dump_text(value: JSON) -> str:
    """Return `value` as compact JSON text: the same text for the same value, everywhere."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(mend(value), ensure_ascii=False, separators=(",", ":"))


def dump(value: JSON) -> bytes:
    """Return `value` as compact JSON in UTF-8. Half surrogates, which UTF-8 has no bytes for, become U+FFFD."""
    text = dump_text(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("�", text).encode()
