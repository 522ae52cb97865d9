"""OpenAI Responses, the asking half. Stateless: nothing is stored at the provider, so reasoning goes along encrypted.

A reasoning item belongs to the item that follows it: the order of a response's items is kept, fields that are empty
included, and reasoning that nothing follows is left out.
"""

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
)
from novacode.protocols.growing import GrowingFragments
from novacode.protocols.jsonio import dump, dump_text
from novacode.protocols.openai_responses_reply import OpenAIResponsesReply
from novacode.values.failure import Failure
from novacode.values.history import Exchange
from novacode.values.ids import CallIds
from novacode.values.parts import (
    JSON,
    Assistant,
    BrokenCall,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    User,
    UserPart,
)
from novacode.values.request import ModelRequest
from novacode.values.results import ToolResult

__all__ = ["OpenAIResponsesCodec"]


class OpenAIResponsesCodec:
    """OpenAI Responses for one conversation."""

    def __init__(self, issuer: str = "openai-responses") -> None:
        self.issuer = issuer
        self._head = BodyHead(_head)
        self._items = GrowingFragments(self._encode_item)

    def encode(self, request: ModelRequest) -> WireRequest:
        """Return the request that asks for a streamed response."""
        pieces = (self._head.of(request), b',"input":[', *self._items.of(request.history.items), b"]}")
        return WireRequest("POST", "/responses", HEADERS, pieces)

    def decoder(self, ids: CallIds) -> OpenAIResponsesReply:
        """Return a fresh decoder; it takes the ids of calls from `ids`."""
        return OpenAIResponsesReply(ids)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return what an HTTP error response means. Never raises."""
        return failures.from_response(status, headers, body)

    def _encode_item(self, item: User | Exchange) -> bytes:
        if isinstance(item, User):
            content = _content(item.parts)
            return dump({"type": "message", "role": "user", "content": content}) if content else b""
        return join([*self._message_items(item.message), *(_output(result) for result in item.results)])

    def _message_items(self, message: Assistant) -> list[JSON]:
        own = message.issuer == self.issuer
        items: list[JSON] = []
        for part in message.parts:
            seal = part.seal if own and not isinstance(part, ServerBlock) else None
            match part:
                case Text():
                    if part.text:
                        items.append(_text_item(part, seal))
                case ToolCall() | BrokenCall():
                    items.append(_call_item(part, seal))
                case Thinking():
                    if sealed(seal, "encrypted_content") or sealed(seal, "content"):
                        items.append({"type": "reasoning", "summary": []} | dict(seal or {}))
                case ServerBlock() if own:
                    items.append(part.raw)
                case _:
                    pass  # what another provider did by itself means nothing to this one
        while items and items[-1]["type"] == "reasoning":
            items.pop()
        return items


def _head(request: ModelRequest) -> bytes:
    head: dict[str, JSON] = {
        "model": request.model,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if request.max_output_tokens is not None:
        head["max_output_tokens"] = request.max_output_tokens
    if request.system:
        head["instructions"] = request.system
    if request.tools:
        head["tools"] = [
            {
                "type": "function",
                "name": fit_name(tool.name),
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,
            }
            for tool in request.tools
        ]
    return dump(head)[:-1]


def _text_item(part: Text, seal: Seal | None) -> JSON:
    content = [{"type": "output_text", "text": part.text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content} | dict(seal or {})


def _call_item(call: ToolCall | BrokenCall, seal: Seal | None) -> JSON:
    item: dict[str, JSON] = {
        "type": "function_call",
        "call_id": fit_id(call.id),
        "name": fit_name(call.name),
        "arguments": dump_text(arguments_of(call)),
    }
    return item | {key: value for key, value in (seal or {}).items() if key in {"id", "namespace"}}


def _output(result: ToolResult) -> JSON:
    parts = result_parts(result)
    texts = [part.text for part in parts if isinstance(part, Text)]
    output = "".join(texts) if len(texts) == len(parts) else _content(parts)
    return {"type": "function_call_output", "call_id": fit_id(result.call_id), "output": output}


def _content(parts: tuple[UserPart, ...]) -> list[JSON]:
    return [
        {"type": "input_text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "input_image", "image_url": f"data:{part.media_type};base64,{part.data}", "detail": "auto"}
        for part in parts
        if not (isinstance(part, Text) and not part.text)
    ]
