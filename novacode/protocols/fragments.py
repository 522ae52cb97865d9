"""What the encoders of all protocols share.

History items are immutable: an item is encoded once and its bytes are kept (`growing`). That keeps turn 1,000 as cheap
as turn 1 and the prefix byte-stable for prompt caches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

from novacode.protocols.jsonio import dump
from novacode.values.parts import JSON, BrokenCall, Image, Text, ToolCall
from novacode.values.request import ModelRequest, ToolOffer
from novacode.values.results import Outcome, ToolResult

__all__ = [
    "HEADERS",
    "BodyHead",
    "arguments_of",
    "fit_id",
    "fit_name",
    "join",
    "result_parts",
    "result_text",
]

HEADERS = {"content-type": "application/json", "accept": "text/event-stream"}

_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_ALNUM = re.compile(r"[^a-zA-Z0-9]")


class BodyHead:
    """Everything of a request before its messages, kept while it stays the same."""

    def __init__(self, encode: Callable[[ModelRequest], bytes]) -> None:
        self._encode = encode
        self._last: tuple[str, str, tuple[ToolOffer, ...], int | None] | None = None
        self._bytes = b""

    def of(self, request: ModelRequest) -> bytes:
        """Return the bytes for `request`."""
        key = (request.model, request.system, request.tools, request.max_output_tokens)
        if key != self._last:
            self._last, self._bytes = key, self._encode(request)
        return self._bytes


def join(values: Iterable[JSON]) -> bytes:
    """Return `values` as JSON, comma between, without brackets."""
    return b",".join(map(dump, values))


def arguments_of(call: ToolCall | BrokenCall) -> JSON:
    """Return what a request shows as a call's arguments: always an object, also where the model wrote none."""
    return call.arguments if isinstance(call, ToolCall) else {"arguments_that_were_not_json": call.raw}


def fit_name(name: str) -> str:
    """Return a tool name every provider accepts. Models invent names; one that is refused would end the session."""
    return _NOT_PLAIN.sub("_", name)[:64] or "unnamed"


def fit_id(identity: str, length: int = 64, *, plain: bool = False) -> str:
    """Return `identity` if a provider accepts it, else one made from it: always the same, and never that of another.

    Ids come from whichever provider issued the call; another may allow less. `plain` means letters and digits only.
    """
    bad = _NOT_ALNUM if plain else _NOT_PLAIN
    if identity and len(identity) <= length and not bad.search(identity):
        return identity
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    if length < 32:
        return digest[:length]
    return f"{bad.sub('0' if plain else '_', identity)[: length - 17]}{'0' if plain else '_'}{digest[:16]}"


def result_parts(result: ToolResult) -> tuple[Text | Image, ...]:
    """Return what of a result is sent: never nothing, no blank texts, and no picture in a failure."""
    kept: list[Text | Image] = []
    for part in result.content:
        if isinstance(part, Image):
            kept.append(part if result.outcome is Outcome.OK else Text(f"[{part.media_type} not shown]"))
        elif part.text and not part.text.isspace():
            kept.append(part)
    return tuple(kept) or (Text("(no output)"),)


def result_text(result: ToolResult, picture: str = "not shown") -> str:
    """Return a result as one text, for protocols without pictures in results; `picture` stands for one."""
    parts = result_parts(result)
    return "".join(part.text if isinstance(part, Text) else f"[{part.media_type}: {picture}]" for part in parts)
