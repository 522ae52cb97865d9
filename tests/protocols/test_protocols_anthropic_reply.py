"""Anthropic Messages: bodies written by hand."""

import pytest
from codec_checks import check_ends, check_order, check_splits, decode, summary
from wire_bodies import A_START, a_end, a_json, a_open, a_stop, a_text, a_tool, anthropic, sse

from novacode.errors import LocalProtocolError, ModelFailed, RemoteProtocolError
from novacode.protocols.anthropic import AnthropicCodec
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
    events, error = decode("anthropic", body, **more)
    check_order(events, error)
    return events, error


def first(events, kind):
    return next(event for event in events if isinstance(event, kind))


def test_every_event_of_a_text_and_a_call():
    body = anthropic(a_text(0, "Hi"), a_tool(1, "tu_1", "read", '{"path":"a"}'), a_end("tool_use"))
    assert run(body)[0] == [
        Started("m", "msg_1"),
        UsageSeen(Usage(10, 1, input_counts_cache=False)),
        TextDelta(0, "Hi"),
        PartDone(0, Text("Hi")),
        CallOpened(1, "tu_1", "read"),
        CallDelta(1, "tu_1", "read", '{"path":"a"}'),
        CallReady(1, ToolCall("tu_1", 1, "read", {"path": "a"})),
        UsageSeen(Usage(10, 20, input_counts_cache=False)),
        Finished(StopReason.TOOL_USE, "tool_use"),
    ]


@pytest.mark.parametrize(
    "deltas", [[], [a_json(0, "")], [a_json(0, "{}")], [a_json(0, " \n")]], ids=["none", "empty", "braces", "blank"]
)
def test_br_029_no_arguments_are_an_empty_object(deltas):
    events, _ = run(anthropic(a_open(0, "tu_1", "list_todos"), *deltas, a_stop(0), a_end("tool_use")))
    assert first(events, CallReady).call == ToolCall("tu_1", 0, "list_todos", {})


def test_a_whole_input_at_the_start_of_the_block_is_taken():
    block = a_open(0, "tu_1", "read")
    block["content_block"]["input"] = {"path": "a"}
    assert first(run(anthropic(block, a_stop(0), a_end("tool_use")))[0], CallReady).call.arguments == {"path": "a"}


@pytest.mark.parametrize("closed", [True, False])
def test_br_070_arguments_cut_by_the_output_limit_never_run(closed):
    cut = a_json(0, '{"path":"big.txt","content":"line 1\\nline ')
    events, _ = run(anthropic(a_open(0, "tu_1", "write"), cut, [a_stop(0)] if closed else [], a_end("max_tokens")))
    assert not [event for event in events if isinstance(event, CallReady)]
    broken = first(events, CallBroken).call
    assert (broken.id, broken.name, broken.raw) == ("tu_1", "write", cut["delta"]["partial_json"])
    assert "output limit" in broken.problem
    assert "pieces" in broken.problem
    assert events[-1] == Finished(StopReason.OUTPUT_LIMIT, "max_tokens")


def test_complete_arguments_without_an_end_mark_are_broken_too():
    events, _ = run(anthropic(a_open(0, "tu_1", "write"), a_json(0, "{}"), a_end("tool_use")))
    assert "truncated" in first(events, CallBroken).call.problem


@pytest.mark.parametrize("text", ['{"a":1}{"b":2}', "[1]", '"x"', "{a}", '{"a":NaN}', "null", '{"a":' + "[" * 100_000])
def test_arguments_that_are_not_one_object_are_broken(text):
    events, _ = run(anthropic(a_tool(0, "tu_1", "read", text), a_end("tool_use")))
    call = first(events, CallBroken).call
    assert call.raw == text
    assert "not one complete JSON object" in call.problem


def test_broken_and_complete_calls_keep_their_places():
    events, _ = run(anthropic(a_tool(0, "tu_1", "read", "{"), a_tool(1, "tu_2", "read", "{}"), a_end("tool_use")))
    assert (first(events, CallBroken).call.index, first(events, CallReady).call.index) == (0, 1)


def test_fragments_of_two_blocks_may_interleave():
    body = anthropic(
        a_open(0, "tu_1", "read"),
        a_open(1, "tu_2", "read"),
        a_json(0, '{"path":'),
        a_json(1, '{"path":"b"}'),
        a_stop(1),
        a_json(0, '"a"}'),
        a_stop(0),
        a_end("tool_use"),
    )
    assert [event.call.arguments for event in run(body)[0] if isinstance(event, CallReady)] == [
        {"path": "b"},
        {"path": "a"},
    ]
    check_splits("anthropic", body, times=20)


@pytest.mark.parametrize("wire_id", ["", None, "has blank", "x" * 65, "taken"])
def test_ids_that_cannot_be_used_are_replaced_and_kept_for_the_wire(wire_id):
    ids = CallIds(["taken"])
    call = first(run(anthropic(a_tool(0, wire_id, "read", "{}"), a_end("tool_use")), ids=ids)[0], CallReady).call
    assert call == ToolCall("call_1", 0, "read", {}, {"wire_id": wire_id} if wire_id else None)


def test_br_035_a_tool_nobody_knows_is_a_call_like_any_other():
    events, _ = run(anthropic(a_tool(0, "tu_1", "open_file", "{}"), a_tool(1, "tu_2", "read", "{}"), a_end("tool_use")))
    assert [event.call.name for event in events if isinstance(event, CallReady)] == ["open_file", "read"]


def test_br_073_a_pause_keeps_the_providers_own_call_verbatim_and_runs_nothing():
    block = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    events, _ = run(anthropic(start, a_json(0, '{"query":"x"}'), a_stop(0), a_end("pause_turn")))
    assert not [event for event in events if isinstance(event, CallReady | CallOpened)]
    assert first(events, PartDone).part.raw == block | {"input": {"query": "x"}}
    assert events[-1] == Finished(StopReason.PAUSED, "pause_turn")


def test_br_074_a_refusal_without_content():
    got = summary("anthropic", anthropic(a_end("refusal")))
    assert (got["stop"], got["stop_raw"], got["text"]) == ("refusal", "refusal", "")


def test_a_refusal_says_what_the_provider_explained():
    delta = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "not this"}}
    events, _ = run(anthropic({"type": "message_delta", "delta": delta}, {"type": "message_stop"}))
    assert events[-1] == Finished(StopReason.REFUSAL, "refusal", "not this")


def test_br_076_reasoning_keeps_every_character_and_its_place():
    body = anthropic(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "  Step \u00e9 \U0001f600\n\n"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "sig+/=="},
        },
        a_stop(0),
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "opaque=="},
        },
        a_stop(1),
        a_tool(2, "tu_1", "read", "{}"),
        a_end("tool_use"),
    )
    assert [event for event in run(body)[0] if isinstance(event, PartDone)] == [
        PartDone(0, Thinking("  Step \u00e9 \U0001f600\n\n", {"signature": "sig+/=="})),
        PartDone(1, Thinking("", {"redacted": "opaque=="})),
    ]


def test_br_080_a_stop_reason_nobody_knows_keeps_text_and_word():
    got = summary("anthropic", anthropic(a_text(0, "Half"), a_end("brand_new_reason")))
    assert (got["text"], got["stop"], got["stop_raw"]) == ("Half", "unknown", "brand_new_reason")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("model_context_window_exceeded", StopReason.OUTPUT_LIMIT),
    ],
)
def test_stop_reasons(stop, reason):
    assert run(anthropic(a_end(stop)))[0][-1] == Finished(reason, stop)


def test_br_087_a_character_cut_between_chunks():
    delta = b'"delta":{"type":"text_delta","text":"caf\xc3\xa9 \xf0\x9f\x98\x80"}'
    body = b'data:{"type":"content_block_delta","index":0,' + delta + b"}\n\n"
    start = anthropic(a_text(0, "x")[0])
    for at in range(len(body) + 1):
        events, error = decode("anthropic", start + body[:at], body[at:])
        assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(0, "caf\u00e9 \U0001f600")]
        assert isinstance(error, RemoteProtocolError)  # nothing has ended it


def test_br_088_separators_inside_json_are_text():
    text = "a\u2028b\u2029c\u0085d"
    raw = (
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'
        + text.encode()
        + b'"}}\n\n'
    )
    body = anthropic(a_text(0, "x")[0], raw, a_stop(0), a_tool(1, "t", "w", f'{{"c":"{text}"}}'), a_end("tool_use"))
    got = summary("anthropic", body)
    assert got["text"] == text
    assert got["tool_calls"][0]["arguments"] == {"c": text}


@pytest.mark.parametrize(
    "quiet",
    [b": waiting\n\n", b":\n", b"\n\n", b"event: ping\n\n", b"data:\n\n", b"data: \n\n", b"data: : PROCESSING\n\n"],
)
def test_br_089_keep_alives_between_good_events(quiet):
    first_half, second_half = a_text(0, "x"), a_end("end_turn")
    noisy = anthropic(*first_half[:2], quiet, first_half[2], quiet, second_half)
    assert decode("anthropic", noisy) == decode("anthropic", anthropic(first_half, second_half))


@pytest.mark.parametrize("junk", [b"data: {oops\n\n", b"data: 12\n\n", b'data: ["x"]\n\n', b"data: <html>\n\n"])
def test_br_089_real_junk_is_an_error_and_shows_itself(junk):
    events, error = run(anthropic(a_text(0, "x"), junk, a_end("end_turn")))
    assert isinstance(error, RemoteProtocolError)
    assert repr(junk[6:-2].decode())[1:-1] in str(error)
    assert PartDone(0, Text("x")) in events


def test_br_090_an_error_after_the_beginning():
    error_event = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    body = anthropic(a_text(0, "Partial"), a_open(1, "tu_1", "shell"), a_json(1, '{"command":"touch P"}'), error_event)
    events, error = run(body)
    assert not [event for event in events if isinstance(event, CallReady | CallBroken)]
    assert isinstance(error, ModelFailed)
    assert (error.failure.kind, error.failure.retryable) == (FailureKind.OVERLOADED, True)
    assert error.failure.raw_type == "overloaded_error"
    check_splits("anthropic", body, times=20)


def test_br_091_a_cut_answer_is_an_error():
    events, error = run(anthropic(a_text(0, "half")))
    assert isinstance(error, RemoteProtocolError)
    assert TextDelta(0, "half") in events


def test_an_answer_that_only_lacks_its_last_mark_is_whole():
    events, error = run(anthropic(a_text(0, "x"), a_end("end_turn")[:1]))
    assert error is None
    assert events[-1] == Finished(StopReason.END, "end_turn")


@pytest.mark.parametrize("where", ["start", "end", "both"])
def test_br_140_usage_is_a_running_total(where):
    full = {"input_tokens": 9, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 4}
    start = {"type": "message_start", "message": {"usage": full | {"output_tokens": 1} if where != "end" else {}}}
    end_usage = {"output_tokens": 16} | (full if where != "start" else {})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end_usage}
    events, _ = run(sse(start, *a_text(0, "hi"), end, {"type": "message_stop"}))
    usage = [event.usage for event in events if isinstance(event, UsageSeen)][-1]
    assert usage == Usage(9, 16, 1, 4, input_counts_cache=False)
    assert (usage.prompt, usage.fresh) == (14, 13)


def test_the_error_is_raised_once_everything_before_it_was_returned():
    decoder = AnthropicCodec().decoder(CallIds())
    body = anthropic(a_text(0, "x"), b"data: {oops\n\n")
    assert decoder.feed(body)[-1] == PartDone(0, Text("x"))
    assert isinstance(decoder.error, RemoteProtocolError)
    for again in (lambda: decoder.feed(b"data: {}\n\n"), decoder.close):
        with pytest.raises(RemoteProtocolError):
            again()


def test_an_error_with_nothing_before_it_is_raised_at_once():
    decoder = AnthropicCodec().decoder(CallIds())
    with pytest.raises(ModelFailed):
        decoder.feed(sse({"type": "error", "error": {"type": "api_error", "message": "x"}}))


def test_feeding_after_the_end_is_our_own_mistake():
    decoder = AnthropicCodec().decoder(CallIds())
    decoder.feed(anthropic(a_end("end_turn")))
    assert decoder.finished
    assert decoder.close() == []
    with pytest.raises(LocalProtocolError):
        decoder.feed(b"x")


def test_what_comes_for_a_complete_call_is_told_and_ignored():
    events, _ = run(anthropic(a_tool(0, "tu_1", "read", "{}"), a_json(0, '{"path":"b"}'), a_end("tool_use")))
    assert len([event for event in events if isinstance(event, CallReady)]) == 1
    assert "tu_1" in first(events, Notice).text


def test_a_delta_for_a_block_that_was_not_opened_breaks_the_protocol():
    assert isinstance(run(sse(A_START, a_json(3, "{}")))[1], RemoteProtocolError)


def test_the_end_of_the_body_at_every_offset():
    body = anthropic(a_text(0, "caf\u00e9"), a_tool(1, "tu_1", "read", '{"path":"a"}'), a_end("tool_use"))
    check_ends("anthropic", body, range(len(body)))
