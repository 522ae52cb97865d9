"""One description of a reply, written in each wire protocol: what every codec must read as the same.

body("gemini", [Think("hm"), Say("Looking."), Asks("c1", "work", {"takes": 1})], "tool_use")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

__all__ = ["PROOF", "PROTOCOLS", "Asks", "Lost", "Piece", "Rest", "Say", "Think", "Torn", "body"]

PROTOCOLS = ("anthropic", "openai-chat", "openai-responses", "gemini")
PROOF = "cHJvb2Y="
"""What seals reasoning in every protocol that has seals."""


@attrs.frozen
class Say:
    """Visible text."""

    text: str


@attrs.frozen
class Think:
    """Reasoning, sealed the way the protocol seals it."""

    text: str


@attrs.frozen
class Asks:
    """A whole call."""

    id: str
    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Torn:
    """A call whose arguments end in the middle."""

    id: str
    name: str


@attrs.frozen
class Rest:
    """Seconds of silence; no protocol has a word for it."""

    seconds: float


@attrs.frozen
class Lost:
    """The connection breaks here."""


Piece = Say | Think | Asks | Torn | Rest | Lost
Frame = bytes | Rest | Lost

_STOPS: Mapping[str, Mapping[str, str]] = {
    "anthropic": {
        "end": "end_turn",
        "tool_use": "tool_use",
        "limit": "max_tokens",
        "refusal": "refusal",
        "paused": "pause_turn",
    },
    "openai-chat": {"end": "stop", "tool_use": "tool_calls", "limit": "length", "refusal": "content_filter"},
    "openai-responses": {"end": "", "tool_use": "", "limit": "max_output_tokens", "refusal": "content_filter"},
    "gemini": {"end": "STOP", "tool_use": "STOP", "limit": "MAX_TOKENS", "refusal": "SAFETY"},
}
_HALF = '{"takes": 1, "prints": "ab'


def body(protocol: str, pieces: Sequence[Piece], stop: str) -> list[Frame]:
    """Return the frames of a reply. `stop` is one of `_STOPS`, or the provider's own word for something else.

    Nothing comes after a `Lost`, and no end mark either.
    """
    word = _STOPS[protocol].get(stop, stop)
    frames: list[Frame] = []
    for frame in _WRITERS[protocol](pieces, word):
        frames.append(frame)
        if isinstance(frame, Lost):
            break
    return frames


def _sse(message: Mapping[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(message)}\n\n".encode()


def _anthropic(pieces: Sequence[Piece], stop: str) -> Iterator[Frame]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield _sse({"type": "message_start", "message": message}, "message_start")
    index = 0
    for piece in pieces:
        if isinstance(piece, Rest | Lost):
            yield piece
            continue
        opened, deltas = _anthropic_block(piece)
        yield _sse({"type": "content_block_start", "index": index, "content_block": opened}, "content_block_start")
        for delta in deltas:
            yield _sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        if not isinstance(piece, Torn):
            yield _sse({"type": "content_block_stop", "index": index}, "content_block_stop")
        index += 1
    yield _sse({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}})
    yield _sse({"type": "message_stop"}, "message_stop")


def _anthropic_block(piece: Say | Think | Asks | Torn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match piece:
        case Say(text):
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]
        case Think(text):
            deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": PROOF}]
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case Asks() | Torn():
            opened = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
            return opened, [{"type": "input_json_delta", "partial_json": text} for text in _halves(piece)]


def _halves(call: Asks | Torn) -> tuple[str, ...]:
    """Return the argument text in two fragments."""
    text = _HALF if isinstance(call, Torn) else json.dumps(dict(call.arguments))
    return text[: len(text) // 2], text[len(text) // 2 :]


def _chat(pieces: Sequence[Piece], stop: str) -> Iterator[Frame]:
    def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        return _sse(
            {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more
        )

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for piece in pieces:
        match piece:
            case Rest() | Lost():
                yield piece
            case Say(text):
                yield chunk({"content": text})
            case Think(text):
                yield chunk({"reasoning_content": text})
            case Asks() | Torn():
                head, tail = _halves(piece)
                function = {"name": piece.name, "arguments": head}
                yield chunk(
                    {"tool_calls": [{"index": calls, "id": piece.id, "type": "function", "function": function}]}
                )
                yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": tail}}]})
                calls += 1
    yield chunk({}, stop, usage={"prompt_tokens": 10, "completion_tokens": 20})
    yield b"data: [DONE]\n\n"


def _responses(pieces: Sequence[Piece], stop: str) -> Iterator[Frame]:
    def event(kind: str, **more: Any) -> bytes:
        return _sse({"type": f"response.{kind}"} | more, f"response.{kind}")

    yield event("created", response={"id": "resp_1", "model": "m", "status": "in_progress"})
    place = 0
    for piece in pieces:
        if isinstance(piece, Rest | Lost):
            yield piece
            continue
        item, deltas = _responses_item(piece, place)
        started = (
            item | ({"arguments": ""} if "arguments" in item else {}) | ({"content": []} if "content" in item else {})
        )
        yield event("output_item.added", output_index=place, item=started)
        for kind, delta in deltas:
            yield event(kind, output_index=place, item_id=item["id"], delta=delta)
        if not isinstance(piece, Torn):
            yield event("output_item.done", output_index=place, item=item)
        place += 1
    usage = {"input_tokens": 10, "output_tokens": 20}
    if stop:
        incomplete = {"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": stop}, "usage": usage}
        yield event("incomplete", response=incomplete)
    else:
        yield event("completed", response={"id": "resp_1", "status": "completed", "usage": usage})


def _responses_item(piece: Say | Think | Asks | Torn, place: int) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    match piece:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            message = {"type": "message", "id": f"msg_{place}", "role": "assistant", "content": content}
            return message, [("output_text.delta", text)]
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            item = {"type": "reasoning", "id": f"rs_{place}", "summary": summary, "encrypted_content": PROOF}
            return item, [("reasoning_summary_text.delta", text)]
        case Asks() | Torn():
            halves = _halves(piece)
            item = {"type": "function_call", "id": f"fc_{place}", "call_id": piece.id, "name": piece.name}
            deltas = [("function_call_arguments.delta", text) for text in halves]
            return item | {"arguments": "".join(halves)}, deltas


def _gemini(pieces: Sequence[Piece], stop: str) -> Iterator[Frame]:
    def chunk(parts: list[Any], **more: Any) -> bytes:
        candidate = {"content": {"role": "model", "parts": parts}} | more
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 20}
        return _sse({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"})

    thought = False
    for piece in pieces:
        match piece:
            case Rest() | Lost():
                yield piece
            case Say(text):
                yield chunk([{"text": text} | _signed(thought)])
            case Think(text):
                yield chunk([{"text": text, "thought": True}])
            case Asks():
                yield chunk([{"functionCall": _function(piece) | {"args": dict(piece.arguments)}} | _signed(thought)])
            case Torn():
                value = {"jsonPath": "$.prints", "stringValue": "ab", "willContinue": True}
                yield chunk([{"functionCall": _function(piece) | {"partialArgs": [value], "willContinue": True}}])
        if not isinstance(piece, Rest | Lost):
            thought = isinstance(piece, Think)
    yield chunk([], finishReason=stop)


def _signed(thought: bool) -> dict[str, str]:
    """The proof of a thought stands on the part after it."""
    return {"thoughtSignature": PROOF} if thought else {}


def _function(piece: Asks | Torn) -> dict[str, Any]:
    return {"name": piece.name} | ({"id": piece.id} if piece.id else {})


_WRITERS: Mapping[str, Callable[[Sequence[Piece], str], Iterator[Frame]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
