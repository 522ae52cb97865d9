"""Bytes to messages."""

import itertools
import json

import httpx_sse
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from novacode.protocols.framing import LineFramer, SseFramer


def framed(chunks, framer=None):
    framer = framer or SseFramer()
    messages = [message for chunk in chunks for message in framer.feed(chunk)]
    return messages + framer.close()


def data_of(*chunks):
    return [data for _, data in framed(chunks) if data]


PING = b'{"type":"ping"}'


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + PING + b"\r", b"\n\r", b"\ndata: " + PING + b"\r\n\r\n"],
        [b"data: " + PING + b"\r\rdata: " + PING + b"\r\r"],
        [b"data: " + PING + b"\n\ndata:" + PING + b"\n\n"],
    ],
)
def test_br_086_every_line_end_also_cut_in_two(chunks):
    assert data_of(*chunks) == [PING, PING]
    body = b"".join(chunks)
    assert data_of(*[body[i : i + 1] for i in range(len(body))]) == [PING, PING]


@pytest.mark.parametrize(
    "quiet",
    [b": waiting\n\n", b":\n", b"\n\n", b"event: ping\n\n", b"data:\n\n", b"data: \n\n", b"id: 7\nretry: 100\n\n"],
)
def test_br_089_keep_alives_are_no_messages(quiet):
    assert data_of(b"data: 1\n\n" + quiet + b"data: 2\n\n") == [b"1", b"2"]


def test_a_name_belongs_to_its_own_event_only():
    assert framed([b"event: ping\n\nevent: error\ndata: 1\n\ndata: 2\n\n"]) == [(b"error", b"1"), (b"", b"2")]


def test_lines_of_one_event_are_joined():
    assert framed([b"data: a\ndata\ndata:  b\n\n"]) == [(b"", b"a\n\n b")]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r", b"\r\n"])
def test_the_last_event_counts_without_its_blank_line(tail):
    assert data_of(b"data: 1\n\ndata: 2" + tail) == [b"1", b"2"]


def test_a_byte_order_mark_is_dropped_also_in_pieces():
    assert data_of(b"\xef", b"\xbb", b"\xbfdata: 1\n\n") == [b"1"]
    assert data_of(b"\xef\xbb\xbfdata: 1\n\n") == [b"1"]


@pytest.mark.parametrize("cuts", [1, 7, 10_000])
def test_a_message_over_the_limit_is_a_problem_and_those_before_it_are_kept(cuts):
    body = b"data: 1\n\n" + b"data: " + b"x" * 200 + b"\n\n" + b"data: 2\n\n"
    framer = SseFramer(limit=100)
    chunks = [body[i : i + cuts] for i in range(0, len(body), cuts)]
    assert [data for _, data in framed(chunks, framer)] == [b"1"]
    assert "100 bytes" in framer.problem


def test_many_short_lines_of_one_message_are_bounded_too():
    framer = SseFramer(limit=100)
    assert framed([b"data: 123456789\n"] * 20, framer) == []
    assert framer.problem


def test_json_lines_with_any_line_end_and_without_the_last():
    assert framed([b'{"a":1}\r', b'\n\n{"b":2}\n{"c"', b":3}"], LineFramer()) == [
        (b"", b'{"a":1}'),
        (b"", b'{"b":2}'),
        (b"", b'{"c":3}'),
    ]


@pytest.mark.parametrize("cuts", [1, 10_000])
def test_a_json_line_over_the_limit_is_a_problem(cuts):
    body = b"1\n" + b"x" * 50 + b"\n2\n"
    framer = LineFramer(limit=20)
    assert framed([body[i : i + cuts] for i in range(0, len(body), cuts)], framer) == [(b"", b"1")]
    assert framer.problem


_line = st.one_of(
    st.sampled_from(["", "data", "data:", "data: ", ": c", "event: e", "event:e", "id: 1", "retry: 5", "x: y"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12).map(lambda text: f"data:{text}"),
    st.just("data: a\u2028b\u0085c\x0bd\x0ce"),
)


@given(st.lists(st.tuples(_line, st.sampled_from(["\n", "\r\n", "\r"]))), st.data())
@example([("data: a", "\r"), ("", "\n"), ("data: b", "\r\n"), ("", "\r\n")], None)
def test_events_are_those_of_another_reader_for_any_split(lines, data):
    """`httpx-sse` decodes lines; it is given the lines as the standard cuts them."""
    text = "".join(line + end for line, end in lines) + "\n\n"
    decoder = httpx_sse._decoders.SSEDecoder()
    pieces = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    events = [event for event in map(decoder.decode, pieces) if event is not None]
    wanted = [("" if event.event == "message" else event.event, event.data) for event in events if event.data]
    body = text.encode()
    cuts = [] if data is None else data.draw(st.lists(st.integers(0, len(body)), max_size=8))
    edges = [0, *sorted(cuts), len(body)]
    got = framed([body[a:b] for a, b in itertools.pairwise(edges)])
    assert [(name.decode(), payload.decode()) for name, payload in got if payload] == wanted


def test_separators_that_are_not_line_ends_stay_in_the_data():
    payload = json.dumps("a\u2028b\u2029c\u0085d\x0b", ensure_ascii=False).encode()
    assert data_of(b"data: " + payload + b"\n\n") == [payload]
