"""Anthropic Messages, the asking half: history to a request.

The provider demands: the first message is the user's, roles alternate, results directly follow their calls and come
before other content, no empty or blank text, ids of letters, digits, `_` and `-`, reasoning unchanged and with its
signature. Prompt caching is asked for at the end of the tools, of the system prompt and of the last user message.
"""

from __future__ import annotations

from collections.abc import Mapping

from novacode.protocols import failures
from novacode.protocols.anthropic_reply import AnthropicReply
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
from novacode.protocols.growing import GrowingMessages
from novacode.protocols.jsonio import dump
from novacode.values.failure import Failure
from novacode.values.history import Exchange
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, Assistant, BrokenCall, Image, ServerBlock, Text, Thinking, ToolCall, User
from novacode.values.request import ModelRequest
from novacode.values.results import Outcome, ToolResult

__all__ = ["DEFAULT_MAX_TOKENS", "AnthropicCodec"]

DEFAULT_MAX_TOKENS = 16_384
"""The provider demands a limit. This is the largest that every model it still serves accepts without a beta header."""

_CACHE = {"cache_control": {"type": "ephemeral"}}
_CACHE_TAIL = b"," + dump(_CACHE)[1:]
_OPENING = dump({"type": "text", "text": "Go on."})
_VERSION = "2023-06-01"


class AnthropicCodec:
    """Anthropic Messages for one conversation. `issuer` is another where an imitator signs its own reasoning."""

    def __init__(self, issuer: str = "anthropic") -> None:
        self.issuer = issuer
        self._head = BodyHead(_head)
        self._messages = GrowingMessages(self._encode_item, b'{"role":"%b","content":[', _OPENING)

    def encode(self, request: ModelRequest) -> WireRequest:
        """Return the request that asks for a streamed response."""
        messages = self._messages.of(request.history.items, _mark_for_the_cache)
        pieces = (self._head.of(request), b',"messages":[', *messages, b"]}")
        return WireRequest("POST", "/v1/messages", {**HEADERS, "anthropic-version": _VERSION}, pieces)

    def decoder(self, ids: CallIds) -> AnthropicReply:
        """Return a fresh decoder; it takes the ids of calls from `ids`."""
        return AnthropicReply(ids)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return what an HTTP error response means. Never raises."""
        return failures.from_response(status, headers, body)

    def _encode_item(self, item: User | Exchange) -> tuple[tuple[str, bytes], ...]:
        """Return the blocks of an item by role; a role without blocks is left out."""
        if isinstance(item, User):
            made = [("user", join(_user_block(part) for part in item.parts if not _is_blank(part)))]
        else:
            made = [
                ("assistant", join(self._assistant_blocks(item.message))),
                ("user", join(_result_block(result) for result in item.results)),
            ]
        return tuple((role, blocks) for role, blocks in made if blocks)

    def _assistant_blocks(self, message: Assistant) -> list[JSON]:
        own = message.issuer == self.issuer
        blocks: list[JSON] = []
        for part in message.parts:
            match part:
                case Text():
                    if not _is_blank(part):
                        citations = sealed(part.seal, "citations") if own else None
                        blocks.append(
                            {"type": "text", "text": part.text} | ({"citations": citations} if citations else {})
                        )
                case ToolCall() | BrokenCall():
                    blocks.append(
                        {
                            "type": "tool_use",
                            "id": fit_id(part.id),
                            "name": fit_name(part.name),
                            "input": arguments_of(part),
                        }
                    )
                case Thinking() if own:
                    blocks.extend(_thinking_blocks(part))
                case ServerBlock() if own:
                    blocks.append(part.raw)
                case _:
                    pass  # reasoning and server tools of another provider mean nothing to this one
        while blocks and blocks[-1]["type"] in {"thinking", "redacted_thinking"}:
            blocks.pop()  # the provider refuses a message that ends with reasoning
        return blocks


def _mark_for_the_cache(runs: list[tuple[str, list[bytes]]]) -> None:
    last_user = next(blocks for role, blocks in reversed(runs) if role == "user")
    last_user[-1] = last_user[-1][:-1] + _CACHE_TAIL  # every block is an object, so its last byte is a brace


def _head(request: ModelRequest) -> bytes:
    head: dict[str, JSON] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "stream": True,
    }
    if request.tools:
        head["tools"] = [
            {"name": fit_name(tool.name), "description": tool.description, "input_schema": tool.schema}
            for tool in request.tools
        ]
        head["tools"][-1].update(_CACHE)
    if request.system and not request.system.isspace():
        head["system"] = [{"type": "text", "text": request.system} | _CACHE]
    return dump(head)[:-1]


def _is_blank(part: Text | Image) -> bool:
    return isinstance(part, Text) and (not part.text or part.text.isspace())


def _user_block(part: Text | Image) -> JSON:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _result_block(result: ToolResult) -> JSON:
    block: dict[str, JSON] = {
        "type": "tool_result",
        "tool_use_id": fit_id(result.call_id),
        "content": [_user_block(part) for part in result_parts(result)],
    }
    if result.outcome is not Outcome.OK:
        block["is_error"] = True
    return block


def _thinking_blocks(part: Thinking) -> list[JSON]:
    """Return reasoning as it was issued, or nothing: without its proof the provider refuses it."""
    if sealed(part.seal, "signature"):
        return [{"type": "thinking", "thinking": part.text, "signature": sealed(part.seal, "signature")}]
    if sealed(part.seal, "redacted"):
        return [{"type": "redacted_thinking", "data": sealed(part.seal, "redacted")}]
    return []
