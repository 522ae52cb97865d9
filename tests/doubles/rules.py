"""What the real services refuse, as rules over a request body: `violations(protocol, body)` says which are broken.

Pure, so that a fake server, a codec test and a property over made-up histories can share it. Each rule is one that a
provider documents or that a user of an agent has met as a 400.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_GEMINI_KEYS = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "pattern",
    "anyOf",
    "propertyOrdering",
    "default",
    "example",
}


def violations(protocol: str, body: bytes | str | Mapping[str, Any]) -> list[str]:
    """Return what the service behind `protocol` would refuse in a request body; empty means it answers 200."""
    if not isinstance(body, Mapping):
        try:
            body = json.loads(body, parse_constant=_no_constant)
        except ValueError as error:
            return [f"the body is not JSON: {error}"]
    return list(_RULES[protocol](body))


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


# --- Anthropic ------------------------------------------------------------------------------------------------------


def _anthropic(body: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens is required"
    if json.dumps(body).count('"cache_control"') > 4:
        yield "more than four cache breakpoints"
    messages = body.get("messages") or []
    yield from _alternating([message["role"] for message in messages])
    ids = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    if len(set(ids)) < len(ids):
        yield f"a tool_use id occurs twice: {ids}"
    for at, message in enumerate(messages):
        if not message["content"]:
            yield f"message {at} is empty"
        if message["role"] == "assistant":
            following = messages[at + 1]["content"] if at + 1 < len(messages) else []
            yield from _anthropic_assistant(at, message["content"], following)
        else:
            before = messages[at - 1]["content"] if at else []
            yield from _anthropic_user(at, message["content"], before)
    for tool in body.get("tools") or []:
        if not _NAME.match(tool["name"]) or tool["input_schema"].get("type") != "object":
            yield f"tool {tool['name']!r} has a bad name or schema"


def _alternating(roles: list[str]) -> Iterator[str]:
    if not roles or roles[0] != "user":
        yield "the first message must be the user's"
    for at, (before, role) in enumerate(itertools.pairwise(roles)):
        if before == role:
            yield f"message {at + 1} has the role of the one before"


def _anthropic_assistant(at: int, blocks: list[dict[str, Any]], following: list[dict[str, Any]]) -> Iterator[str]:
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    given = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
    if sorted(given) != sorted(called):
        yield f"message {at} has calls {called} and results {given}"
    for block in blocks:
        yield from _anthropic_text(at, block)
        if block["type"] == "tool_use":
            if not _ID.match(block["id"]) or not _NAME.match(block["name"]):
                yield f"message {at}: bad tool_use id or name {block['id']!r} {block['name']!r}"
            if not isinstance(block["input"], dict):
                yield f"message {at}: tool_use input is {block['input']!r}"
        if block["type"] == "thinking" and not block.get("signature"):
            yield f"message {at}: thinking without signature"
    if blocks and blocks[-1]["type"] in {"thinking", "redacted_thinking"}:
        yield f"message {at} ends with thinking"


def _anthropic_user(at: int, blocks: list[dict[str, Any]], before: list[dict[str, Any]]) -> Iterator[str]:
    called = {block["id"] for block in before if block["type"] == "tool_use"}
    after_other = False
    for block in blocks:
        yield from _anthropic_text(at, block)
        if block["type"] != "tool_result":
            after_other = True
            continue
        if after_other:
            yield f"message {at}: a tool_result stands after other content"
        if block["tool_use_id"] not in called:
            yield f"message {at}: tool_result for {block['tool_use_id']}, which was not called"
        content = block.get("content") or []
        for inner in content:
            yield from _anthropic_text(at, inner)
        if block.get("is_error") and (not content or any(inner["type"] != "text" for inner in content)):
            yield f"message {at}: a failed tool_result must be text"


def _anthropic_text(at: int, block: dict[str, Any]) -> Iterator[str]:
    if block["type"] == "text" and not block["text"].strip():
        yield f"message {at}: blank text"


# --- Chat Completions -----------------------------------------------------------------------------------------------


def _openai_chat(body: Mapping[str, Any]) -> Iterator[str]:
    open_ids: list[str] = []
    for at, message in enumerate(body.get("messages") or []):
        role = message["role"]
        if role == "tool":
            yield from _chat_result(at, message, open_ids)
            continue
        if open_ids:
            yield f"message {at} comes before the results of {open_ids}"
            open_ids = []
        if role == "assistant":
            yield from _chat_assistant(at, message)
            open_ids = [call["id"] for call in message.get("tool_calls") or []]
        elif role not in {"system", "developer", "user"} or not message.get("content"):
            yield f"message {at} is empty or has a role nobody knows: {role!r}"
    if open_ids:
        yield f"no results for {open_ids}"
    for tool in body.get("tools") or []:
        if not _NAME.match(tool["function"]["name"]):
            yield f"tool name {tool['function']['name']!r}"


def _chat_result(at: int, message: Mapping[str, Any], open_ids: list[str]) -> Iterator[str]:
    if message["tool_call_id"] in open_ids:
        open_ids.remove(message["tool_call_id"])
    else:
        yield f"message {at} answers {message['tool_call_id']!r}, which is not open"
    if not message.get("content"):
        yield f"message {at}: a tool message without content"


def _chat_assistant(at: int, message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if not calls and not message.get("content"):
        yield f"message {at} is an assistant message without content and calls"
    if calls is not None and not calls:
        yield f"message {at} has an empty list of calls"
    for call in calls or []:
        yield from _chat_call(at, call)
    ids = [call["id"] for call in calls or []]
    if len(set(ids)) != len(ids):
        yield f"message {at} has one id twice: {ids}"


def _chat_call(at: int, call: Mapping[str, Any]) -> Iterator[str]:
    if not call["id"] or len(call["id"]) > 64:
        yield f"message {at}: call id {call['id']!r}"
    if not _NAME.match(call["function"]["name"]):
        yield f"message {at}: call name {call['function']['name']!r}"
    yield from _json_object(f"message {at}", call["function"]["arguments"])


def _json_object(where: str, text: Any) -> Iterator[str]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (TypeError, ValueError):
        value = None
    if not isinstance(value, dict):
        yield f"{where}: arguments are not a JSON object: {text!r}"


# --- Responses ------------------------------------------------------------------------------------------------------


def _openai_responses(body: Mapping[str, Any]) -> Iterator[str]:
    items = body.get("input") or []
    called = [item["call_id"] for item in items if item["type"] == "function_call"]
    answered = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    if sorted(called) != sorted(answered) or len(set(called)) != len(called):
        yield f"calls {called} and outputs {answered} do not pair"
    open_ids: set[str] = set()
    for at, item in enumerate(items):
        match item["type"]:
            case "function_call":
                open_ids.add(item["call_id"])
                yield from _responses_call(at, item)
            case "function_call_output":
                if item["call_id"] not in open_ids or not item["output"]:
                    yield f"item {at} answers {item['call_id']} before it was called, or with nothing"
                open_ids.discard(item["call_id"])
            case "message":
                if open_ids and item["role"] == "user":
                    yield f"item {at} comes before the outputs of {sorted(open_ids)}"
                yield from _responses_message(at, item)
            case "reasoning":
                yield from _responses_reasoning(at, item, items[at + 1] if at + 1 < len(items) else None)


def _responses_call(at: int, item: Mapping[str, Any]) -> Iterator[str]:
    if not _ID.match(item["call_id"]) or not _NAME.match(item["name"]):
        yield f"item {at}: call id or name {item['call_id']!r} {item['name']!r}"
    yield from _json_object(f"item {at}", item["arguments"])


def _responses_message(at: int, item: Mapping[str, Any]) -> Iterator[str]:
    wanted = "output_text" if item["role"] == "assistant" else "input_"
    if not item["content"] or not all(part["type"].startswith(wanted) for part in item["content"]):
        yield f"item {at} has content {item['content']}"


def _responses_reasoning(at: int, item: Mapping[str, Any], following: Mapping[str, Any] | None) -> Iterator[str]:
    if following is None or following["type"] == "function_call_output" or following.get("role") == "user":
        yield f"item {at} is reasoning that nothing follows"
    if "summary" not in item:
        yield f"item {at} is reasoning without its summary"


# --- Gemini ---------------------------------------------------------------------------------------------------------


def _gemini(body: Mapping[str, Any]) -> Iterator[str]:
    contents = body.get("contents") or []
    yield from _alternating([content["role"] for content in contents])
    for at, content in enumerate(contents):
        following = contents[at + 1]["parts"] if at + 1 < len(contents) else []
        before = contents[at - 1]["parts"] if at else []
        yield from _gemini_parts(at, content["parts"])
        if content["role"] == "model":
            calls = [_key(part["functionCall"]) for part in content["parts"] if "functionCall" in part]
            given = [_key(part["functionResponse"]) for part in following if "functionResponse" in part]
            if calls != given:
                yield f"content {at} has calls {calls} and answers {given}"
        elif _any(content["parts"], "functionResponse") and not _any(before, "functionCall"):
            yield f"content {at} answers calls that were not made"
    for tools in body.get("tools") or []:
        for tool in tools["functionDeclarations"]:
            yield from _gemini_schema(tool["name"], tool.get("parameters") or {"type": "string"})


def _gemini_parts(at: int, parts: list[dict[str, Any]]) -> Iterator[str]:
    if not parts:
        yield f"content {at} is empty"
    for part in parts:
        if not part or (part.get("text") == "" and "thoughtSignature" not in part):
            yield f"content {at} has an empty part"
        call = part.get("functionCall")
        if call is not None and (not _NAME.match(call["name"]) or not isinstance(call["args"], dict)):
            yield f"content {at}: bad call {call}"


def _any(parts: list[dict[str, Any]], key: str) -> bool:
    return any(key in part for part in parts)


def _key(value: Mapping[str, Any]) -> tuple[Any, Any]:
    return value.get("id"), value["name"]


def _gemini_schema(where: str, schema: Mapping[str, Any]) -> Iterator[str]:
    unknown = set(schema) - _GEMINI_KEYS
    if unknown:
        yield f"{where}: schema fields {sorted(unknown)} are not known"
    if "type" not in schema and "anyOf" not in schema:
        yield f"{where}: a schema without type"
    if isinstance(schema.get("type"), list):
        yield f"{where}: a list of types"
    if schema.get("type") == "object" and "properties" in schema and not schema["properties"]:
        yield f"{where}: an object without properties"
    if "enum" in schema and not all(isinstance(value, str) for value in schema["enum"]):
        yield f"{where}: an enum of other things than strings"
    for name, inner in (schema.get("properties") or {}).items():
        yield from _gemini_schema(f"{where}.{name}", inner)
    if schema.get("type") == "array":
        yield from _gemini_schema(f"{where}[]", schema.get("items") or {})
    for inner in schema.get("anyOf") or []:
        yield from _gemini_schema(where, inner)


def _ollama(body: Mapping[str, Any]) -> Iterator[str]:
    waiting = 0
    for at, message in enumerate(body.get("messages") or []):
        if message["role"] == "tool":
            waiting -= 1
        elif waiting:
            yield f"message {at} comes before {waiting} results"
        calls = message.get("tool_calls") or []
        waiting += len(calls)
        if any(not isinstance(call["function"]["arguments"], dict) for call in calls):
            yield f"message {at}: arguments are not an object"
        if not message.get("content") and not calls and not message.get("images"):
            yield f"message {at} is empty"
    if waiting:
        yield f"{waiting} results are missing"


_RULES: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "anthropic": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini": _gemini,
    "ollama": _ollama,
}
