"""Reply bodies of the two oldest protocols, written by hand for servers in tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["Call", "anthropic", "chat"]

Call = tuple[str, str, dict[str, Any]]
"""(id, tool, arguments)"""


def anthropic(text: str = "", calls: Sequence[Call] = (), stop: str | None = None) -> list[bytes]:
    """Return the frames of one Anthropic Messages reply; `stop` is worked out where it is not given."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"id": "m", "role": "assistant", "model": "m", "content": [], "usage": usage},
        }
    ]
    index = 0
    if text:
        events += _block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
        index += 1
    for call_id, name, arguments in calls:
        opened = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        events += _block(index, opened, {"type": "input_json_delta", "partial_json": json.dumps(arguments)})
        index += 1
    reason = stop or ("tool_use" if calls else "end_turn")
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def _block(index: int, opened: dict[str, Any], delta: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": opened},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def chat(text: str = "", calls: Sequence[Call] = (), stop: str | None = None) -> list[bytes]:
    """Return the frames of one Chat Completions reply."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}] if text else []
    for index, (call_id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        deltas.append({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = stop or ("tool_calls" if calls else "stop")
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return [f"data: {json.dumps({'id': 'c', 'model': 'm', **chunk})}\n\n".encode() for chunk in chunks] + [
        b"data: [DONE]\n\n"
    ]
