"""Mutated bodies: whatever a peer sends, there are events and at most one of two errors."""

import json
import random

import pytest
from codec_checks import check_order, cut, decode, seen
from hypothesis import given
from hypothesis import strategies as st
from recorded_streams import recorded
from wire_bodies import a_end, a_text, a_tool, anthropic, chat, sse, tool

from novacode.protocols.summary import PROTOCOLS, summarise

_JUNK = st.sampled_from([None, True, 0, -1, 3.5, "", "x", "null", [], [1], [[]], {}, {"type": "text"}, {"index": {}}])

_BODIES = {
    "anthropic": anthropic(a_text(0, "Hi"), a_tool(1, "tu_1", "read", '{"a":1}'), a_end("tool_use")),
    "openai-chat": chat(
        {"content": "Hi", "reasoning": "r", "reasoning_details": [{"type": "reasoning.text", "text": "r"}]},
        tool(0, "a", "read", '{"a":'),
        tool(0, arguments="1}"),
        {"content": [{"type": "thinking", "thinking": [{"text": "t"}]}], "executed_tools": [{"index": 0}]},
    )
    + sse({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 2}}}),
    "openai-responses": sse(
        {"type": "response.created", "response": {"id": "r", "model": "m"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "function_call", "call_id": "c", "name": "n"},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "function_call", "call_id": "c", "name": "n"},
        },
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Hi"},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "message", "content": [{"text": "Hi"}]},
        },
        {
            "type": "response.output_item.done",
            "output_index": 2,
            "item": {"type": "reasoning", "summary": [{"text": "r"}]},
        },
        {"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 1}}},
    ),
    "gemini": sse(
        {"candidates": [{"content": {"parts": [{"text": "Hi", "thoughtSignature": "s"}]}}], "modelVersion": "m"},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "n", "args": {"a": 1}}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "n", "willContinue": True}}]}}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x"}]}}]
                    }
                }
            ]
        },
        {"candidates": [{"finishReason": "STOP", "groundingMetadata": {"groundingChunks": [{"web": {}}]}}]},
        {"usageMetadata": {"promptTokenCount": 1}},
    ),
    "ollama": b'{"model":"m","message":{"content":"Hi","tool_calls":[{"function":{"name":"n","arguments":{}}}]}}\n'
    b'{"done":true,"done_reason":"stop","prompt_eval_count":1}\n',
}


def _places(value, path=()):
    """Return every place inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path]
    for key, item in inner:
        found += _places(item, (*path, key))
    return found


def _put(value, path, junk):
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _put(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize("protocol", sorted(_BODIES))
@given(data=st.data())
def test_a_message_of_the_wrong_shape(protocol, data):
    lines = _BODIES[protocol].split(b"\n")
    at = data.draw(st.sampled_from([n for n, line in enumerate(lines) if b"{" in line]))
    head, _, payload = lines[at].partition(b" ") if lines[at].startswith(b"data") else (b"", b"", lines[at])
    message = json.loads(payload)
    mutated = _put(message, data.draw(st.sampled_from(_places(message))), data.draw(_JUNK))
    lines[at] = (head + b" " + json.dumps(mutated).encode()).strip()
    body = b"\n".join(lines)
    events, error = decode(protocol, body)
    check_order(events, error)
    json.dumps(summarise(events, error))
    positions = data.draw(st.lists(st.integers(0, len(body)), max_size=5))
    assert seen(decode(protocol, *cut(body, positions))) == seen((events, error))


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@given(st.binary(max_size=200))
def test_bytes_that_are_no_stream(protocol, body):
    check_order(*decode(protocol, body))


@pytest.mark.parametrize("protocol", sorted(_BODIES))
@given(data=st.data())
def test_bytes_that_were_hurt_on_the_way(protocol, data):
    body = bytearray(_BODIES[protocol])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.sampled_from(b'\x00\xff{}[]",:\\\n\r 0a'))
    check_order(*decode(protocol, bytes(body)))


@pytest.mark.parametrize("stream", recorded())
def test_recorded_streams_that_were_hurt_on_the_way(stream):
    rng = random.Random(stream.name)
    for _ in range(10):
        body = bytearray(stream.body)
        for _ in range(rng.randrange(1, 5)):
            body[rng.randrange(len(body))] = rng.choice(b'\x00\xff{}[]",:\\\n\r 0a')
        check_order(*decode(stream.protocol, bytes(body)))
