"""A model that is written down: no network, no key, and the same every time.

`ScriptWire` takes the place of the network and writes what the Anthropic API would, byte for byte in its format, so a
script exercises the same codec as the real thing. Each request gets the next turn of the script; a turn that ends in
a fault is used up by it, and the next request gets the one after.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import resources
from typing import Any, assert_never

import attrs
import trio

from novacode.errors import ModelFailed
from novacode.models.script_file import load_script, parse_script
from novacode.models.script_steps import (
    CallStep,
    DisconnectStep,
    ErrorStep,
    PauseStep,
    Script,
    ScriptTurn,
    StatusStep,
    TextStep,
    ThinkingStep,
)
from novacode.models.wire import WireResponse
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind
from novacode.values.parts import JSON
from novacode.values.request import StopReason

__all__ = ["UNMET", "Script", "ScriptWire", "demo_script", "load_script", "parse_script", "tour_script"]

UNMET = "in the results it is given"
"""What the refusal of a request says whose results are not those that the script expects."""

_STOP_WORDS: Mapping[StopReason, str] = {
    StopReason.END: "end_turn",
    StopReason.TOOL_USE: "tool_use",
    StopReason.OUTPUT_LIMIT: "max_tokens",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSED: "pause_turn",
    StopReason.UNKNOWN: "scripted_unknown",
}


def demo_script() -> Script:
    """Return the script of the embedded model `demo`, which works in any folder."""
    return _packaged("demo")


def tour_script() -> Script:
    """Return the script that `novacode demo` plays in the project it makes."""
    return _packaged("tour")


def _packaged(name: str) -> Script:
    file = resources.files("novacode.models") / f"{name}.toml"
    return parse_script(file.read_text(encoding="utf-8"), name)


class ScriptWire:
    """Answers requests from a script.

    Pauses are slept on the trio clock. `on_time` is told the script's own time after each of them: the sum of all
    pauses so far, which is the same in every run.
    """

    def __init__(self, script: Script, on_time: Callable[[float], None] | None = None) -> None:
        self._script = script
        self._on_time = on_time
        self._used = 0
        self._time = 0.0

    def open(self, request: WireRequest) -> AbstractAsyncContextManager[WireResponse]:
        """Take the next turn of the script; see `Wire.open`.

        Raises `ModelFailed` where the script has no turn left, and where the turn expects other results.
        """
        return self._open(request)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""
        await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def _open(self, request: WireRequest) -> AsyncIterator[WireResponse]:
        await trio.lowlevel.checkpoint()
        number, turn = self._next()
        _check(turn, request, f"{self._script.source}: turn {number}")
        chunks = _reply(turn, number)
        if not (turn.steps and isinstance(turn.steps[-1], StatusStep)):
            yield _ScriptResponse(200, {"content-type": "text/event-stream"}, chunks, self._sleep)
            return
        status = turn.steps[-1]
        for step in turn.steps:  # only pauses come before a status
            if isinstance(step, PauseStep):
                await self._sleep(step.seconds)
        headers = {"content-type": "application/json"}
        if status.retry_after is not None:
            headers["retry-after"] = f"{status.retry_after:g}"
        yield _ScriptResponse(status.status, headers, iter([_error_body(status)]), self._sleep)

    def _next(self) -> tuple[int, ScriptTurn]:
        self._used += 1
        turns = self._script.turns
        if self._used > len(turns):
            raise _refused(
                f"{self._script.source}: the script has {len(turns)} turn(s), and this is request {self._used}: "
                "add a [[turn]], or let an earlier one end without a call"
            )
        return self._used, turns[self._used - 1]

    async def _sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self._time += seconds
        if self._on_time is not None:
            self._on_time(self._time)


_Chunk = bytes | PauseStep | DisconnectStep


@attrs.define(eq=False)
class _ScriptResponse:
    """One scripted response; see `WireResponse`. A chunk is one event, so that nothing arrives bundled."""

    status: int
    headers: Mapping[str, str]
    _chunks: Iterator[_Chunk]
    _sleep: Callable[[float], Any]

    async def receive_some(self) -> bytes:
        await trio.lowlevel.checkpoint()
        for chunk in self._chunks:
            match chunk:
                case bytes():
                    return chunk
                case PauseStep(seconds):
                    await self._sleep(seconds)
                case DisconnectStep():
                    raise ModelFailed(Failure(FailureKind.NETWORK, "the scripted connection broke", retryable=True))
                case _:
                    assert_never(chunk)
        return b""


def _refused(text: str) -> ModelFailed:
    return ModelFailed(Failure(FailureKind.INVALID_REQUEST, text, retryable=False))


# --- what a request says -----------------------------------------------------------------------------------------


def _check(turn: ScriptTurn, request: WireRequest, where: str) -> None:
    if not turn.expect.result:
        return  # without a look at the request: a long session must not cost more with every turn
    found = "\n".join(_results(json.loads(request.body)["messages"]))
    for wanted in turn.expect.result:
        if wanted not in found:
            shown = repr(found if len(found) <= 500 else f"{found[:500]}…") if found else "no result at all"
            raise _refused(f"{where} expects {wanted!r} {UNMET}; it found {shown}")


def _results(messages: list[dict[str, Any]]) -> Iterator[str]:
    """The texts of the tool results after the last thing the model said."""
    spoken = [number for number, message in enumerate(messages) if message.get("role") == "assistant"]
    for message in messages[spoken[-1] + 1 if spoken else 0 :]:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                inner = block.get("content", "")
                yield inner if isinstance(inner, str) else "".join(part.get("text", "") for part in inner)


# --- what a reply says -------------------------------------------------------------------------------------------


def _reply(turn: ScriptTurn, number: int) -> Iterator[_Chunk]:
    """Yield the reply of `turn`, event by event."""
    usage = turn.usage
    yield _sse(
        type="message_start",
        message={
            "id": f"msg_script_{number}",
            "type": "message",
            "role": "assistant",
            "model": "script",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input,
                "output_tokens": 0,
                "cache_read_input_tokens": usage.cache_read,
                "cache_creation_input_tokens": usage.cache_write,
            },
        },
    )
    index = 0
    for step in turn.steps:
        match step:
            case PauseStep() | DisconnectStep():
                yield step
            case ErrorStep():
                yield _sse(type="error", error={"type": step.error, "message": step.message})
            case StatusStep():
                pass
            case TextStep() | ThinkingStep() | CallStep():
                yield from _block(step, index, f"call_s{number}_{index + 1}")
                index += 1
            case _:
                assert_never(step)
    if not (turn.steps and isinstance(turn.steps[-1], ErrorStep | DisconnectStep)):
        stop = {"stop_reason": _STOP_WORDS[turn.reason], "stop_sequence": None}
        yield _sse(type="message_delta", delta=stop, usage={"output_tokens": usage.output})
        yield _sse(type="message_stop")


def _block(step: TextStep | ThinkingStep | CallStep, index: int, default_id: str) -> Iterator[bytes]:
    deltas: list[dict[str, JSON]]
    cut = False
    match step:
        case TextStep():
            start: dict[str, JSON] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(step.text, step.fragments)]
        case ThinkingStep():
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(step.text, step.fragments)]
            deltas.append({"type": "signature_delta", "signature": step.signature})
        case CallStep():
            call_id = default_id if step.id is None else step.id
            start = {"type": "tool_use", "id": call_id, "name": step.name, "input": {}}
            raw = step.raw[: len(step.raw) // 2] if step.cut else step.raw
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(raw, step.fragments)]
            cut = step.cut
        case _:
            assert_never(step)
    yield _sse(type="content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _sse(type="content_block_delta", index=index, delta=delta)
    if not cut:
        yield _sse(type="content_block_stop", index=index)


def _pieces(text: str, count: int) -> list[str]:
    """Cut `text` into `count` pieces of nearly the same length; fewer where it has fewer characters."""
    count = max(1, min(count, len(text)))
    edges = [len(text) * number // count for number in range(count + 1)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def _sse(**event: JSON) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _error_body(step: StatusStep) -> bytes:
    words = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large"}
    words |= {429: "rate_limit_error", 529: "overloaded_error"}
    word = words.get(step.status, "invalid_request_error" if step.status < 500 else "api_error")
    return json.dumps({"type": "error", "error": {"type": word, "message": step.message}}).encode()
