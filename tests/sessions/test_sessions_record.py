"""The line format: what is kept, what a line may hold, and how lines are told apart."""

import io
import json

import pytest

from novacode.errors import SessionError
from novacode.sessions.record import Damaged, Header, Record, encode, is_kept, json_line, parse_header, read_lines
from novacode.values.events import CallMoved, CallOutput, Phase, RunBegan, Stamped, TextDelta, UsageSeen
from novacode.values.ids import CallId, RunId, SessionId
from novacode.values.parts import User
from novacode.values.request import Usage
from novacode.values.serial import load_stamped

RUN = RunId("s-r1")


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        (TextDelta(0, "a"), False),
        (CallOutput(CallId("c"), "shell", "x"), False),
        (UsageSeen(Usage(1)), False),
        (CallMoved(CallId("c"), "shell", Phase.AUTHORISING), False),
        (CallMoved(CallId("c"), "shell", Phase.QUEUED), True),
        (CallMoved(CallId("c"), "shell", Phase.RUNNING), True),
        (RunBegan(User.said("hi")), True),
    ],
)
def test_what_does_not_matter_for_history_is_not_kept(event, kept):
    assert is_kept(event) is kept


@pytest.mark.parametrize(
    "text",
    ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\r\nh", "\ud800 half a pair", "smile 😀", "nul \x00", "\\u2028 spelled out"],
)
def test_br_130_any_text_is_one_line_and_comes_back_equal(text):
    line = encode(Stamped(1, RUN, 0.5, RunBegan(User.said(text))))
    assert line.count(b"\n") == 1
    assert len(line.decode("utf-8").splitlines()) == 1
    (record,) = read_lines(io.BytesIO(line))
    assert load_stamped(record.data).event == RunBegan(User.said(text))


def test_numbers_json_does_not_have_are_written_as_null():
    assert json.loads(json_line({"a": [float("nan"), {"b": float("inf")}, 1.5]})) == {"a": [None, {"b": None}, 1.5]}


def test_numbers_longer_than_a_machine_word_come_back():
    (record,) = read_lines(io.BytesIO(json_line({"type": "x", "n": 2**70})))
    assert record == Record(1, "x", {"type": "x", "n": 2**70})


def test_blank_lines_are_nothing_and_broken_ones_are_told_by_number():
    data = b'{"type":"a"}\n\n  \r\n{"type":\n[1]\n{"no":"type"}\n{"type":"b"}\n{"type":"c'
    assert list(read_lines(io.BytesIO(data))) == [
        Record(1, "a", {"type": "a"}),
        Damaged(4),
        Damaged(5),
        Damaged(6),
        Record(7, "b", {"type": "b"}),
        Damaged(8, torn=True),
    ]


def test_a_header_comes_back():
    header = Header(SessionId("s-1"), "/some/where", 12.5)
    assert parse_header(json.loads(encode(header)), "f") == header


@pytest.mark.parametrize(
    ("data", "words"),
    [({"format": "other"}, "not a NovaCode session"), ({"format": "novacode-session", "version": 2}, "version 2")],
)
def test_foreign_and_newer_formats_are_refused(data, words):
    with pytest.raises(SessionError, match=words):
        parse_header(data, "f.jsonl")
