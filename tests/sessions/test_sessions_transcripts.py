"""Transcripts of other programs: judged by the rules their services have, and mended into what those accept."""

from __future__ import annotations

import json

import pytest
from doubles.rules import violations
from hypothesis import given
from hypothesis import strategies as st

from novacode.errors import InputError
from novacode.sessions.check import Problem
from novacode.sessions.transcripts import judge, mended, read_transcript, write_transcript


def use(call_id, name="shell"):
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def got(call_id, text="done"):
    return {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": text}]}


def said(text):
    return {"type": "text", "text": text}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def asks(*ids):
    calls = [{"id": one, "type": "function", "function": {"name": "shell", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool(call_id, text="done"):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def says(role, text="hi"):
    return {"role": role, "content": text}


@pytest.fixture
def read(tmp_path):
    def run(value, form="array"):
        path = tmp_path / "t.json"
        if form == "lines":
            path.write_text("".join(json.dumps(one) + "\n" for one in value))
        else:
            path.write_text(json.dumps(value if form == "array" else {"model": "m", "messages": value}))
        return read_transcript(path)

    return run


GOOD = {
    "anthropic": [
        user(said("go")),
        assistant(said("a"), use("1"), use("2")),
        user(got("2"), got("1"), said("and")),
        assistant(said("x")),
    ],
    "anthropic in pieces": [
        user(said("go")),
        assistant(said("a")),
        assistant(use("1")),
        assistant(use("2")),
        user(got("1")),
        user(got("2")),
    ],
    "openai": [says("system"), says("user"), asks("1", "2"), tool("2"), tool("1"), says("assistant")],
    "openai, ids again in another turn": [says("user"), asks("1"), tool("1"), asks("1"), tool("1")],
    "no calls": [says("user"), says("assistant")],
}


@pytest.mark.parametrize("form", ["array", "object", "lines"])
@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
def test_what_pairs_is_whole(read, messages, form):
    transcript = read(messages, form)
    assert judge(transcript).problems == ()
    if form == "lines":
        assert [json.loads(line) for line in write_transcript(transcript).splitlines()] == messages


BROKEN = {
    "no result": ([user(said("go")), assistant(use("1"))], ("at the end", "there is no result for shell 1")),
    "text in between": (
        [assistant(use("1")), user(said("wait")), user(got("1"))],
        ("message 2", "comes before the results of shell 1"),
    ),
    "never called": ([user(got("7"))], ("message 1", "there is a result for '7', which was not called")),
    "two results": (
        [assistant(use("1")), user(got("1"), got("1"))],
        ("message 2", "there is another result for '1', or it stands too late"),
    ),
    "id twice": (
        [assistant(use("1")), user(got("1")), assistant(use("1")), user(got("1"))],
        ("message 3", "the call id '1' is used twice"),
    ),
    "result after text": (
        [assistant(use("1")), user(said("x"), got("1"))],
        ("message 2", "the result for '1' stands after other content"),
    ),
    "openai: no result": (
        [says("user"), asks("1", "2"), tool("1"), says("user")],
        ("message 4", "comes before the results of shell 2"),
    ),
    "openai: not called": ([says("user"), tool("1")], ("message 2", "there is a result for '1', which was not called")),
    "openai: no id": ([says("user"), asks(""), tool("")], ("message 2", "a call of 'shell' has no id")),
}


@pytest.mark.parametrize(("messages", "place"), BROKEN.values(), ids=BROKEN)
def test_what_does_not_pair_is_told_with_its_place(read, messages, place):
    transcript = read(messages)
    assert Problem(*place) in judge(transcript).problems
    assert judge(mended(transcript)).problems == ()


def test_a_lost_result_says_that_it_is_unknown(read):
    whole = mended(read([user(said("go")), assistant(use("1")), user(said("and now?"))]))
    made_up = {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": "There is no result on record for this call: its outcome is unknown.",
        "is_error": True,
    }
    assert [entry.message for entry in whole.entries] == [
        user(said("go")),
        assistant(use("1")),
        user(made_up, said("and now?")),
    ]


def test_a_result_that_stands_elsewhere_is_moved(read):
    whole = mended(read([says("user"), asks("1"), says("user", "wait"), tool("1", "late")]))
    assert [entry.message for entry in whole.entries] == [
        says("user"),
        asks("1"),
        tool("1", "late"),
        says("user", "wait"),
    ]


def test_streams_of_agents_are_read_with_their_wrapping(read):
    lines = [
        {"type": "system", "subtype": "init"},
        {"type": "user", "message": user(said("go"))},
        {"type": "assistant", "uuid": "u", "message": assistant(use("1"))},
        {"type": "result", "subtype": "success"},
    ]
    transcript = read(lines, "lines")
    assert judge(transcript).problems == (Problem("at the end", "there is no result for shell 1"),)
    whole = [json.loads(line) for line in write_transcript(mended(transcript)).splitlines()]
    assert whole[:4] == lines
    assert whole[4]["message"]["content"][0]["tool_use_id"] == "1"


def test_lines_that_hold_no_json_are_named_and_left_out(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(says("user")) + '\n\n{"role": "assist')
    transcript = read_transcript(path)
    assert judge(transcript).problems == (Problem("line 3", "is not a JSON object"),)
    assert write_transcript(mended(transcript)) == json.dumps(says("user"), separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("content", [b"", b"[]", b"hello", b'{"a": 1}', b"[1, 2]", b"\xff\xfe", b'{"messages": 3}'])
def test_files_without_messages_are_refused(tmp_path, content):
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds no messages"):
        read_transcript(path)


ids = st.sampled_from(["1", "2", "3", ""])
blocks = st.one_of(ids.map(use), ids.map(got), st.just(said("x")))
anthropic_messages = st.one_of(
    st.lists(blocks, min_size=1, max_size=4).map(lambda made: assistant(*made)),
    st.lists(blocks, min_size=1, max_size=4).map(lambda made: user(*made)),
    st.just(says("user")),
)
openai_messages = st.one_of(
    st.lists(ids, min_size=1, max_size=3).map(lambda made: asks(*made)),
    ids.map(tool),
    st.sampled_from([says("user"), says("assistant")]),
)


@given(
    st.one_of(st.lists(anthropic_messages, min_size=1, max_size=8), st.lists(openai_messages, min_size=1, max_size=8))
)
def test_whatever_is_mended_is_whole_and_stays_as_it_is(tmp_path_factory, messages):
    path = tmp_path_factory.getbasetemp() / "made_up.json"
    path.write_text(json.dumps(messages))
    once = mended(read_transcript(path))
    assert judge(once).problems == ()
    path.write_bytes(write_transcript(once))
    if any(entry.message for entry in once.entries):
        again = read_transcript(path)
        assert judge(again).problems == ()
        if not judge(read_transcript(path)).problems:
            assert [entry.message for entry in mended(again).entries] == [entry.message for entry in once.entries]


@given(st.lists(openai_messages, min_size=1, max_size=8))
def test_a_mended_chat_is_one_the_service_takes(tmp_path_factory, messages):
    path = tmp_path_factory.getbasetemp() / "made_up_chat.json"
    path.write_text(json.dumps(messages))
    whole = [entry.message for entry in mended(read_transcript(path)).entries]
    assert violations("openai-chat", {"messages": whole}) == []
