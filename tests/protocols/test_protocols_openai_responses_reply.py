"""OpenAI Responses: bodies written by hand."""

import pytest
from codec_checks import check_ends, check_order, check_splits, decode, summary
from wire_bodies import sse

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.values.events import CallBroken, CallReady, Finished, PartDone, Started, UsageSeen
from novacode.values.failure import FailureKind
from novacode.values.parts import ServerBlock, Text, Thinking, ToolCall
from novacode.values.request import StopReason, Usage


def run(*messages):
    body = sse(*messages)
    events, error = decode("openai-responses", body)
    check_order(events, error)
    check_splits("openai-responses", body, times=5)
    check_ends("openai-responses", body, range(0, len(body), 7))
    return events, error


def added(place, item):
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def done(place, item):
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def delta(kind, place, text):
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": text}


def completed(**response):
    return {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", **response}}


def call(number=1, arguments='{"path":"a"}', **more):
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": "read",
        "arguments": arguments,
        **more,
    }


READY = ToolCall("call_1", 0, "read", {"path": "a"}, {"id": "fc_1"})


def ready(events):
    return [event.call for event in events if isinstance(event, CallReady)]


def test_br_034_a_call_announced_three_times_is_one_call():
    events, _ = run(
        {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
        added(0, call(arguments="")),
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"path":"a"}'},
        done(0, call()),
        done(0, call()),
        completed(output=[call()], usage={"input_tokens": 1, "output_tokens": 2}),
    )
    assert events[0] == Started("m", "resp_1")
    assert ready(events) == [READY]
    assert events[-2:] == [UsageSeen(Usage(1, 2)), Finished(StopReason.TOOL_USE, "completed")]


def test_br_034_a_call_that_only_the_summary_carries_runs_once():
    assert ready(run(completed(output=[call()]))[0]) == [READY]


def test_parallel_calls_keep_the_order_in_which_they_were_opened():
    events, _ = run(
        added(0, call(1, "")),
        added(1, call(2, "")),
        delta("function_call_arguments", 1, '{"path":"b"}'),
        delta("function_call_arguments", 0, '{"path":'),
        done(1, call(2, '{"path":"b"}')),
        delta("function_call_arguments", 0, '"a"}'),
        done(0, call(1)),
        completed(),
    )
    assert [(made.index, made.arguments) for made in ready(events)] == [(1, {"path": "b"}), (0, {"path": "a"})]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("max_output_tokens", StopReason.OUTPUT_LIMIT),
        ("content_filter", StopReason.REFUSAL),
        ("brand_new", StopReason.UNKNOWN),
    ],
)
def test_br_080_incomplete_responses(reason, stop):
    response = {"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": reason}, "output": []}
    events, _ = run(delta("output_text", 0, "Half"), {"type": "response.incomplete", "response": response})
    assert PartDone(0, Text("Half")) in events
    assert events[-1] == Finished(stop, reason)


def test_a_call_the_output_limit_cut_never_runs():
    response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    cut = call(arguments='{"path":"a', status="incomplete")
    for last in ([], [done(0, cut)], [done(0, call(arguments="{}", status="incomplete"))]):
        events, _ = run(
            added(0, call(arguments="")),
            delta("function_call_arguments", 0, '{"path":"a'),
            *last,
            {"type": "response.incomplete", "response": response},
        )
        assert ready(events) == []
        assert "output limit" in next(event.call for event in events if isinstance(event, CallBroken)).problem


def test_a_refusal():
    item = {"type": "message", "id": "msg_1", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    for messages in ([delta("refusal", 0, "I "), delta("refusal", 0, "cannot."), done(0, item)], [done(0, item)]):
        assert run(*messages, completed())[0][-1] == Finished(StopReason.REFUSAL, "completed", "I cannot.")


def test_reasoning_text_and_server_tools_keep_what_their_issuer_wants_back():
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc", "status": "completed"}
    message = {
        "type": "message",
        "id": "msg_1",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    mcp = {"type": "mcp_call", "id": "mcp_1", "name": "ask"}
    listing = {"type": "mcp_list_tools", "id": "l_1"}
    events, _ = run(*[done(n, item) for n, item in enumerate([reasoning, message, search, mcp, listing])], completed())
    assert [event.part for event in events if isinstance(event, PartDone)] == [
        Thinking("", {"id": "rs_1", "summary": [], "encrypted_content": "enc"}),
        Text("Hi", {"id": "msg_1", "phase": "commentary"}),
        ServerBlock("web_search", search),
        ServerBlock("ask", mcp),
        ServerBlock("", listing),
    ]


def test_summaries_and_raw_reasoning_are_readable():
    body = sse(delta("reasoning_summary_text", 0, "a"), delta("reasoning_text", 0, "b"), completed())
    assert summary("openai-responses", body)["reasoning"] == "ab"


def test_br_091_a_cut_answer_is_an_error():
    assert isinstance(run(delta("output_text", 0, "half"))[1], RemoteProtocolError)
    assert isinstance(run(delta("output_text", 0, "half"), b"data: [DONE]\n\n")[1], RemoteProtocolError)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "error", "code": "server_is_overloaded", "message": "busy", "param": None},
        {"type": "error", "error": {"type": "server_is_overloaded", "message": "busy"}},
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_is_overloaded", "message": "busy"}},
        },
    ],
)
def test_failures(message):
    _, error = run(delta("output_text", 0, "x"), message)
    assert isinstance(error, ModelFailed)
    failure = error.failure
    assert (failure.kind, failure.retryable, failure.message) == (FailureKind.OVERLOADED, True, "busy")
    assert (failure.raw_type, failure.raw_stop) == ("server_is_overloaded", "failed")


def _nowhere(*messages, ids=True):
    """Take away the places, and the ids of items too where `ids` is false."""
    kept = []
    for message in messages:
        kept.append({key: value for key, value in message.items() if key != "output_index"})
        if "item" in message and not ids:
            kept[-1]["item"] = {key: value for key, value in message["item"].items() if key != "id"}
    return kept


def test_items_without_a_place_go_by_their_ids():
    """As llama.cpp sends them: `item_id` with fragments, the item's own id where it begins and ends, nothing else."""
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
    calls = [call(1), call(2, '{"path":"b"}')]
    fragments = [
        {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": piece}
        for item in calls
        for piece in (item["arguments"][:4], item["arguments"][4:])
    ]
    events, error = run(
        *_nowhere(
            added(0, said | {"content": []}),
            {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hi."},
            done(0, said),
            *[added(0, item | {"arguments": ""}) for item in calls],
            *fragments,
            *[done(0, item) for item in calls],
        ),
        completed(),
    )
    assert error is None
    assert [event.part for event in events if isinstance(event, PartDone)] == [Text("Hi.", {"id": "msg_1"})]
    assert [(made.id, made.arguments) for made in ready(events)] == [
        ("call_1", {"path": "a"}),
        ("call_2", {"path": "b"}),
    ]


def test_items_without_place_and_id_go_by_their_order():
    calls = [call(1), call(2, '{"path":"b"}')]
    for messages in (
        [step for item in calls for step in (added(0, item | {"arguments": ""}), done(0, item))],
        [done(0, item) for item in calls],
    ):
        events, error = run(*_nowhere(*messages, ids=False), completed())
        assert error is None
        assert [(made.id, made.arguments) for made in ready(events)] == [
            ("call_1", {"path": "a"}),
            ("call_2", {"path": "b"}),
        ]
