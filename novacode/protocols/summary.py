"""A response as one object, for looking at what a provider really sent; and the codecs by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping

from novacode.errors import ModelFailed, NovaError, UsageError
from novacode.protocols.base import Codec
from novacode.values.events import (
    CallBroken,
    CallReady,
    Finished,
    ModelEvent,
    PartDone,
    TextDelta,
    ThinkingDelta,
    UsageSeen,
)
from novacode.values.parts import JSON, BrokenCall, Seal, ServerBlock, ToolCall
from novacode.values.request import StopReason, Usage

__all__ = ["PROTOCOLS", "codec_for", "summarise"]

PROTOCOLS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("anthropic", "AnthropicCodec"),
    "openai-chat": ("openai_chat", "OpenAIChatCodec"),
    "openai-responses": ("openai_responses", "OpenAIResponsesCodec"),
    "gemini": ("gemini", "GeminiCodec"),
    "ollama": ("ollama", "OllamaCodec"),
}
"""What the command line calls each protocol, and where its codec is.

A codec is imported when it is asked for: a run speaks one protocol, and all five took 30 ms of every start.
"""

_USAGE_FIELDS = ("input", "output", "cache_read", "cache_write", "reasoning")
_PROOFS = ("signature", "redacted", "encrypted_content", "thoughtSignature")


def codec_for(protocol: str) -> Codec:
    """Return a new codec for `protocol`, in the provider's own dialect. Raises `UsageError` for a name that is none."""
    if protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    module, name = PROTOCOLS[protocol]
    codec: Codec = getattr(importlib.import_module(f"novacode.protocols.{module}"), name)()
    return codec


def summarise(events: Iterable[ModelEvent], error: NovaError | None = None) -> dict[str, JSON]:
    """Return what `events` come to; `error` is what the decoder ended with, if it did.

    A refusal of the prompt itself, which leaves nothing else to show, is shown as an error too.
    """
    text: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, JSON] = {}
    parts: dict[int, JSON] = {}
    usage, finish = Usage(), None
    for event in events:
        match event:
            case TextDelta():
                text.append(event.text)
            case ThinkingDelta():
                reasoning.append(event.text)
            case CallReady() | CallBroken():
                calls[event.index] = parts[event.index] = event.call
            case PartDone():
                parts[event.index] = event.part
            case UsageSeen():
                usage = event.usage
            case Finished():
                finish = event
            case _:
                pass  # beginnings, fragments of calls and notices add nothing to the whole
    ordered = [part for _, part in sorted(parts.items())]
    return {
        "text": "".join(text),
        "reasoning": "".join(reasoning),
        "tool_calls": [_call(call) for _, call in sorted(calls.items())],
        "stop": None if finish is None else str(finish.stop),
        "stop_raw": _raw_stop(finish, error),
        "usage": {field: getattr(usage, field) for field in _USAGE_FIELDS},
        "server_tools": [part.name for part in ordered if isinstance(part, ServerBlock) and part.name],
        "error": _error(finish, error, said=bool(ordered)),
        "signatures": [proof for part in ordered for proof in _signatures(part)],
    } | ({"refusal": finish.detail} if finish is not None and _is_refusal(finish) and finish.detail else {})


def _call(call: ToolCall | BrokenCall) -> JSON:
    if isinstance(call, ToolCall):
        return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
    return {"id": call.id, "name": call.name, "arguments": None, "arguments_raw": call.raw, "broken": call.problem}


def _raw_stop(finish: Finished | None, error: NovaError | None) -> str | None:
    if finish is not None:
        return finish.raw
    return error.failure.raw_stop if isinstance(error, ModelFailed) else None


def _is_refusal(finish: Finished) -> bool:
    return finish.stop is StopReason.REFUSAL


def _error(finish: Finished | None, error: NovaError | None, *, said: bool) -> JSON:
    if isinstance(error, ModelFailed):
        return {"type": error.failure.raw_type, "message": error.failure.message}
    if error is not None:
        return {"type": "protocol", "message": str(error)}
    if finish is not None and _is_refusal(finish) and not said and not finish.detail:
        return {"type": finish.raw, "message": None}
    return None


def _signatures(part: JSON) -> Iterator[str]:
    """Yield the proofs a part carries for its issuer."""
    if isinstance(part, ServerBlock):
        yield from (proof for proof in (part.raw.get("thoughtSignature"),) if proof)
    seal: Seal = getattr(part, "seal", None) or {}
    yield from (seal[key] for key in _PROOFS if seal.get(key))
    for detail in seal.get("reasoning_details") or ():
        proof = detail.get("signature") or detail.get("data")
        if proof:
            yield proof
