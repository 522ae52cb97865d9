"""Chat Completions, the answering half, with the habits of the many servers that imitate it.

The protocol has no end mark for a call. Here a call is complete when its text is one JSON object and another part
begins or the finish reason comes. That is safe with interleaved fragments, because no proper prefix of a JSON object
is itself one; a lone `{}` waits for the finish, because some servers send it first and the arguments after.

Without a finish reason `[DONE]` ends the response, with a warning; without either it was cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols import failures, jsonio
from novacode.protocols.assemble import Prose, number, string
from novacode.protocols.chat_calls import ChatCalls
from novacode.protocols.decoding import BodyDecoder
from novacode.protocols.framing import SseFramer
from novacode.values.events import Started
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, ServerBlock
from novacode.values.request import StopReason, Usage

__all__ = ["OpenAIChatReply", "chat_usage"]

_STOPS: Mapping[str | None, StopReason] = {
    "stop": StopReason.END,
    "eos": StopReason.END,
    "end_turn": StopReason.END,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "length": StopReason.OUTPUT_LIMIT,
    "max_tokens": StopReason.OUTPUT_LIMIT,
    "model_length": StopReason.OUTPUT_LIMIT,
    "content_filter": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
}


class OpenAIChatReply(BodyDecoder):
    """One response body. `known_tools` were offered: they tell a repeated name from its second half."""

    def __init__(self, ids: CallIds, known_tools: Collection[str] = ()) -> None:
        super().__init__(SseFramer(), ids)
        self._started = False
        self._prose: Prose | None = None
        self._thinks = False
        self._calls = ChatCalls(self._parts, known_tools)
        self._stop: str | None = None
        self._refusal: list[str] = []
        self._server: dict[JSON, dict[str, JSON]] = {}

    def _message(self, name: bytes, message: dict[str, JSON]) -> None:
        choices = message.get("choices")
        if not self._started and message.get("id"):
            self._started = True
            self._parts.events.append(Started(string(message.get("model")), string(message["id"])))
        if choices:
            choice = choices[0]
            delta = choice.get("delta")
            if delta is None:
                delta = choice.get("message") or {"content": choice.get("text")}
            self._delta(delta)
            stop = choice.get("finish_reason")
            if stop is not None:
                self._finish_reason(stop)
        self._count(message, choices)
        error = message.get("error")
        if error or name == b"error" or message.get("object") == "error":
            raise ModelFailed(failures.from_error(error or message, raw_stop=self._stop))

    # --- what a delta holds ---------------------------------------------------------------------------------------

    def _delta(self, delta: dict[str, JSON]) -> None:
        content = delta.get("content")
        if type(content) is str and content and len(delta) == 1:  # nearly every message of a text
            self._say(content)
            return
        details = delta.get("reasoning_details")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning") or delta.get("reasoning_text")
        if details or reasoning:
            self._reason(reasoning, details, "reasoning" if delta.get("reasoning") else "reasoning_content")
        if content:
            if type(content) is str:
                self._say(content)
            else:
                self._typed_parts(content)
        calls = delta.get("tool_calls")
        if calls:
            self._leave_prose()
            if any(isinstance((call.get("function") or {}).get("arguments"), dict) for call in calls):
                calls = jsonio.load_exact(self._payload)["choices"][0]["delta"]["tool_calls"]
            for call in calls:
                self._calls.take(call)
        self._rare(delta)

    def _rare(self, delta: dict[str, JSON]) -> None:
        refusal = delta.get("refusal")
        if refusal:
            self._refusal.append(string(refusal))
        function = delta.get("function_call")  # the form before tools, still spoken by a few servers
        if function:
            self._leave_prose()
            self._calls.take({"index": 0, "function": function})
        for tool in delta.get("executed_tools") or ():
            self._server.setdefault(tool.get("index"), {}).update(tool)

    def _typed_parts(self, content: list[dict[str, JSON]]) -> None:
        for part in content:
            if part["type"] == "text":
                self._say(part["text"])
            elif part["type"] == "thinking":
                inner = part["thinking"]
                texts = [inner] if isinstance(inner, str) else [piece.get("text") or "" for piece in inner]
                self._reason("".join(texts), None, "thinking")

    def _say(self, text: str) -> None:
        prose = self._prose
        if prose is None or self._thinks:
            prose = self._enter(thinks=False)
        self._parts.say(prose, text)

    def _reason(self, text: JSON, details: JSON, field: str) -> None:
        if not text and details:
            text = "".join(string(detail.get("text")) or string(detail.get("summary")) for detail in details)
        prose = self._prose
        if prose is None or not self._thinks:
            prose = self._enter(thinks=True)
        if text:
            self._parts.say(prose, text)
        if details:
            _merge_details(prose.seal.setdefault("reasoning_details", []), details)
        else:
            prose.seal["field"] = field

    def _enter(self, *, thinks: bool) -> Prose:
        self._calls.leave()
        self._leave_prose()
        self._thinks = thinks
        self._prose = self._parts.open_thinking() if thinks else self._parts.open_text()
        return self._prose

    def _leave_prose(self) -> None:
        if self._prose is not None:
            self._parts.end_prose(self._prose)
            self._prose = None

    # --- the end --------------------------------------------------------------------------------------------------

    def _finish_reason(self, stop: JSON) -> None:
        if not isinstance(stop, str):
            raise TypeError(f"finish_reason is {stop!r}")
        if not stop:
            return
        self._stop = stop
        self._leave_prose()
        for raw in self._server.values():
            self._parts.part_done(self._parts.place(), ServerBlock(string(raw.get("type")), raw))
        self._server = {}
        self._calls.end(limit=_STOPS.get(stop) is StopReason.OUTPUT_LIMIT)

    def _count(self, message: dict[str, JSON], choices: JSON) -> None:
        usage = message.get("usage")
        if usage is None and "x_groq" in message:
            usage = (message["x_groq"] or {}).get("usage")
        if usage is None and choices and "usage" in choices[0]:
            usage = choices[0]["usage"]
        if usage:
            self._parts.usage(chat_usage(usage))

    def _mark(self, payload: bytes) -> bool:
        if payload != b"[DONE]":
            return False
        if self._stop is None:
            self._parts.notice("the provider ended its answer without a finish reason; taken as it stands")
        self._end(done=True)
        return True

    def _may_end(self) -> bool:
        return self._stop is not None

    def _end(self, *, done: bool = False) -> None:
        if self._stop is None and not done:
            raise RemoteProtocolError("the stream ended before its finish reason")
        if self._stop is None:
            self._leave_prose()
            self._calls.end(limit=False)
        stop, detail = _STOPS.get(self._stop, StopReason.UNKNOWN), "".join(self._refusal)
        if detail:
            stop = StopReason.REFUSAL
        elif self._parts.calls_ready and (stop is StopReason.END or self._stop is None):
            stop = StopReason.TOOL_USE  # many servers say "stop" after calls, and some say nothing
        self._parts.finish(stop, self._stop, detail)


def _merge_details(seal: list[dict[str, JSON]], details: list[dict[str, JSON]]) -> None:
    """Join the fragments of one reasoning detail; the provider wants the whole back, as if it had never been cut."""
    for detail in details:
        last = seal[-1] if seal else None
        if last is None or (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
            seal.append(dict(detail))
            continue
        for key, value in detail.items():
            if key in {"text", "summary", "data"} and isinstance(last.get(key), str) and isinstance(value, str):
                last[key] += value
            elif value:
                last[key] = value


def chat_usage(usage: dict[str, JSON]) -> Usage:
    """Return token counts from the fields Chat Completions and its imitators use."""
    prompt, completion = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    read_details = usage.get("prompt_tokens_details") or {}
    reasoning = number((usage.get("completion_tokens_details") or {}).get("reasoning_tokens"))
    cached = _first(read_details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    written = (prompt or 0) + (completion or 0)
    apart = bool(reasoning) and usage.get("total_tokens") == written + (reasoning or 0)  # xAI counts it on top
    return Usage(
        prompt,
        completion,
        cached,
        number(read_details.get("cache_write_tokens")),
        reasoning,
        output_counts_reasoning=not apart,
    )


def _first(*values: JSON) -> int | None:
    return next((value for value in values if number(value) is not None), None)
