"""Calls and results in messages as two services write them: where they stand, and how to take them out and put them in.

`ANTHROPIC` has calls and results as blocks of content, results in the next message of the user. `OPENAI` has calls
beside the content, and a message for each result. Nothing here fails for a message of an odd shape: it has no calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import attrs

from novacode.values.parts import JSON

__all__ = ["ANTHROPIC", "OPENAI", "Call", "Dialect", "Result", "dialect_of"]

Message = Mapping[str, JSON]


@attrs.frozen
class Call:
    """A call in a message. `id` is empty where it has none."""

    id: str
    name: str


@attrs.frozen
class Result:
    """A result: whom it answers, and the block or message that it is. `late`: other content stands before it."""

    id: str
    item: JSON
    late: bool = False


class Dialect(Protocol):
    """How one service writes messages."""

    name: str
    merges: bool
    """Whether neighbours of one role are one turn."""

    def calls(self, message: Message) -> list[Call]:
        """Return the calls in a message."""
        ...

    def results(self, message: Message) -> list[Result]:
        """Return the results in a message."""
        ...

    def says_more(self, message: Message) -> bool:
        """Whether a message holds anything but results."""
        ...

    def renamed(self, message: Message, ids: Sequence[str]) -> Message:
        """Return a message with these ids for its calls."""
        ...

    def answers(self, results: Iterable[tuple[str, JSON]], more: Message | None) -> list[Message]:
        """Return the messages that hold `results` (id, item) and then what `more` holds besides results."""
        ...

    def made_up(self, call_id: str, text: str) -> JSON:
        """Return the item of a result that says `text`."""
        ...


class _Anthropic:
    name = "anthropic"
    merges = True

    def calls(self, message: Message) -> list[Call]:
        if message.get("role") != "assistant":
            return []
        return [Call(_text(b.get("id")), _text(b.get("name"))) for b in _blocks(message) if b.get("type") == "tool_use"]

    def results(self, message: Message) -> list[Result]:
        found: list[Result] = []
        other = False
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                found.append(Result(_text(block.get("tool_use_id")), block, late=other))
            else:
                other = True
        return found

    def says_more(self, message: Message) -> bool:
        content = message.get("content")
        return bool(content) and (isinstance(content, str) or len(self.results(message)) < len(_blocks(message)))

    def renamed(self, message: Message, ids: Sequence[str]) -> Message:
        left = iter(ids)
        blocks = [{**b, "id": next(left)} if b.get("type") == "tool_use" else b for b in _blocks(message)]
        return {**message, "content": blocks}

    def answers(self, results: Iterable[tuple[str, JSON]], more: Message | None) -> list[Message]:
        blocks: list[JSON] = [{**item, "tool_use_id": call_id} for call_id, item in results]
        if more is not None:
            content = more.get("content")
            said = [{"type": "text", "text": content}] if isinstance(content, str) and content else _blocks(more)
            blocks += [block for block in said if block.get("type") != "tool_result"]
        return [{**(more or {"role": "user"}), "content": blocks}] if blocks else []

    def made_up(self, call_id: str, text: str) -> JSON:
        return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": True}


class _OpenAI:
    name = "openai"
    merges = False

    def calls(self, message: Message) -> list[Call]:
        found = message.get("tool_calls") if message.get("role") == "assistant" else None
        return [
            Call(_text(call.get("id")), _text((call.get("function") or {}).get("name")))
            for call in (found if isinstance(found, list) else [])
            if isinstance(call, Mapping)
        ]

    def results(self, message: Message) -> list[Result]:
        return [Result(_text(message.get("tool_call_id")), message)] if message.get("role") == "tool" else []

    def says_more(self, message: Message) -> bool:
        return message.get("role") != "tool"

    def renamed(self, message: Message, ids: Sequence[str]) -> Message:
        calls = [call for call in message["tool_calls"] if isinstance(call, Mapping)]
        return {**message, "tool_calls": [{**call, "id": new} for call, new in zip(calls, ids, strict=True)]}

    def answers(self, results: Iterable[tuple[str, JSON]], more: Message | None) -> list[Message]:
        made: list[Message] = [{**item, "tool_call_id": call_id} for call_id, item in results]
        return made if more is None or more.get("role") == "tool" else [*made, more]

    def made_up(self, call_id: str, text: str) -> JSON:
        return {"role": "tool", "tool_call_id": call_id, "content": text}


ANTHROPIC: Dialect = _Anthropic()
OPENAI: Dialect = _OpenAI()


def dialect_of(messages: Iterable[Message]) -> Dialect:
    """Return how `messages` are written. Those without any call are the same to both."""
    for message in messages:
        if message.get("role") == "tool" or message.get("tool_calls"):
            return OPENAI
        if any(block.get("type") in ("tool_use", "tool_result") for block in _blocks(message)):
            return ANTHROPIC
    return OPENAI


def _blocks(message: Message) -> list[Mapping[str, JSON]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
