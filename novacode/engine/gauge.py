"""How many tokens the next request will be: what the provider counted last, and an estimate of what is new since."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import assert_never

from novacode.values.history import Exchange
from novacode.values.parts import (
    JSON,
    AssistantPart,
    BrokenCall,
    Image,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    User,
)
from novacode.values.request import ModelRequest, Usage
from novacode.values.results import ToolResult

__all__ = ["Gauge", "Item", "bytes_of", "bytes_of_result"]

Item = User | Exchange

_USUAL = 3.5  # bytes of a request for each token, until the provider has counted one
_LEAST, _MOST = 1.0, 8.0  # beyond these a provider's count is of something else than the text
_FRAME = 40  # bytes that a message, a call or a result costs besides its text
_PICTURE = 6_000  # a picture is paid for by its area and not by its bytes; this is a large one


class Gauge:
    """Measures the requests of one conversation.

    Each item is measured once: between two calls of `replaced` a history only grows.
    """

    def __init__(self) -> None:
        self.bytes_per_token = _USUAL
        self._items: Sequence[Item] = ()
        self._bytes = 0
        self._head: tuple[object, int] = (None, 0)
        self._counted: tuple[int, int] | None = None  # tokens and bytes of the last request that was counted

    def tokens(self, request: ModelRequest) -> int:
        """Return how many tokens `request` is."""
        size = self.size(request)
        if self._counted is None:
            return round(size / self.bytes_per_token)
        tokens, then = self._counted
        return max(0, round(tokens + (size - then) / self.bytes_per_token))

    def saved(self, items: Sequence[Item], left: Sequence[Item]) -> int:
        """Return how many tokens fewer `left` is than `items`."""
        return self.plain(sum(map(bytes_of, items)) - sum(map(bytes_of, left)))

    def plain(self, size: int) -> int:
        """Return how many tokens `size` bytes are."""
        return round(size / self.bytes_per_token)

    def size(self, request: ModelRequest) -> int:
        """Return about how many bytes `request` is, in any protocol."""
        return self.fixed(request) + self._size_of(request.history.items)

    def fixed(self, request: ModelRequest) -> int:
        """Return how many bytes of it do not change: the system prompt and the tools."""
        key = (request.system, request.tools)
        if self._head[0] != key:
            tools = sum(
                _length(tool.name) + _length(tool.description) + _length_of_json(tool.schema) + _FRAME
                for tool in request.tools
            )
            self._head = (key, _length(request.system) + tools)
        return self._head[1]

    def saw(self, request: ModelRequest, usage: Usage) -> None:
        """Take note of what the provider counted for `request`, where it did."""
        if usage.prompt <= 0:
            return
        size = self.size(request)
        self._counted = (usage.prompt, size)
        self.bytes_per_token = min(_MOST, max(_LEAST, size / usage.prompt))

    def replaced(self) -> None:
        """The history has been replaced: what was counted for the old one says no more than how dense its text is."""
        self._counted = None
        self._items, self._bytes = (), 0

    def _size_of(self, items: Sequence[Item]) -> int:
        known = self._items
        if not (len(items) >= len(known) and (not known or items[len(known) - 1] is known[-1])):
            known, self._bytes = (), 0
        self._bytes += sum(map(bytes_of, items[len(known) :]))
        self._items = items
        return self._bytes


def bytes_of(item: Item) -> int:
    """Return about how many bytes `item` adds to a request."""
    if isinstance(item, User):
        return _FRAME + _of_parts(item.parts)
    return _FRAME + sum(map(bytes_of_result, item.results)) + sum(map(_of_said, item.message.parts))


def bytes_of_result(result: ToolResult) -> int:
    """Return about how many bytes `result` adds to a request."""
    return _FRAME + _of_parts(result.content)


def _of_parts(parts: Iterable[Text | Image]) -> int:
    return sum(_length(part.text) if isinstance(part, Text) else _PICTURE for part in parts)


def _of_said(part: AssistantPart) -> int:
    match part:
        case Text():
            return _length(part.text)
        case Thinking():
            return _length(part.text) + (_length_of_json(part.seal) if part.seal else 0)
        case ToolCall():
            return _FRAME + _length(part.name) + _length_of_json(part.arguments)
        case BrokenCall():
            return _FRAME + _length(part.name) + _length(part.raw)
        case ServerBlock():
            return _length_of_json(part.raw)
        case _:
            assert_never(part)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _length_of_json(value: JSON) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str))
