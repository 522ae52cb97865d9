"""Google Gemini, the asking half: history to a request.

Roles alternate, the answers to all calls of a message stand in the next one, and a thought signature goes back on the
very part it came with.
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
    result_text,
)
from novacode.protocols.gemini_reply import GeminiReply
from novacode.protocols.gemini_schema import gemini_schema
from novacode.protocols.growing import GrowingMessages
from novacode.protocols.jsonio import dump
from novacode.values.failure import Failure
from novacode.values.history import Exchange
from novacode.values.ids import CallIds
from novacode.values.parts import (
    JSON,
    Assistant,
    AssistantPart,
    BrokenCall,
    Image,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    User,
    UserPart,
)
from novacode.values.request import ModelRequest, ToolOffer
from novacode.values.results import Outcome, ToolResult

__all__ = ["GeminiCodec"]

_OPENING = dump({"text": "Go on."})


class GeminiCodec:
    """Gemini for one conversation."""

    def __init__(self, issuer: str = "gemini") -> None:
        self.issuer = issuer
        self._head = BodyHead(_head)
        self._messages = GrowingMessages(self._encode_item, b'{"role":"%b","parts":[', _OPENING)

    def encode(self, request: ModelRequest) -> WireRequest:
        """Return the request that asks for a streamed response."""
        contents = self._messages.of(request.history.items)
        pieces = (self._head.of(request), b'"contents":[', *contents, b"]}")
        path = f"/v1beta/models/{request.model}:streamGenerateContent?alt=sse"
        return WireRequest("POST", path, HEADERS, pieces)

    def decoder(self, ids: CallIds) -> GeminiReply:
        """Return a fresh decoder; it takes the ids of calls from `ids`."""
        return GeminiReply(ids)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return what an HTTP error response means. Never raises."""
        return failures.from_response(status, headers, body)

    def _encode_item(self, item: User | Exchange) -> tuple[tuple[str, bytes], ...]:
        """Return the parts of an item by role; a role without parts is left out."""
        if isinstance(item, User):
            made = [("user", join(_user_part(part) for part in item.parts if not _is_blank(part)))]
        else:
            own = item.message.issuer == self.issuer
            pairs = zip(item.message.calls, item.results, strict=True)
            answers = [_answer(call, result, own=own) for call, result in pairs]
            images = [_user_part(part) for result in item.results for part in result_parts(result) if _is_image(part)]
            made = [("model", join(self._model_parts(item.message, own=own))), ("user", join([*answers, *images]))]
        return tuple((role, parts) for role, parts in made if parts)

    def _model_parts(self, message: Assistant, *, own: bool) -> list[JSON]:
        parts: list[JSON] = []
        for part in message.parts:
            sent = _model_part(part, own=own)
            if sent is None:
                continue
            signature = sealed(part.seal, "thoughtSignature") if own and not isinstance(part, ServerBlock) else None
            parts.append(sent | ({"thoughtSignature": signature} if signature else {}))
        return parts


def _head(request: ModelRequest) -> bytes:
    head: dict[str, JSON] = {}
    if request.system:
        head["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        head["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
    if request.max_output_tokens is not None:
        head["generationConfig"] = {"maxOutputTokens": request.max_output_tokens}
    return dump(head)[:-1] + (b"," if head else b"")


def _declaration(tool: ToolOffer) -> JSON:
    declared: dict[str, JSON] = {"name": fit_name(tool.name), "description": tool.description}
    if tool.schema.get("properties"):  # an object without properties is refused; no parameters at all are not
        declared["parameters"] = gemini_schema(tool.schema)
    return declared


def _model_part(part: AssistantPart, *, own: bool) -> dict[str, JSON] | None:
    """Return a part as it goes back, without its signature; `None` where it does not."""
    match part:
        case Text():
            return {"text": part.text} if part.text or (own and sealed(part.seal, "thoughtSignature")) else None
        case ToolCall() | BrokenCall():
            call = {"name": fit_name(part.name), "args": arguments_of(part)}
            return {"functionCall": call | _identity(part, own=own)}
        case Thinking():
            kept = own and sealed(part.seal, "thoughtSignature")
            return {"text": part.text, "thought": True} if kept else None
        case ServerBlock():
            return dict(part.raw) if own and "groundingMetadata" not in part.raw else None


def _identity(call: ToolCall | BrokenCall, *, own: bool) -> dict[str, JSON]:
    """Return the id of a call, empty where its server gave none: it then goes by name and order."""
    return {} if own and sealed(call.seal, "wire_id") == "" else {"id": fit_id(call.id)}


def _answer(call: ToolCall | BrokenCall, result: ToolResult, *, own: bool) -> JSON:
    text = result_text(result, "see below")
    response = {"output" if result.outcome is Outcome.OK else "error": text}
    answer = {"name": fit_name(result.name), "response": response} | _identity(call, own=own)
    return {"functionResponse": answer}


def _is_image(part: UserPart) -> bool:
    return isinstance(part, Image)


def _is_blank(part: UserPart) -> bool:
    return isinstance(part, Text) and not part.text


def _user_part(part: UserPart) -> JSON:
    if isinstance(part, Text):
        return {"text": part.text}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
