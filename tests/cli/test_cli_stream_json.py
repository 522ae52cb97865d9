"""The stream-json output, line by line."""

import json

import pytest
from cli_events import DENIED, ENDED, SHELL, stamped, whole_run

from novacode._version import VERSION
from novacode.cli.result import ResultWatch, build_result
from novacode.cli.stream_json import Init, StreamJson
from novacode.values.events import AttemptDropped, CallBroken, Compacted, Finished, TextDelta, TurnCommitted, UserAdded
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, BrokenCall, Image, ServerBlock, Text, Thinking, User
from novacode.values.request import StopReason
from novacode.values.results import Outcome, ToolResult

INIT = Init("s", "anthropic/m", "/w", ("read", "shell"), "default")


def lines_of(events, *, partial=False, result=None):
    written = []
    sink = StreamJson(written.append, INIT, include_partial=partial)
    for one in events:
        sink(one)
    if result is not None:
        sink.finish(result)
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in written)
    return [json.loads(line) for line in written]


def usage(read, wrote):
    return {
        "input_tokens": read,
        "output_tokens": wrote,
        "cache_read_input_tokens": None,
        "cache_creation_input_tokens": None,
        "reasoning_tokens": None,
    }


def test_a_whole_run():
    watch = ResultWatch()
    for one in whole_run():
        watch(one)
    lines = lines_of(whole_run(), result=build_result(ENDED, watch, "s"))
    assert lines[:-1] == [
        {
            "type": "system",
            "subtype": "init",
            "cwd": "/w",
            "tools": ["read", "shell"],
            "mcp_servers": [],
            "model": "anthropic/m",
            "permissionMode": "default",
            "novacode_version": VERSION,
            "session_id": "s",
        },
        {
            "type": "assistant",
            "message": {
                "type": "message",
                "role": "assistant",
                "model": "anthropic/m",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls -la"}},
                    {"type": "tool_use", "id": "c2", "name": "edit", "input": {"path": "a.py", "old": "x", "new": "y"}},
                ],
                "stop_reason": "tool_use",
                "usage": usage(10, 5),
            },
            "parent_tool_use_id": None,
            "session_id": "s",
        },
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "a.py", "is_error": False},
                    {"type": "tool_result", "tool_use_id": "c2", "content": DENIED.text, "is_error": True},
                ],
            },
            "parent_tool_use_id": None,
            "outcomes": [
                {"tool_use_id": "c1", "tool_name": "shell", "outcome": "ok", "began": True, "exit_code": None},
                {"tool_use_id": "c2", "tool_name": "edit", "outcome": "denied", "began": False, "exit_code": None},
            ],
            "session_id": "s",
        },
        {
            "type": "assistant",
            "message": {
                "type": "message",
                "role": "assistant",
                "model": "anthropic/m",
                "content": [{"type": "text", "text": "Done."}],
                "stop_reason": "end_turn",
                "usage": usage(20, 2),
            },
            "parent_tool_use_id": None,
            "session_id": "s",
        },
    ]
    assert (lines[-1]["type"], lines[-1]["result"]) == ("result", "Done.")


def test_partial_messages_open_and_close_every_part():
    raw = [line["event"] for line in lines_of(whole_run(), partial=True) if line["type"] == "stream_event"]
    assert [(one["type"], one.get("index")) for one in raw] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert raw[5]["content_block"] == {"type": "tool_use", "id": SHELL.id, "name": "shell", "input": {}}
    assert raw[6]["delta"] == {"type": "input_json_delta", "partial_json": '{"command":"ls -la"}'}
    assert raw[10] == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": usage(10, 5),
    }


def test_a_part_nobody_closed_is_closed_at_the_end():
    lines = lines_of(stamped([TextDelta(3, "x"), Finished(StopReason.UNKNOWN)]), partial=True)
    assert [one["event"]["type"] for one in lines[1:]] == [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_first_line_and_last_line_are_there_without_any_event():
    assert [line["type"] for line in lines_of([], result={"type": "result"})] == ["system", "result"]


def test_every_kind_of_part_has_a_form():
    broken = BrokenCall(CallId("b"), 4, "edit", '{"pa', "It ended early.")
    exchange = Exchange(
        Assistant(
            (
                Thinking("hm", {"signature": "sig"}),
                Thinking("", {"redacted": "x"}),
                ServerBlock("web_search", {"type": "server_tool_use", "id": "srv"}),
                ServerBlock("code", {"outputs": []}),
                broken,
            ),
            "x",
        ),
        (ToolResult(broken.id, "edit", Outcome.BROKEN, False, (Text("no"), Image("image/png", "QQ=="))),),
    )
    _, assistant, user = lines_of(stamped([TurnCommitted(exchange)]))
    assert assistant["message"]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "server_tool_use", "id": "srv"},
        {"type": "server_block", "name": "code", "raw": {"outputs": []}},
        {
            "type": "tool_use",
            "id": "b",
            "name": "edit",
            "input": {},
            "broken": {"raw": '{"pa', "problem": "It ended early."},
        },
    ]
    assert assistant["message"]["stop_reason"] is None
    assert user["message"]["content"][0]["content"] == [
        {"type": "text", "text": "no"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
    ]


def test_retries_and_words_of_the_runtime_are_lines():
    failure = Failure(FailureKind.OVERLOADED, "busy", True, status=529)
    _, retry, nudge = lines_of(
        stamped([AttemptDropped(failure, 1, 1.5), UserAdded(User.said("go on", "runtime")), CallBroken(0, None)])
    )
    assert (retry["subtype"], retry["retry_delay_ms"], retry["error_status"]) == ("api_retry", 1500, 529)
    assert (nudge["message"]["content"], nudge["origin"]) == ([{"type": "text", "text": "go on"}], "runtime")


@pytest.mark.parametrize("text", ["a\u2028b\x85c", "\ud800", "nul\x00"])
def test_br_130_any_text_is_one_valid_line(text):
    turn = TurnCommitted(Exchange(Assistant((Text(text),))))
    assert lines_of(stamped([turn]))[1]["message"]["content"][0]["text"] == text


def test_a_compaction_is_one_line_in_the_form_that_is_widely_parsed():
    assert lines_of(stamped([Compacted(2, "What was done.", 1, {}, 9000, 400)]))[1:] == [
        {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "auto", "pre_tokens": 9000, "post_tokens": 400},
            "session_id": "s",
        }
    ]
