"""Ollama's own chat protocol: JSON lines, whole calls with objects as arguments, no ids."""

from __future__ import annotations

from collections.abc import Mapping

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols import failures, jsonio
from novacode.protocols.assemble import Prose, number, sealed, string
from novacode.protocols.base import WireRequest
from novacode.protocols.decoding import BodyDecoder
from novacode.protocols.fragments import BodyHead, arguments_of, fit_name, join, result_text
from novacode.protocols.framing import LineFramer
from novacode.protocols.growing import GrowingFragments
from novacode.values.events import Started
from novacode.values.failure import Failure
from novacode.values.history import Exchange
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, Assistant, Image, Thinking, User
from novacode.values.request import ModelRequest, StopReason, Usage
from novacode.values.results import ToolResult

__all__ = ["OllamaCodec", "OllamaReply"]

_STOPS: Mapping[str, StopReason] = {"stop": StopReason.END, "length": StopReason.OUTPUT_LIMIT}


class OllamaReply(BodyDecoder):
    """One response body of `/api/chat`."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__(LineFramer(), ids)
        self._started = False
        self._prose: Prose | None = None
        self._thinks = False

    def _message(self, name: bytes, message: dict[str, JSON]) -> None:
        if message.get("error"):
            raise ModelFailed(failures.from_error(message))
        if not self._started:
            self._started = True
            self._parts.events.append(Started(string(message.get("model"))))
        said = message.get("message") or {}
        if said.get("thinking"):
            self._say(said["thinking"], thinks=True)
        if said.get("content"):
            self._say(said["content"], thinks=False)
        if said.get("tool_calls"):
            self._calls(jsonio.load_exact(self._payload)["message"]["tool_calls"])
        if message.get("done"):
            self._finish(message)

    def _say(self, text: str, *, thinks: bool) -> None:
        if self._prose is None or self._thinks != thinks:
            self._leave()
            self._prose = self._parts.open_thinking() if thinks else self._parts.open_text()
            self._thinks = thinks
            if thinks:
                self._prose.seal["field"] = "thinking"
        self._parts.say(self._prose, text)

    def _leave(self) -> None:
        if self._prose is not None:
            self._parts.end_prose(self._prose)
            self._prose = None

    def _calls(self, calls: list[dict[str, JSON]]) -> None:
        self._leave()
        for entry in calls:
            function = entry["function"]
            call = self._parts.draft()
            call.name = string(function.get("name"))
            call.wire_id = string(entry.get("id"))
            self._parts.announce(call)
            given = function.get("arguments")
            self._parts.write(call, given if isinstance(given, str) else jsonio.dump_text(given or {}))
            self._parts.end_call(call)

    def _finish(self, message: dict[str, JSON]) -> None:
        self._leave()
        if "prompt_eval_count" in message or "eval_count" in message:
            self._parts.usage(Usage(number(message.get("prompt_eval_count")), number(message.get("eval_count"))))
        raw = string(message.get("done_reason")) or None
        stop = _STOPS.get(raw or "stop", StopReason.UNKNOWN)
        if stop is StopReason.END and self._parts.calls_ready:
            stop = StopReason.TOOL_USE
        self._parts.finish(stop, raw)

    def _may_end(self) -> bool:
        return False

    def _end(self) -> None:
        raise RemoteProtocolError("the stream ended before its last line")


class OllamaCodec:
    """Ollama's own protocol for one conversation."""

    def __init__(self, issuer: str = "ollama-native") -> None:
        self.issuer = issuer
        self._head = BodyHead(_head)
        self._items = GrowingFragments(self._encode_item)

    def encode(self, request: ModelRequest) -> WireRequest:
        """Return the request that asks for a streamed response."""
        system = jsonio.dump({"role": "system", "content": request.system}) if request.system else b""
        messages = self._items.of(request.history.items, system)
        pieces = (self._head.of(request), b',"messages":[', *messages, b"]}")
        return WireRequest("POST", "/api/chat", {"content-type": "application/json"}, pieces)

    def decoder(self, ids: CallIds) -> OllamaReply:
        """Return a fresh decoder; it takes the ids of calls from `ids`."""
        return OllamaReply(ids)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return what an HTTP error response means. Never raises."""
        return failures.from_response(status, headers, body)

    def _encode_item(self, item: User | Exchange) -> bytes:
        if isinstance(item, User):
            images = [part.data for part in item.parts if isinstance(part, Image)]
            said = {"role": "user", "content": item.text} | ({"images": images} if images else {})
            return jsonio.dump(said) if item.text or images else b""
        assistant = self._assistant(item.message)
        messages: list[JSON] = [assistant] if assistant is not None else []
        messages.extend(map(_result, item.results))
        return join(messages)

    def _assistant(self, message: Assistant) -> JSON | None:
        if not message.text and not message.calls:
            return None
        sent: dict[str, JSON] = {"role": "assistant", "content": message.text}
        if message.calls:
            sent["tool_calls"] = [
                {"function": {"name": fit_name(call.name), "arguments": arguments_of(call)}} for call in message.calls
            ]
        if message.issuer == self.issuer:
            own = (part for part in message.parts if isinstance(part, Thinking) and sealed(part.seal, "field"))
            thinking = "".join(part.text for part in own)
            if thinking:
                sent["thinking"] = thinking
        return sent


def _result(result: ToolResult) -> JSON:
    return {"role": "tool", "tool_name": fit_name(result.name), "content": result_text(result)}


def _head(request: ModelRequest) -> bytes:
    head: dict[str, JSON] = {"model": request.model, "stream": True}
    if request.max_output_tokens is not None:
        head["options"] = {"num_predict": request.max_output_tokens}
    if request.tools:
        head["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": fit_name(tool.name),
                    "description": tool.description,
                    "parameters": tool.schema,
                },
            }
            for tool in request.tools
        ]
    return jsonio.dump(head)[:-1]
