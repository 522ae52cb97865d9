"""The rule set finds what it is there to find: each real refusal, put in on purpose."""

import copy
import json

import pytest
from doubles.rules import violations

from novacode.protocols.summary import PROTOCOLS, codec_for
from novacode.values.history import Exchange, History
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import ModelRequest, ToolOffer
from novacode.values.results import Outcome, ToolResult


def good(protocol):
    call = ToolCall("call_1", 1, "read", {"path": "a"})
    result = ToolResult.of(call, Outcome.OK, "one", began=True)
    items = (User.said("Hi"), Exchange(Assistant((Text("Yes"), call)), (result,)), User.said("And?"))
    tools = (ToolOffer("read", "d", {"type": "object", "properties": {"path": {"type": "string"}}}),)
    return json.loads(codec_for(protocol).encode(ModelRequest("m", "s", History(items), tools)).body)


def _at(body, path):
    for key in path:
        body = body[key]
    return body


FAULTS = {
    "anthropic": [
        (("messages", 2, "content"), lambda blocks: blocks.pop(0)),
        (("messages", 2, "content"), lambda blocks: blocks.reverse()),
        (("messages", 1, "content", 1), lambda block: block.update(id="a.b")),
        (("messages", 1, "content", 1), lambda block: block.update(input="x")),
        (("messages", 1, "content", 0), lambda block: block.update(text=" ")),
        (("messages", 1, "content"), lambda blocks: blocks.append({"type": "thinking", "thinking": "x"})),
        (("messages",), lambda messages: messages.pop(0)),
        ((), lambda body: body.pop("max_tokens")),
    ],
    "openai-chat": [
        (("messages",), lambda messages: messages.pop(3)),
        (("messages",), lambda messages: messages.pop(2)),
        (("messages", 2, "tool_calls", 0, "function"), lambda function: function.update(arguments="{")),
        (("messages", 2, "tool_calls", 0, "function"), lambda function: function.update(arguments="")),
        (("messages",), lambda messages: messages.append({"role": "assistant", "content": ""})),
        (("messages", 3), lambda message: message.update(content="")),
    ],
    "openai-responses": [
        (("input",), lambda items: items.pop(3)),
        (("input",), lambda items: items.insert(3, items.pop(4))),
        (("input", 2), lambda item: item.update(arguments="x")),
        (("input",), lambda items: items.append({"type": "reasoning", "summary": []})),
    ],
    "gemini": [
        (("contents", 2, "parts"), lambda parts: parts.pop(0)),
        (("contents",), lambda contents: contents.pop(1)),
        (("contents", 1, "parts", 0), lambda part: part.update(text="")),
        (
            ("tools", 0, "functionDeclarations", 0, "parameters"),
            lambda schema: schema.update(additionalProperties=False),
        ),
        (("tools", 0, "functionDeclarations", 0, "parameters"), lambda schema: schema.update(type=["object", "null"])),
    ],
    "ollama": [
        (("messages",), lambda messages: messages.pop(3)),
        (("messages", 2, "tool_calls", 0, "function"), lambda function: function.update(arguments="{}")),
    ],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_good_request_breaks_no_rule(protocol):
    assert violations(protocol, good(protocol)) == []


@pytest.mark.parametrize(("protocol", "number"), [(p, n) for p, faults in FAULTS.items() for n in range(len(faults))])
def test_each_fault_is_found(protocol, number):
    body = copy.deepcopy(good(protocol))
    path, spoil = FAULTS[protocol][number]
    spoil(_at(body, path))
    assert violations(protocol, body) != []


def test_what_is_no_json_is_found():
    assert violations("anthropic", b'{"max_tokens": NaN}') != []
