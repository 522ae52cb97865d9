"""Anthropic Messages, the answering half: a response body to events."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols import failures
from novacode.protocols.assemble import Draft, Prose, number, read_arguments, string
from novacode.protocols.decoding import BodyDecoder
from novacode.protocols.framing import SseFramer
from novacode.protocols.jsonio import dump_text
from novacode.values.events import Started
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, ServerBlock, Thinking
from novacode.values.request import StopReason, Usage

__all__ = ["AnthropicReply"]

_STOPS: Mapping[str, StopReason] = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.OUTPUT_LIMIT,
    "model_context_window_exceeded": StopReason.OUTPUT_LIMIT,
    "refusal": StopReason.REFUSAL,
    "pause_turn": StopReason.PAUSED,
    "compaction": StopReason.PAUSED,
}


class _Server:
    """A block of the provider's own, kept verbatim while its deltas come."""

    __slots__ = ("index", "input", "raw")

    def __init__(self, index: int, raw: dict[str, JSON]) -> None:
        self.index = index
        self.raw = raw
        self.input: list[str] = []


class AnthropicReply(BodyDecoder):
    """One response body of Anthropic Messages or of a server that imitates it."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__(SseFramer(), ids)
        self._blocks: dict[int, Prose | Draft | _Server] = {}
        self._usage = Usage(input_counts_cache=False)
        self._stop: str | None = None
        self._detail = ""
        self._on = {
            "content_block_delta": self._delta,
            "content_block_start": self._block_start,
            "content_block_stop": self._block_stop,
            "message_start": self._message_start,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._error,
        }

    def _message(self, name: bytes, message: dict[str, JSON]) -> None:
        kind = message.get("type")
        if kind is None:
            kind = "error" if "error" in message else name.decode("utf-8", "replace")
        act = self._on.get(kind)
        if act is not None:  # others, `ping` first of all, mean nothing here
            act(message)

    # --- the message ----------------------------------------------------------------------------------------------

    def _message_start(self, message: dict[str, JSON]) -> None:
        head = message.get("message") or {}
        self._parts.events.append(Started(string(head.get("model")), string(head.get("id"))))
        self._count(head.get("usage"))

    def _message_delta(self, message: dict[str, JSON]) -> None:
        delta = message.get("delta") or {}
        stop = delta.get("stop_reason")
        if isinstance(stop, str):
            self._stop = stop
            self._detail = _detail(delta)
        self._count(message.get("usage"))

    def _message_stop(self, _: dict[str, JSON]) -> None:
        stop = _STOPS.get(self._stop or "", StopReason.UNKNOWN)
        self._parts.finish(stop, self._stop, self._detail)

    def _error(self, message: dict[str, JSON]) -> None:
        raise ModelFailed(failures.from_error(message.get("error") or message, raw_stop=self._stop))

    def _count(self, usage: JSON) -> None:
        """Take token counts. They are running totals: each field replaces what was said of it before."""
        if not isinstance(usage, dict):
            return
        found: dict[str, JSON] = {
            "input": usage.get("input_tokens"),
            "output": usage.get("output_tokens"),
            "cache_read": usage.get("cache_read_input_tokens"),
            "cache_write": usage.get("cache_creation_input_tokens"),
            "reasoning": (usage.get("output_tokens_details") or {}).get("thinking_tokens"),
        }
        known: dict[str, JSON] = {field: count for field, count in found.items() if number(count) is not None}
        self._usage = attrs.evolve(self._usage, **known)
        self._parts.usage(self._usage)

    # --- its blocks -----------------------------------------------------------------------------------------------

    def _block_start(self, message: dict[str, JSON]) -> None:
        key, block = message["index"], message["content_block"]
        parts = self._parts
        match block["type"]:
            case "text":
                self._blocks[key] = text = parts.open_text()
                _cite(text, block.get("citations"))
                parts.say(text, block.get("text") or "")
            case "thinking":
                self._blocks[key] = thinking = parts.open_thinking()
                if block.get("signature"):
                    thinking.seal["signature"] = block["signature"]
                parts.say(thinking, block.get("thinking") or "")
            case "redacted_thinking":
                index = parts.place()
                self._blocks[key] = _Server(index, {})
                parts.part_done(index, Thinking("", {"redacted": block["data"]}))
            case "tool_use":
                self._blocks[key] = self._open_call(block)
            case _:
                self._blocks[key] = _Server(parts.place(), dict(block))

    def _open_call(self, block: dict[str, JSON]) -> Draft:
        call = self._parts.draft()
        call.name = string(block.get("name"))
        call.wire_id = string(block.get("id"))
        self._parts.announce(call)
        if block.get("input"):  # some imitators send the whole input here and no deltas
            given = block["input"]
            self._parts.write(call, given if isinstance(given, str) else dump_text(given))
        return call

    def _delta(self, message: dict[str, JSON]) -> None:
        part = self._blocks.get(message["index"])
        delta = message["delta"]
        if isinstance(part, Prose):
            self._prose_delta(part, delta)
        elif isinstance(part, Draft):
            if delta["type"] == "input_json_delta":
                self._parts.write(part, delta["partial_json"])
        elif isinstance(part, _Server):
            _server_delta(part, delta)
        else:
            raise RemoteProtocolError(f"a delta came for block {message['index']!r}, which was not opened")

    def _prose_delta(self, part: Prose, delta: dict[str, JSON]) -> None:
        kind = delta["type"]
        if kind == "text_delta":
            self._parts.say(part, delta["text"])
        elif kind == "thinking_delta":
            self._parts.say(part, delta["thinking"])
        elif kind == "signature_delta":
            part.seal["signature"] = delta["signature"]
        elif kind == "citations_delta":
            _cite(part, [delta["citation"]])

    def _block_stop(self, message: dict[str, JSON]) -> None:
        part = self._blocks.get(message["index"])
        if isinstance(part, Prose):
            self._parts.end_prose(part)
        elif isinstance(part, Draft):
            self._parts.end_call(part)
        elif isinstance(part, _Server) and part.raw:
            self._end_server(part)

    def _end_server(self, part: _Server) -> None:
        raw, part.raw = part.raw, {}
        text = "".join(part.input)
        if text:
            given = read_arguments(text)
            if isinstance(given, str):
                self._parts.notice(f"dropped a {raw['type']} of the provider, which was cut: {given}")
                return
            raw["input"] = given
        name = raw.get("name") if raw["type"].endswith("_tool_use") else None
        self._parts.part_done(part.index, ServerBlock(string(name), raw))

    # --- the end of the body --------------------------------------------------------------------------------------

    def _may_end(self) -> bool:
        return self._stop is not None

    def _end(self) -> None:
        if self._stop is None:
            raise RemoteProtocolError("the stream ended before message_stop")
        self._message_stop({})


def _cite(text: Prose, citations: JSON) -> None:
    if citations:
        text.seal.setdefault("citations", []).extend(citations)


def _server_delta(part: _Server, delta: dict[str, JSON]) -> None:
    """Merge a delta into a block whose kind is not known here: strings grow, other values replace."""
    if delta["type"] == "input_json_delta":
        part.input.append(delta["partial_json"])
        return
    for key, value in delta.items():
        if key == "type":
            continue
        before = part.raw.get(key)
        part.raw[key] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _detail(delta: dict[str, JSON]) -> str:
    details = delta.get("stop_details")
    if isinstance(details, dict):
        return string(details.get("explanation")) or string(details.get("category"))
    return string(delta.get("stop_sequence"))
