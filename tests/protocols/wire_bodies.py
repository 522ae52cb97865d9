"""Response bodies written by hand, in the short forms of the wire protocols."""

from __future__ import annotations

import json

A_START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    },
}


def sse(*messages, done=False):
    """Frame messages as a body; `bytes` go in as they are."""
    framed = [m if isinstance(m, bytes) else b"data: " + json.dumps(m).encode() + b"\n\n" for m in messages]
    return b"".join(framed) + (b"data: [DONE]\n\n" if done else b"")


def a_text(index, text):
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": index},
    ]


def a_open(index, identity, name, **more):
    block = {"type": "tool_use", "id": identity, "name": name, "input": {}, **more}
    return {"type": "content_block_start", "index": index, "content_block": block}


def a_json(index, text):
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


def a_stop(index):
    return {"type": "content_block_stop", "index": index}


def a_tool(index, identity, name, arguments):
    return [a_open(index, identity, name), a_json(index, arguments), a_stop(index)]


def a_end(stop):
    return [
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]


def anthropic(*messages):
    """Frame Anthropic events; lists are spliced in, and the start is added."""
    flat = [A_START]
    for message in messages:
        flat.extend(message if isinstance(message, list) else [message])
    return sse(*flat)


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def tool(index=None, identity=None, name=None, arguments=None, **more):
    """Return a delta with one fragment of a call; `None` leaves a field out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {key: value for key, value in (("index", index), ("id", identity)) if value is not None}
    return {"tool_calls": [{**entry, "function": function, **more}]}


def chat(*deltas, finish="tool_calls", done=True):
    """Frame Chat Completions deltas, then the finish reason (`None`: none at all) and `[DONE]`."""
    messages = [delta if isinstance(delta, bytes) or "choices" in delta else chunk(delta) for delta in deltas]
    if finish is not None:
        messages.append(chunk({}, finish))
    return sse(*messages, done=done)
