"""Chat Completions: the quirks of its imitators, in bodies written by hand."""

import json

import pytest
from codec_checks import check_ends, check_order, check_splits, decode, summary
from wire_bodies import chat, chunk, sse, tool

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols import jsonio
from novacode.protocols.openai_chat_reply import OpenAIChatReply
from novacode.values.events import (
    CallBroken,
    CallDelta,
    CallOpened,
    CallReady,
    Finished,
    Notice,
    PartDone,
    Started,
    TextDelta,
    UsageSeen,
)
from novacode.values.failure import FailureKind
from novacode.values.ids import CallIds
from novacode.values.parts import Text, Thinking, ToolCall
from novacode.values.request import StopReason, Usage


def run(body, **more):
    events, error = decode("openai-chat", body, **more)
    check_order(events, error)
    check_splits("openai-chat", body, times=5)
    return events, error


def calls(body, **more):
    """Return (id, name, arguments) of the calls to run, and check that nothing else came of them."""
    events, error = run(body, **more)
    assert error is None
    assert not [event for event in events if isinstance(event, CallBroken)]
    ready = [event.call for event in events if isinstance(event, CallReady)]
    return [(call.id, call.name, call.arguments) for call in ready]


A, B = {"path": "a.txt"}, {"path": "b.txt"}
JA, JB = json.dumps(A), json.dumps(B)


def test_every_event_of_a_text_and_a_call():
    usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}
    body = sse(
        chunk({"content": "Hi"}), chunk(tool(0, "call_a", "read", JA)), chunk({}, "tool_calls"), usage, done=True
    )
    assert run(body)[0] == [
        Started("m", "c1"),
        TextDelta(0, "Hi"),
        PartDone(0, Text("Hi")),
        CallOpened(1, "call_a", "read"),
        CallDelta(1, "call_a", "read", JA),
        CallReady(1, ToolCall("call_a", 1, "read", A)),
        UsageSeen(Usage(5, 7)),
        Finished(StopReason.TOOL_USE, "tool_calls"),
    ]


def test_br_025_one_index_and_two_ids_are_two_calls():
    body = chat(tool(0, "call_a", "read", JA), tool(0, "call_b", "read", JB))
    assert calls(body) == [("call_a", "read", A), ("call_b", "read", B)]


def test_one_index_no_ids_and_whole_arguments_are_two_calls():
    body = chat(tool(0, None, "read", JA), tool(0, None, "read", JB))
    assert [arguments for _, _, arguments in calls(body)] == [A, B]


def test_br_026_interleaved_fragments_with_ids_only_in_the_first():
    body = chat(
        tool(0, "call_a", "read", ""),
        tool(1, "call_b", "read", ""),
        tool(0, arguments='{"path":'),
        tool(1, arguments='{"path":"b'),
        tool(0, arguments='"a.txt"}'),
        tool(1, arguments='.txt"}'),
    )
    assert calls(body) == [("call_a", "read", A), ("call_b", "read", B)]
    events, _ = decode("openai-chat", body)
    ready = next(at for at, event in enumerate(events) if isinstance(event, CallReady))
    assert (
        "".join(e.fragment for e in events[:ready] if isinstance(e, CallDelta) and e.id == "call_a")
        == '{"path":"a.txt"}'
    )


def test_br_027_empty_and_null_heads_do_not_overwrite():
    body = chat(
        tool(0, "call_a", "read", '{"path":'),
        tool(0, "", "null", '"a.t', type="function"),
        {"tool_calls": [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": 'xt"}'}}]},
    )
    assert calls(body) == [("call_a", "read", A)]


def test_br_028_a_repeated_name_counts_once():
    body = chat(tool(0, "call_a", "read_file", '{"pa'), tool(0, "call_a", "read_file", 'th":"a.txt"}'))
    assert calls(body) == [("call_a", "read_file", A)]


def test_br_028_a_name_in_two_pieces():
    body = chat(tool(0, "call_a", "read_", ""), tool(0, name="file", arguments=JA))
    assert calls(body) == [("call_a", "read_file", A)]


def test_a_name_that_grows_in_each_fragment():
    body = chat(tool(0, "call_a", "read_", ""), tool(0, name="read_file", arguments=JA))
    assert calls(body) == [("call_a", "read_file", A)]


def test_br_028_a_name_that_is_a_tool_takes_no_more_pieces_and_is_told_at_once():
    decoder = OpenAIChatReply(CallIds(), ["read"])
    assert decoder.feed(sse(chunk(tool(0, "call_a", "read", ""))))[-1] == CallOpened(0, "call_a", "read")
    events = decoder.feed(chat(tool(0, name="_file", arguments=JA)))
    assert CallReady(0, ToolCall("call_a", 0, "read", A)) in events


@pytest.mark.parametrize("arguments", ["", None, {}, "{}"])
def test_br_029_no_arguments(arguments):
    function = {"name": "list_todos"} | ({} if arguments == {} else {"arguments": arguments})
    body = chat({"tool_calls": [{"index": 0, "id": "call_a", "function": function}]})
    assert calls(body) == [("call_a", "list_todos", {})]


def test_br_029_null_first_and_text_later():
    body = chat(
        {"tool_calls": [{"index": 0, "id": "call_b", "function": {"name": "read", "arguments": None}}]},
        tool(0, arguments=JA),
    )
    assert calls(body) == [("call_b", "read", A)]


@pytest.mark.parametrize("pieces", [["{}"], ["{", "}"], ["{}", " "], ["{ }"]])
def test_empty_braces_first_and_the_arguments_after(pieces):
    heads = [tool(0, "call_a", "read", pieces[0]), *[tool(0, arguments=piece) for piece in pieces[1:]]]
    assert calls(chat(*heads, tool(0, arguments=JA))) == [("call_a", "read", A)]


def test_empty_braces_wait_although_another_call_begins():
    body = chat(tool(0, "call_a", "read", "{}"), tool(1, "call_b", "read", JB), tool(0, arguments=JA))
    assert sorted(calls(body)) == [("call_a", "read", A), ("call_b", "read", B)]


@pytest.mark.parametrize("fast", [True, False])
def test_br_030_no_index_and_objects_as_arguments(fast, monkeypatch):
    if not fast:
        monkeypatch.setattr(jsonio, "_fast", None)
    large = {"n": 12345678901234567890123}
    delta = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call_x", "function": {"name": "read", "arguments": A}},
            {"id": "call_y", "function": {"name": "read", "arguments": large}},
        ],
    }
    assert calls(chat(delta, finish="stop")) == [("call_x", "read", A), ("call_y", "read", large)]


def test_neither_index_nor_id():
    body = chat(tool(name="read", arguments='{"path":'), tool(arguments='"a.txt"}'), tool(name="read", arguments=JB))
    assert [arguments for _, _, arguments in calls(body)] == [A, B]


def test_a_repeated_head_without_arguments_is_no_second_call():
    body = chat(tool(0, "", "read", JA), tool(0, "", "read", ""), {"content": "x"}, tool(0, "", "read", ""))
    assert [arguments for _, _, arguments in calls(body)] == [A]


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call"])
def test_br_031_calls_count_whatever_the_finish_reason_says(finish):
    events, _ = run(chat(tool(0, "call_a", "read", JA), finish=finish))
    assert CallReady(0, ToolCall("call_a", 0, "read", A)) in events
    assert events[-1] == Finished(StopReason.TOOL_USE, finish)


def test_br_032_arguments_that_are_no_json():
    events, _ = run(chat(tool(0, "call_a", "read", '{"path": a.txt}')))
    broken = next(event.call for event in events if isinstance(event, CallBroken))
    assert (broken.id, broken.name, broken.raw) == ("call_a", "read", '{"path": a.txt}')
    assert "a.txt" in broken.problem


def test_br_033_ids_that_repeat_from_turn_to_turn():
    ids, body = CallIds(), chat(tool(0, "read:0", "read", JA))
    turns = [
        next(e.call for e in decode("openai-chat", body, ids=ids)[0] if isinstance(e, CallReady)) for _ in range(3)
    ]
    assert [call.id for call in turns] == ["read:0", "call_1", "call_2"]
    assert [call.seal for call in turns] == [None, {"wire_id": "read:0"}, {"wire_id": "read:0"}]


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "length", None])
def test_br_072_cut_arguments_never_run_whatever_the_end(finish):
    events, _ = run(chat(tool(0, "call_a", "edit", '{"path":"a.py","old":"x","new":"y'), finish=finish))
    assert not [event for event in events if isinstance(event, CallReady)]
    broken = next(event.call for event in events if isinstance(event, CallBroken))
    assert ("output limit" if finish == "length" else "truncated") in broken.problem
    assert [event for event in events if isinstance(event, Notice)] != [] or finish is not None


def test_a_call_cut_before_its_first_argument_is_not_a_call_without_arguments():
    events, _ = run(chat(tool(0, "call_a", "list", ""), tool(1, "call_b", "list", ""), finish="length"))
    assert [event.call.id for event in events if isinstance(event, CallReady)] == ["call_a"]
    assert [event.call.id for event in events if isinstance(event, CallBroken)] == ["call_b"]


def test_complete_calls_of_a_cut_answer_run():
    events, _ = run(chat(tool(0, "call_a", "read", JA), tool(1, "call_b", "read", '{"pa'), finish="length"))
    assert [event.call.id for event in events if isinstance(event, CallReady)] == ["call_a"]
    assert [event.call.id for event in events if isinstance(event, CallBroken)] == ["call_b"]


def test_a_call_is_ready_when_the_next_part_begins_not_before():
    decoder = OpenAIChatReply(CallIds())
    head = sse(chunk(tool(0, "call_a", "read", JA)))
    assert not [event for event in decoder.feed(head) if isinstance(event, CallReady)]
    assert decoder.feed(sse(chunk({"content": "and"})))[0] == CallReady(0, ToolCall("call_a", 0, "read", A))


def test_what_comes_for_a_complete_call_is_told_and_ignored():
    events, _ = run(chat(tool(0, "call_a", "read", JA), {"content": "x"}, tool(0, arguments=JB)))
    assert [event.call.arguments for event in events if isinstance(event, CallReady)] == [A]
    assert "call_a" in next(event for event in events if isinstance(event, Notice)).text


def test_two_objects_as_arguments_of_one_call_are_broken():
    events, _ = run(chat(tool(0, "call_a", "read", JA), tool(0, arguments=JB)))
    assert [event.call.raw for event in events if isinstance(event, CallBroken)] == [JA + JB]


def test_a_call_without_a_name_is_broken():
    events, _ = run(chat(tool(0, "call_a", None, JA)))
    assert "no tool name" in next(event.call for event in events if isinstance(event, CallBroken)).problem


def test_the_function_call_of_before_tools():
    body = chat(
        {"function_call": {"name": "read", "arguments": '{"path":'}},
        {"function_call": {"arguments": '"a.txt"}'}},
        finish="function_call",
    )
    assert calls(body) == [("call_1", "read", A)]


def test_br_074_content_filter_and_refusal():
    got = summary("openai-chat", chat({"content": ""}, finish="content_filter"))
    assert (got["stop"], got["stop_raw"]) == ("refusal", "content_filter")
    events, _ = run(chat({"refusal": "cannot "}, {"refusal": "help"}, finish="stop"))
    assert events[-1] == Finished(StopReason.REFUSAL, "stop", "cannot help")
    assert not [event for event in events if isinstance(event, TextDelta)]


def test_br_080_a_finish_reason_nobody_knows():
    got = summary("openai-chat", chat({"content": "Half"}, finish="brand_new_reason"))
    assert (got["text"], got["stop"], got["stop_raw"]) == ("Half", "unknown", "brand_new_reason")


def test_br_088_separators_inside_content():
    text = "a\u2028b\u2029c\u0085d"
    raw = b"data: " + json.dumps(chunk({"content": text}), ensure_ascii=False).encode() + b"\n\n"
    assert summary("openai-chat", chat(raw, finish="stop"))["text"] == text


def test_br_091_the_four_ways_to_end():
    ok, half = {"content": "ok"}, {"content": "half"}
    events, error = run(chat(ok, finish="stop", done=False))
    assert (events[-1], error) == (Finished(StopReason.END, "stop"), None)
    _, error = run(chat(half, finish=None, done=False))
    assert isinstance(error, RemoteProtocolError)
    events, error = run(chat(half, finish=None))
    assert error is None
    assert events[-1] == Finished(StopReason.UNKNOWN, None)
    assert [event for event in events if isinstance(event, Notice)]


def test_a_cut_in_the_usage_after_the_finish_reason_loses_only_the_usage():
    body = chat({"content": "ok"}, finish="stop", done=False) + b'data: {"choices":[],"usa'
    events, error = run(body)
    assert (events[-1], error) == (Finished(StopReason.END, "stop"), None)


def test_an_error_chunk_after_the_beginning():
    body = chat({"content": "x"}, finish=None, done=False) + sse({"error": {"message": "busy", "code": 503}})
    events, error = run(body)
    assert isinstance(error, ModelFailed)
    assert (error.failure.kind, error.failure.retryable) == (FailureKind.OVERLOADED, True)
    assert TextDelta(0, "x") in events


@pytest.mark.parametrize(
    "payload", [{"message": "bad", "code": 400}, {"error": "bad"}, {"error": {"message": "bad", "type": "x"}}]
)
def test_an_error_event_by_name(payload):
    body = b"event: error\ndata: " + json.dumps(payload).encode() + b"\n\n"
    _, error = run(body)
    assert isinstance(error, ModelFailed)
    assert str(error) == "bad"


def test_usage_wherever_it_comes():
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}
    for more in (
        sse({"choices": [], "usage": usage}),
        sse({"choices": [], "x_groq": {"usage": usage}}),
        sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}),
    ):
        events, _ = run(chat({"content": "x"}, finish="stop", done=False) + more)
        assert [event.usage for event in events if isinstance(event, UsageSeen)] == [Usage(5, 7, 3)]


def test_usage_that_counts_reasoning_on_top_is_recognised_by_its_total():
    usage = {
        "prompt_tokens": 307,
        "completion_tokens": 26,
        "total_tokens": 560,
        "completion_tokens_details": {"reasoning_tokens": 227},
    }
    events, _ = run(chat(finish="stop", done=False) + sse({"choices": [], "usage": usage}))
    seen = next(event.usage for event in events if isinstance(event, UsageSeen))
    assert seen == Usage(307, 26, reasoning=227, output_counts_reasoning=False)
    assert seen.completion == 253


def test_reasoning_content_and_reasoning_details_are_kept_for_their_issuer():
    events, _ = run(chat({"reasoning_content": "hm"}, {"content": "x"}, finish="stop"))
    assert PartDone(0, Thinking("hm", {"field": "reasoning_content"})) in events
    details = [
        {"type": "reasoning.text", "text": "h", "index": 0},
        {"type": "reasoning.text", "text": "m", "index": 0},
        {"type": "reasoning.text", "signature": "sig", "index": 0},
        {"type": "reasoning.encrypted", "data": "enc", "index": 1},
    ]
    deltas = [{"reasoning": d.get("text"), "reasoning_details": [d]} for d in details]
    events, _ = run(chat(*deltas, {"content": "x"}, finish="stop"))
    whole = [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "sig"}, details[3]]
    assert PartDone(0, Thinking("hm", {"reasoning_details": whole})) in events


def test_br_085_an_answer_of_nothing():
    assert run(chat({"role": "assistant"}, finish="stop"))[0] == [Started("m", "c1"), Finished(StopReason.END, "stop")]


def test_the_end_of_the_body_at_every_offset():
    body = chat({"content": "caf\u00e9"}, tool(0, "call_a", "read", JA), tool(1, "call_b", "read", '{"pa'))
    check_ends("openai-chat", body, range(len(body)))
