"""Chat Completions, the asking half: history to a request, in the dialect a `Quirks` record describes."""

from __future__ import annotations

from collections.abc import Mapping

from novacode.protocols import failures
from novacode.protocols.assemble import sealed
from novacode.protocols.base import WireRequest
from novacode.protocols.fragments import (
    HEADERS,
    BodyHead,
    arguments_of,
    fit_id,
    fit_name,
    join,
    result_parts,
    result_text,
)
from novacode.protocols.growing import GrowingFragments
from novacode.protocols.jsonio import dump, dump_text
from novacode.protocols.openai_chat_reply import OpenAIChatReply
from novacode.protocols.quirks import Quirks, quirks_for
from novacode.values.failure import Failure
from novacode.values.history import Exchange
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, Assistant, Image, Text, Thinking, User, UserPart
from novacode.values.request import ModelRequest
from novacode.values.results import ToolResult

__all__ = ["OpenAIChatCodec"]


class OpenAIChatCodec:
    """Chat Completions for one conversation."""

    def __init__(self, quirks: Quirks | None = None) -> None:
        self.quirks = quirks if quirks is not None else quirks_for("openai")
        self.issuer = self.quirks.issuer
        self._head = BodyHead(self._encode_head)
        self._items = GrowingFragments(self._encode_item)
        self._known_tools: frozenset[str] = frozenset()

    def encode(self, request: ModelRequest) -> WireRequest:
        """Return the request that asks for a streamed response."""
        self._known_tools = frozenset(tool.name for tool in request.tools)
        system = dump({"role": self.quirks.system_role, "content": request.system}) if request.system else b""
        messages = self._items.of(request.history.items, system)
        pieces = (self._head.of(request), b',"messages":[', *messages, b"]}")
        return WireRequest("POST", "/chat/completions", HEADERS, pieces)

    def decoder(self, ids: CallIds) -> OpenAIChatReply:
        """Return a fresh decoder; it takes the ids of calls from `ids`."""
        return OpenAIChatReply(ids, self._known_tools)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return what an HTTP error response means. Never raises."""
        return failures.from_response(status, headers, body)

    def _encode_head(self, request: ModelRequest) -> bytes:
        head: dict[str, JSON] = {"model": request.model, "stream": True}
        if self.quirks.stream_options:
            head["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            head[self.quirks.token_limit] = request.max_output_tokens
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
        return dump(head)[:-1]

    def _encode_item(self, item: User | Exchange) -> bytes:
        if isinstance(item, User):
            content = _content(item.parts)
            return dump({"role": "user", "content": content}) if content else b""
        ids = self._wire_ids(item.message)
        messages: list[JSON] = []
        assistant = self._assistant(item.message, ids)
        if assistant is not None:
            messages.append(assistant)
        for result, wire_id in zip(item.results, ids, strict=True):
            messages.append(self._result(result, wire_id))
        images = [part for result in item.results for part in result_parts(result) if isinstance(part, Image)]
        if images and not self.quirks.images_in_results:
            note = Text("Pictures from the results above, in their order:")
            messages.append({"role": "user", "content": _content((note, *images))})
        return join(messages)

    def _assistant(self, message: Assistant, ids: list[str]) -> JSON | None:
        """Return the message, or `None` where nothing of it may be sent: an empty one is refused for ever after."""
        sent: dict[str, JSON] = {"role": "assistant"}
        if message.text:
            sent["content"] = message.text
        if message.calls:
            sent.setdefault("content", None)
            sent["tool_calls"] = [
                {
                    "id": wire_id,
                    "type": "function",
                    "function": {"name": fit_name(call.name), "arguments": dump_text(arguments_of(call))},
                }
                for call, wire_id in zip(message.calls, ids, strict=True)
            ]
        if len(sent) == 1:
            return None
        if message.issuer == self.issuer and self.quirks.reasoning_back:
            reasoning = self._reasoning(message)
            if reasoning:
                sent[self.quirks.reasoning_back] = reasoning
        return sent

    def _reasoning(self, message: Assistant) -> JSON:
        """Return the provider's own reasoning in the field in which it wants it back."""
        own = [part for part in message.parts if isinstance(part, Thinking)]
        if self.quirks.reasoning_back == "reasoning_details":
            return [detail for part in own for detail in sealed(part.seal, "reasoning_details") or ()]
        return "".join(part.text for part in own if sealed(part.seal, "field"))

    def _wire_ids(self, message: Assistant) -> list[str]:
        """Return the ids of a message's calls as this provider knows them.

        Its own form where it may be sent again, which is where it occurs once in the message: some servers number
        calls anew in every answer, and look for exactly these ids.
        """
        limit, plain = self.quirks.id_length, self.quirks.id_plain
        fitting = [fit_id(call.id, limit, plain=plain) for call in message.calls]
        if message.issuer != self.issuer:
            return fitting
        given = [sealed(call.seal, "wire_id") or call.id for call in message.calls]
        if len(set(given)) < len(given):
            return fitting
        own = [wire_id if isinstance(wire_id, str) and len(wire_id) <= limit else None for wire_id in given]
        chosen = [wire_id or fit for wire_id, fit in zip(own, fitting, strict=True)]
        return chosen if len(set(chosen)) == len(chosen) else fitting

    def _result(self, result: ToolResult, wire_id: str) -> JSON:
        sent: dict[str, JSON] = {"role": "tool", "tool_call_id": wire_id}
        takes_images = self.quirks.images_in_results
        sent["content"] = _content(result_parts(result)) if takes_images else result_text(result, "see below")
        return sent


def _content(parts: tuple[UserPart, ...]) -> JSON:
    """Return text alone as a string, which every server takes, and anything with pictures as a list."""
    if all(isinstance(part, Text) for part in parts):
        return "\n\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
        for part in parts
        if not (isinstance(part, Text) and not part.text)
    ]
