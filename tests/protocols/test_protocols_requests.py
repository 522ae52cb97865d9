"""Requests: nothing an engine can leave in a history makes a provider refuse the next request."""

import itertools
import json
from pathlib import Path

import pytest
from doubles.rules import violations
from hypothesis import given, settings
from strategies import requests

from novacode.protocols.anthropic import AnthropicCodec
from novacode.protocols.gemini import GeminiCodec
from novacode.protocols.ollama import OllamaCodec
from novacode.protocols.openai_chat import OpenAIChatCodec
from novacode.protocols.openai_responses import OpenAIResponsesCodec
from novacode.protocols.quirks import QUIRKS, quirks_for
from novacode.protocols.summary import PROTOCOLS, codec_for
from novacode.values.history import Exchange, History
from novacode.values.parts import Assistant, BrokenCall, Image, ServerBlock, Text, Thinking, ToolCall, User
from novacode.values.request import ModelRequest, ToolOffer
from novacode.values.results import Outcome, ToolResult

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": ["integer", "null"], "minimum": 1}},
    "required": ["path"],
    "additionalProperties": False,
}
TOOLS = (ToolOffer("read", "Reads a file.", SCHEMA), ToolOffer("list_todos", "Lists.", {"type": "object"}))

_SEALS = {
    "anthropic": {"signature": "sig=="},
    "openai-chat": {"field": "reasoning_content"},
    "openai-responses": {"id": "rs_1", "summary": [], "encrypted_content": "enc"},
    "gemini": {"thoughtSignature": "c2ln"},
    "ollama": {"field": "thinking"},
}


def body_of(codec, items, **more):
    request = ModelRequest("model-1", "Be brief.", History(tuple(items)), TOOLS, **more)
    return json.loads(codec.encode(request).body)


def ran(call, text="done", outcome=Outcome.OK):
    return ToolResult.of(call, outcome, text, began=outcome in {Outcome.OK, Outcome.ERROR, Outcome.TIMEOUT})


def conversation(issuer, seal):
    """Return one history with everything in it that a request can show."""
    ok = ToolCall("call_1", 1, "read", {"path": "caf\u00e9.txt"})
    cut = BrokenCall("call_2", 2, "read", '{"path": "b', "cut")
    denied = ToolCall("call.3", 3, "read", {})
    shown = ToolResult("call_1", "read", Outcome.OK, True, (Text("one"), Image("image/png", "aGk=")))
    parts = (Thinking("  hm\n", seal), ok, cut, denied)
    return [
        User((Text("Look at this"), Image("image/jpeg", "aGk="))),
        Exchange(
            Assistant(parts, issuer), (shown, ran(cut, "not JSON", Outcome.BROKEN), ran(denied, "no", Outcome.DENIED))
        ),
        User.said("And now?"),
        Exchange(Assistant((Text("Done."),), issuer)),
        User.said("Thanks"),
    ]


@pytest.mark.parametrize("foreign", [False, True], ids=["own", "foreign"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_request_is_the_golden_one(protocol, foreign):
    codec = codec_for(protocol) if protocol != "openai-chat" else OpenAIChatCodec(quirks_for("deepseek"))
    issuer = "elsewhere" if foreign else codec.issuer
    got = body_of(codec, conversation(issuer, _SEALS[protocol]), max_output_tokens=1000)
    assert violations(protocol, got) == []
    golden = GOLDEN / f"{protocol}-{'foreign' if foreign else 'own'}.json"
    assert got == json.loads(golden.read_text("utf-8")), f"if this is meant, write it to {golden}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(request=requests)
def test_no_history_is_refused(protocol, request):
    assert violations(protocol, codec_for(protocol).encode(request).body) == []


@pytest.mark.parametrize("provider", sorted(QUIRKS))
@settings(max_examples=20)
@given(request=requests)
def test_no_history_is_refused_by_any_dialect_of_chat(provider, request):
    body = json.loads(OpenAIChatCodec(quirks_for(provider)).encode(request).body)
    assert violations("openai-chat", body) == []
    quirks = quirks_for(provider)
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    assert all(len(identity) <= quirks.id_length for identity in ids)
    assert not quirks.id_plain or all(identity.isalnum() for identity in ids)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=25)
@given(request=requests)
def test_a_codec_that_knows_the_history_writes_the_same_bytes(protocol, request):
    codec = codec_for(protocol)
    for end in range(len(request.history.items) + 1):
        part = ModelRequest(request.model, request.system, History(request.history.items[:end]), request.tools)
        assert codec.encode(part).body == codec_for(protocol).encode(part).body


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "ollama"])
def test_the_prefix_is_the_same_bytes_from_turn_to_turn(protocol):
    codec, items = codec_for(protocol), conversation("", None)
    bodies = [
        codec.encode(ModelRequest("m", "s", History(tuple(items[:end])), TOOLS)).body
        for end in range(1, len(items) + 1)
    ]
    assert all(later.startswith(earlier[:-2]) for earlier, later in itertools.pairwise(bodies))


class _Counting(AnthropicCodec):
    encoded = 0

    def _assistant_blocks(self, message):
        self.encoded += 1
        return super()._assistant_blocks(message)


def test_an_item_is_encoded_once_in_the_life_of_a_codec():
    codec, items = _Counting(), []
    for number in range(50):
        items += [User.said(f"{number}"), Exchange(Assistant((Text("ok"),)))]
        codec.encode(ModelRequest("m", "", History(tuple(items))))
    assert codec.encoded == 50


def test_what_a_compaction_replaced_is_forgotten():
    codec = AnthropicCodec()
    codec.encode(ModelRequest("m", "", History(tuple(User.said(str(number)) for number in range(500)))))
    codec.encode(ModelRequest("m", "", History((User.said("summary"),))))
    assert codec._messages._seen == (User.said("summary"),)


def test_br_001_the_results_come_first_and_then_what_the_person_said():
    call = ToolCall("tu_1", 0, "shell", {})
    cancelled = ToolResult("tu_1", "shell", Outcome.CANCELLED, True, (Text("interrupted"),))
    got = body_of(AnthropicCodec(), [User.said("go"), Exchange(Assistant((call,)), (cancelled,)), User.said("hello")])
    assert [block["type"] for block in got["messages"][-1]["content"]] == ["tool_result", "text"]
    assert got["messages"][-1]["content"][0]["is_error"] is True


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_br_032_broken_arguments_go_back_as_an_object_that_holds_the_text(protocol):
    broken = BrokenCall("call_a", 0, "read", '{"path": a.txt}', "no JSON")
    exchange = Exchange(Assistant((broken,)), (ran(broken, "no JSON", Outcome.BROKEN),))
    body = codec_for(protocol).encode(ModelRequest("m", "", History((User.said("x"), exchange)))).body
    assert violations(protocol, body) == []
    assert b"a.txt}" in body


def test_br_033_the_wire_gets_the_form_of_its_provider_back_where_that_is_safe():
    codec = OpenAIChatCodec(quirks_for("moonshot"))
    calls = [ToolCall(f"call_{n}", 0, "read", {}, {"wire_id": "read:0"}) for n in range(2)]
    items = [Exchange(Assistant((call,), codec.issuer), (ran(call),)) for call in calls]
    sent = [message for message in body_of(codec, items)["messages"] if message["role"] in {"assistant", "tool"}]
    assert {m.get("tool_call_id") or m["tool_calls"][0]["id"] for m in sent} == {"read:0"}
    twice = Exchange(Assistant(tuple(calls), codec.issuer), tuple(map(ran, calls)))
    got = body_of(codec, [twice])["messages"][1]
    assert [call["id"] for call in got["tool_calls"]] == ["call_0", "call_1"]


def test_br_073_a_pause_goes_back_unchanged_as_the_last_message():
    raw = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    paused = Exchange(Assistant((ServerBlock("web_search", raw),), "anthropic"))
    got = body_of(AnthropicCodec(), [User.said("x"), paused])
    assert got["messages"][-1] == {"role": "assistant", "content": [raw]}
    answer = Exchange(Assistant((Text("Found."),), "anthropic"))
    assert [m["role"] for m in body_of(AnthropicCodec(), [User.said("x"), paused, answer])["messages"]] == [
        "user",
        "assistant",
    ]


def test_br_076_reasoning_goes_back_character_by_character():
    call = ToolCall("tu_1", 2, "read", {})
    parts = (
        Thinking("  Step \u00e9 \U0001f600\n\n", {"signature": "sig+/=="}),
        Thinking("", {"redacted": "opaque=="}),
        call,
    )
    got = body_of(AnthropicCodec(), [User.said("x"), Exchange(Assistant(parts, "anthropic"), (ran(call),))])
    assert got["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "  Step \u00e9 \U0001f600\n\n", "signature": "sig+/=="},
        {"type": "redacted_thinking", "data": "opaque=="},
    ]


def test_br_077_thought_signatures_stay_on_their_parts():
    first = ToolCall("call_1", 1, "read", {"path": "a"}, {"wire_id": "", "thoughtSignature": "c2lnMQ=="})
    second = ToolCall("call_2", 2, "read", {"path": "b"}, {"wire_id": ""})
    empty = Text("", {"thoughtSignature": "c2lnMg=="})
    message = Assistant((Thinking("plan"), first, second, empty), "gemini")
    got = body_of(GeminiCodec(), [User.said("x"), Exchange(message, (ran(first), ran(second)))])
    assert got["contents"][1]["parts"] == [
        {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2lnMQ=="},
        {"functionCall": {"name": "read", "args": {"path": "b"}}},
        {"text": "", "thoughtSignature": "c2lnMg=="},
    ]


def test_br_078_reasoning_items_keep_their_place_and_their_empty_fields():
    call = ToolCall("call_1", 3, "read", {"path": "a.txt"}, {"id": "fc_1"})
    proof = {"summary": [], "encrypted_content": "enc"}
    parts = (
        Thinking("", {"id": "rs_1"} | proof),
        Text("I will look.", {"id": "msg_1"}),
        Thinking("", {"id": "rs_2"} | proof),
        call,
    )
    codec = OpenAIResponsesCodec()
    got = body_of(codec, [User.said("x"), Exchange(Assistant(parts, codec.issuer), (ran(call),))])["input"]
    assert [item.get("id") or item["type"] for item in got] == [
        "message",
        "rs_1",
        "msg_1",
        "rs_2",
        "fc_1",
        "function_call_output",
    ]
    assert got[1] == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
    alone = Exchange(Assistant((Text("x"), Thinking("", {"id": "rs_1"} | proof)), codec.issuer))
    assert [item["type"] for item in body_of(codec, [User.said("x"), alone])["input"]] == ["message", "message"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_br_085_an_empty_answer_is_not_sent_and_the_session_goes_on(protocol):
    items = (User.said("a"), Exchange(Assistant((Text(""),))), Exchange(Assistant((Thinking("hm"),))), User.said("b"))
    assert violations(protocol, codec_for(protocol).encode(ModelRequest("m", "", History(items))).body) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reasoning_of_another_provider_is_left_out_whole(protocol):
    items = conversation("elsewhere", _SEALS[protocol])
    body = codec_for(protocol).encode(ModelRequest("m", "", History(tuple(items)))).body
    assert b"hm" not in body
    assert b"sig==" not in body


def test_where_requests_go():
    request = ModelRequest("m-1", "", History((User.said("x"),)))
    wires = {protocol: codec_for(protocol).encode(request) for protocol in PROTOCOLS}
    assert {protocol: (wire.method, wire.path) for protocol, wire in wires.items()} == {
        "anthropic": ("POST", "/v1/messages"),
        "openai-chat": ("POST", "/chat/completions"),
        "openai-responses": ("POST", "/responses"),
        "gemini": ("POST", "/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        "ollama": ("POST", "/api/chat"),
    }
    assert wires["anthropic"].headers["anthropic-version"] == "2023-06-01"


def test_images_of_results_where_a_tool_message_takes_none():
    call = ToolCall("call_1", 0, "read", {})
    result = ToolResult("call_1", "read", Outcome.OK, True, (Image("image/png", "aGk="),))
    got = body_of(OpenAIChatCodec(), [User.said("x"), Exchange(Assistant((call,)), (result,))])["messages"]
    assert got[-2]["content"] == "[image/png: see below]"
    assert got[-1]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def test_codecs_by_name():
    assert isinstance(codec_for("ollama"), OllamaCodec)
    with pytest.raises(Exception, match="anthropic, openai-chat"):
        codec_for("nope")
