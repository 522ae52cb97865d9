"""Gemini and Ollama's own protocol: bodies written by hand."""

import json

import pytest
from codec_checks import check_ends, check_order, check_splits, decode, summary
from wire_bodies import sse

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols.gemini_schema import gemini_schema
from novacode.values.events import CallBroken, CallOpened, CallReady, Finished, PartDone, TextDelta, UsageSeen
from novacode.values.parts import ServerBlock, Text, Thinking, ToolCall
from novacode.values.request import StopReason, Usage


def g(parts, finish=None, **more):
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}} | ({"finishReason": finish} if finish else {})],
        **more,
    }


def run(*messages, protocol="gemini"):
    body = sse(*messages) if protocol == "gemini" else b"".join(json.dumps(m).encode() + b"\n" for m in messages)
    events, error = decode(protocol, body)
    check_order(events, error)
    check_splits(protocol, body, times=5)
    check_ends(protocol, body, range(0, len(body), 5))
    return events, error


def ready(events):
    return [event.call for event in events if isinstance(event, CallReady)]


def fc(name, args=None, **more):
    return {"functionCall": {"name": name, **({"args": args} if args is not None else {})}, **more}


def test_br_077_signatures_stay_with_their_parts():
    events, _ = run(
        g([{"text": "plan", "thought": True}]),
        g([fc("read", {"path": "a.txt"}, thoughtSignature="c2lnMQ==")]),
        g([fc("read", {"path": "b.txt"})], "STOP"),
    )
    assert PartDone(0, Thinking("plan")) in events
    assert ready(events) == [
        ToolCall("call_1", 1, "read", {"path": "a.txt"}, {"wire_id": "", "thoughtSignature": "c2lnMQ=="}),
        ToolCall("call_2", 2, "read", {"path": "b.txt"}, {"wire_id": ""}),
    ]
    assert events[-1] == Finished(StopReason.TOOL_USE, "STOP")


def test_text_with_a_signature_stays_by_itself_also_when_empty():
    events, _ = run(
        g([{"text": "a"}]),
        g([{"text": "b"}]),
        g([{"text": "c", "thoughtSignature": "s1"}]),
        g([{"text": "", "thoughtSignature": "s2"}], "STOP"),
    )
    assert [event.part for event in events if isinstance(event, PartDone)] == [
        Text("ab"),
        Text("c", {"thoughtSignature": "s1"}),
        Text("", {"thoughtSignature": "s2"}),
    ]


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
@pytest.mark.parametrize("parts", [[], [fc("shell", {"command": "touch P"})]])
def test_br_075_a_call_that_could_not_be_read_fails_the_answer_and_nothing_runs(finish, parts):
    events, error = run(g(parts, finish))
    assert not [event for event in events if isinstance(event, CallReady | CallOpened)]
    assert isinstance(error, ModelFailed)
    assert (error.failure.retryable, error.failure.raw_type) == (True, finish)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("STOP", StopReason.END),
        ("MAX_TOKENS", StopReason.OUTPUT_LIMIT),
        ("SAFETY", StopReason.REFUSAL),
        ("RECITATION", StopReason.REFUSAL),
        ("BRAND_NEW", StopReason.UNKNOWN),
    ],
)
def test_br_080_finish_reasons(finish, stop):
    events, _ = run(g([{"text": "Half"}], finish))
    assert events[-1] == Finished(stop, finish)
    assert PartDone(0, Text("Half")) in events


def test_complete_calls_of_an_answer_at_the_output_limit_run():
    assert len(ready(run(g([fc("read", {})], "MAX_TOKENS"))[0])) == 1


def test_a_blocked_prompt_is_a_refusal():
    got = summary("gemini", sse({"promptFeedback": {"blockReason": "OTHER"}}))
    assert (got["stop"], got["stop_raw"], got["error"]) == ("refusal", "OTHER", {"type": "OTHER", "message": None})


def test_arguments_that_come_at_paths():
    def piece(path, **value):
        return {"jsonPath": path, **value}

    def more(*pieces, last=False):
        return g([{"functionCall": {"partialArgs": list(pieces)} | ({} if last else {"willContinue": True})}])

    events, _ = run(
        g([{"functionCall": {"name": "edit", "id": "f1", "willContinue": True}}]),
        more(piece("$.text", stringValue="ab", willContinue=True)),
        more(piece("$.text", stringValue="c"), piece("$.n", numberValue=2)),
        more(piece("$.list[0].x", boolValue=True), piece("$.list[1]", nullValue="NULL_VALUE")),
        more(piece("$['a.b']", stringValue="d"), last=True),
        g([{"text": "x"}], "STOP"),
    )
    wanted = {"text": "abc", "n": 2, "list": [{"x": True}, None], "a.b": "d"}
    assert ready(events) == [ToolCall("f1", 0, "edit", wanted)]


def test_streamed_arguments_that_never_end_are_broken():
    events, _ = run(
        g([{"functionCall": {"name": "edit", "willContinue": True}}]),
        g(
            [{"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "b"}], "willContinue": True}}],
            "MAX_TOKENS",
        ),
    )
    assert ready(events) == []
    assert [event.call.raw for event in events if isinstance(event, CallBroken)] == ['{"a":"b"}']


def test_usage_counts_thoughts_apart():
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 11, "cachedContentTokenCount": 3}
    events, _ = run(g([{"text": "x"}], "STOP", usageMetadata=usage))
    seen = next(event.usage for event in events if isinstance(event, UsageSeen))
    assert seen == Usage(5, 7, 3, None, 11, output_counts_reasoning=False)
    assert seen.completion == 18


def test_the_providers_own_code_is_kept_verbatim():
    part = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s"}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    events, _ = run(g([part]), g([result], "STOP"))
    assert [event.part for event in events if isinstance(event, PartDone)] == [
        ServerBlock("code_execution", part),
        ServerBlock("", result),
    ]


def test_large_integers_in_arguments_keep_their_digits():
    large = {"n": 12345678901234567890123}
    assert ready(run(g([fc("read", large)], "STOP"))[0])[0].arguments == large


def test_a_cut_answer_is_an_error():
    assert isinstance(run(g([{"text": "half"}]))[1], RemoteProtocolError)


def test_what_is_only_looked_at_in_the_end_is_read_as_carefully():
    body = sse(g([{"text": "x"}], "STOP"), {"candidates": [{"groundingMetadata": {"groundingChunks": 3}}]})
    assert isinstance(decode("gemini", body)[1], RemoteProtocolError)


def test_schemas_in_the_dialect():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2], "type": "integer"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "either": {"type": ["string", "integer"]},
            "edit": {"$ref": "#/$defs/Edit"},
            "all": {"type": "array", "items": {"$ref": "#/$defs/Edit"}, "uniqueItems": True},
            "when": {"type": "string", "format": "date-time"},
            "where": {"type": "string", "format": "uri"},
            "tree": {"$ref": "#/$defs/Tree"},
        },
        "required": ["mode", "gone"],
        "$defs": {
            "Edit": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]},
            "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
        },
    }
    got = gemini_schema(schema)
    edit = {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]}
    tree = got["properties"].pop("tree")
    assert tree["properties"]["next"]["type"] == "object"
    assert got == {
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["fast"]},
            "level": {"type": "string", "enum": ["1", "2"]},
            "maybe": {"type": "string", "nullable": True, "default": None},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "edit": edit,
            "all": {"type": "array", "items": edit},
            "when": {"type": "string", "format": "date-time"},
            "where": {"type": "string"},
        },
        "required": ["mode"],
    }


def test_ollama_whole_calls_without_ids():
    calls = [{"function": {"name": "read", "arguments": {"path": path}}} for path in "ab"]
    events, _ = run(
        {"model": "m", "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False},
        {
            "model": "m",
            "message": {"content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 1,
            "eval_count": 2,
        },
        protocol="ollama",
    )
    assert PartDone(0, Thinking("hm", {"field": "thinking"})) in events
    assert ready(events) == [ToolCall("call_1", 1, "read", {"path": "a"}), ToolCall("call_2", 2, "read", {"path": "b"})]
    assert events[-2:] == [UsageSeen(Usage(1, 2)), Finished(StopReason.TOOL_USE, "stop")]


def test_ollama_errors_and_cuts():
    text = {"model": "m", "message": {"content": "x"}, "done": False}
    events, error = run(text, {"error": "model runner stopped"}, protocol="ollama")
    assert TextDelta(0, "x") in events
    assert str(error) == "model runner stopped"
    assert isinstance(run(text, protocol="ollama")[1], RemoteProtocolError)
