"""Tapes: what gets onto one, what comes off it, and what is never on it."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from novacode.errors import InputError, ModelFailed, ReplayMismatch
from novacode.models.client import ModelClient
from novacode.models.key_shapes import find_keys, hide_keys
from novacode.models.tape import Recorder, RecordingWire, TapeWire
from novacode.models.tape_file import TapeHeader, TapeWriter, bytes_of, dump_lines, packed, read_tape
from novacode.models.tape_match import Names, first_difference
from novacode.models.tape_play import TapePlayer, requests_of
from novacode.protocols.anthropic import AnthropicCodec
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import History
from novacode.values.ids import CallIds
from novacode.values.parts import User
from novacode.values.request import ModelRequest

HEADER = TapeHeader("anthropic/m", "m", "anthropic", folder="/home/me/project", clock=100.0)
BROKE = Failure(FailureKind.NETWORK, "the connection broke", retryable=True)


@attrs.define
class Spoken:
    """A response made of bytes, seconds of silence, and failures."""

    steps: list
    status: int = 200
    headers: dict = attrs.field(factory=lambda: {"content-type": "text/event-stream"})

    async def receive_some(self):
        await trio.lowlevel.checkpoint()
        while self.steps:
            match self.steps.pop(0):
                case bytes(data):
                    return data
                case Failure() as failure:
                    raise ModelFailed(failure)
                case seconds:
                    await trio.sleep(seconds)
        return b""


@attrs.define
class SpeakingWire:
    """A wire with one response for each request; a failure in the place of one is nobody to talk to."""

    responses: list

    @asynccontextmanager
    async def open(self, request):
        await trio.sleep(0.5)
        response = self.responses.pop(0)
        if isinstance(response, Failure):
            raise ModelFailed(response)
        yield response

    async def aclose(self):
        await trio.lowlevel.checkpoint()


def request(body, path="/v1/messages"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return WireRequest("POST", path, {"content-type": "application/json"}, (data,))


async def read_all(wire, asked):
    """Every chunk, with the time it came at; a failure last."""
    began, got = trio.current_time(), []
    try:
        async with wire.open(asked) as response:
            while data := await response.receive_some():
                got.append((round(trio.current_time() - began, 6), data))
            got.append((round(trio.current_time() - began, 6), response.status, dict(response.headers)))
    except ModelFailed as failed:
        got.append((round(trio.current_time() - began, 6), failed.failure))
    return got


def recorder(path, names=None, header=HEADER):
    return Recorder(TapeWriter(path, header), names or Names())


def lines_of(path):
    """The lines after the header."""
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


async def recorded(path, responses, names=None):
    """Record a request for each of `responses` and return what was read."""
    made = recorder(path, names)
    wire = RecordingWire(SpeakingWire(responses), made)
    got = [await read_all(wire, request({"number": number})) for number in range(len(responses))]
    made.writer.close()
    return got


# --- the same comes out ---------------------------------------------------------------------------------------------

CUT_CHARACTER = "é".encode()
RESPONSES = [
    lambda: Spoken([b"one", 0.25, b"two", CUT_CHARACTER[:1], CUT_CHARACTER[1:], 1.5]),
    lambda: Spoken([b'{"error": "slow down"}'], 429, {"retry-after": "3", "content-type": "application/json"}),
    lambda: Spoken([b"half", 0.125, BROKE]),
    lambda: Failure(FailureKind.NETWORK, "example cannot be reached", retryable=True),
    lambda: Spoken([]),
]


async def test_what_came_comes_again_with_its_boundaries_and_gaps(tmp_path, autojump_clock):
    """Bytes, boundaries, times, statuses, headers, and how each of them ended."""
    path = tmp_path / "a.tape"
    first = await recorded(path, [make() for make in RESPONSES])
    wire = TapeWire(TapePlayer(read_tape(path), virtual=True))
    assert [await read_all(wire, request({"number": number})) for number in range(len(RESPONSES))] == first
    assert first[0][:4] == [(0.5, b"one"), (0.75, b"two"), (0.75, CUT_CHARACTER[:1]), (0.75, CUT_CHARACTER[1:])]
    assert not wire.player.unused()


async def test_without_virtual_time_nothing_is_waited_for_and_time_comes_from_the_tape(tmp_path, autojump_clock):
    path, told = tmp_path / "a.tape", []
    first = await recorded(path, [make() for make in RESPONSES])
    wire = TapeWire(TapePlayer(read_tape(path)), told.append)
    began = trio.current_time()
    again = [await read_all(wire, request({"number": number})) for number in range(len(RESPONSES))]
    assert trio.current_time() == began
    assert [[entry[1:] for entry in one] for one in again] == [[entry[1:] for entry in one] for one in first]
    assert (told[0], told[-1]) == (100.5, 104.375)
    assert told == sorted(told)


@pytest.mark.parametrize("virtual", [True, False])
async def test_a_stall_is_told_in_the_readers_own_words(tmp_path, autojump_clock, virtual):
    """Nobody ended that response: the client gave up. With virtual time it does so again."""
    path = tmp_path / "a.tape"
    asked = ModelRequest("m", "", History().with_user(User.said("hi")))

    async def failure(wire):
        client = ModelClient(AnthropicCodec(), wire, CallIds(), 30.0)
        with pytest.raises(ModelFailed) as caught:
            async with client.stream(asked) as stream:
                await stream.receive()
        return caught.value.failure

    made = recorder(path)
    first = await failure(RecordingWire(SpeakingWire([Spoken([b": keep-alive\n\n", 1e9])]), made))
    made.writer.close()
    assert [line["how"] for line in lines_of(path) if line["type"] == "end"] == ["stall"]
    assert await failure(TapeWire(TapePlayer(read_tape(path), virtual=virtual))) == first


async def test_a_recording_that_was_killed_can_be_read_up_to_there(tmp_path, autojump_clock):
    """Every line is written when it happens; half of the last one is left out."""
    path = tmp_path / "a.tape"
    await recorded(path, [Spoken([b"one", b"two"])])
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b'"text":"two') + 5])
    wire = TapeWire(TapePlayer(read_tape(path), virtual=True))
    async with wire.open(request({"number": 0})) as response:
        assert await response.receive_some() == b"one"
        with pytest.raises(ReplayMismatch, match="the recording breaks off there"):
            await response.receive_some()


@given(st.binary())
def test_any_bytes_survive(data):
    [line] = dump_lines([{"type": "chunk", **packed(data)}]).splitlines()
    assert bytes_of(json.loads(line)) == data


# --- what is not on the tape ----------------------------------------------------------------------------------------

BODY = {
    "model": "m",
    "max_tokens": 16,
    "stream": True,
    "system": [{"type": "text", "text": "You work in /home/me/project."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "first line\nsecond line " + "x" * 300}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "input": {"path": "a.txt", "n": 1}}]},
    ],
}

EDITS = [
    (lambda body: body.update(model="n"), '$.model: expected "m", found "n"'),
    (lambda body: body.update(max_tokens=17), "$.max_tokens: expected 16, found 17"),
    (lambda body: body.pop("stream"), "$.stream: expected true, found nothing"),
    (lambda body: body.update(stream=1), "$.stream: expected true, found 1"),
    (lambda body: body.update({"top-p": 1}), '$["top-p"]: expected nothing, found 1'),
    (lambda body: body["messages"].append("more"), '$.messages[2]: expected nothing, found "more"'),
    (lambda body: body["messages"].pop(), "$.messages[1]: expected {"),
    (
        lambda body: body["messages"][0]["content"][0].update(text="first line\nsecond lime " + "x" * 300),
        '$.messages[0].content[0].text: expected "first line\\nsecond line xx',
    ),
    (
        lambda body: body["messages"][1]["content"][0]["input"].update(n=None),
        "$.messages[1].content[0].input.n: expected 1, found null",
    ),
    (
        lambda body: body["system"].insert(0, {"type": "text", "text": "New."}),
        '$.system[0].text: expected "You work in /home/me/project.", found "New."',
    ),
]


@pytest.mark.parametrize("edit", range(len(EDITS)))
async def test_the_first_difference_is_shown(tmp_path, autojump_clock, edit):
    path = tmp_path / "a.tape"
    made = recorder(path)
    await read_all(RecordingWire(SpeakingWire([Spoken([b"x"])]), made), request(BODY))
    change, expected = EDITS[edit]
    body = json.loads(json.dumps(BODY))
    change(body)
    with pytest.raises(ReplayMismatch) as caught:
        await read_all(TapeWire(TapePlayer(read_tape(path))), request(body))
    told = str(caught.value)
    assert told.startswith(f"request 1 is not on the tape {path}: it differs from request 1 (line 2) at {expected}")


async def test_another_address_is_another_request(tmp_path, autojump_clock):
    path = tmp_path / "a.tape"
    await recorded(path, [Spoken([b"x"])])
    with pytest.raises(ReplayMismatch, match='at path: expected "/v1/messages", found "/v2"'):
        await read_all(TapeWire(TapePlayer(read_tape(path))), request({"number": 0}, "/v2"))


async def test_the_order_of_fields_means_nothing_and_no_request_is_used_twice(tmp_path, autojump_clock):
    """The same content twice, as a retry makes it, gets the two answers in order; a third time there is none left."""
    path = tmp_path / "a.tape"
    made = recorder(path)
    wire = RecordingWire(SpeakingWire([Spoken([b"1"]), Spoken([b"2"])]), made)
    for _ in range(2):
        await read_all(wire, request({"a": 1, "b": 2.0}))
    played = TapeWire(TapePlayer(read_tape(path)))
    got = [await read_all(played, request({"b": 2, "a": 1})) for _ in range(2)]
    assert [one[0][1] for one in got] == [b"1", b"2"]
    with pytest.raises(ReplayMismatch, match=r"request 3 .* at \$: expected no further request, found POST"):
        await read_all(played, request({"b": 2, "a": 1}))


async def test_what_was_not_asked_for_is_told(tmp_path, autojump_clock):
    path = tmp_path / "a.tape"
    await recorded(path, [Spoken([b"x"]) for _ in range(3)])
    player = TapePlayer(read_tape(path))
    await read_all(TapeWire(player), request({"number": 1}))
    assert player.unused() == (f"2 requests on the tape {path} were not made: 1 (line 2), 3 (line 10)",)


def test_no_difference_between_equal_values():
    assert first_difference({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}) is None


# --- another folder -------------------------------------------------------------------------------------------------


def test_folders_are_named_and_nothing_else_is():
    names = Names.of([("/w", "⟦folder⟧"), ("/w/.home", "⟦spill⟧")], [("linux", "⟦platform⟧")])
    text = "in /w: /w/a.txt, /www, /w2, /new/w, /w.bak, (/w), /w/.home/x, file:///w/b, \\n/w/c. linux"
    assert names.text(text) == (
        "in ⟦folder⟧: ⟦folder⟧/a.txt, /www, /w2, /new/w, /w.bak, (⟦folder⟧), ⟦spill⟧/x, file://⟦folder⟧/b, "
        "\\n⟦folder⟧/c. ⟦platform⟧"
    )
    assert Names.of([("/", "⟦folder⟧"), ("", "⟦folder⟧")]).text("a/b") == "a/b"


async def test_a_tape_is_valid_in_another_folder(tmp_path, autojump_clock):
    """Recorded here, played there: requests name the folder they are made in."""
    path = tmp_path / "a.tape"
    made = recorder(path, Names.of([("/home/me/project", "⟦folder⟧")]))
    await read_all(RecordingWire(SpeakingWire([Spoken([b"x"])]), made), request(BODY))
    assert "/home/me/project" not in path.read_text().split("\n", 1)[1]
    there = json.loads(json.dumps(BODY).replace("/home/me/project", "/ci/build"))
    player = TapePlayer(read_tape(path), Names.of([("/ci/build", "⟦folder⟧")]))
    assert len(await read_all(TapeWire(player), request(there))) == 2


# --- secrets --------------------------------------------------------------------------------------------------------

KEYS = {
    "Anthropic key": "sk-ant-" + "api03-Abc123def456Ghi789",
    "OpenAI key": "sk-" + "proj-Abc123def456Ghi789jkl",
    "Google key": "AIza" + "SyA1234567890abcdefghijklmnopqrstuvw",
    "Groq key": "gsk_" + "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
    "xAI key": "xai-" + "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
    "Hugging Face key": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "GitHub key": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "GitLab key": "glpat-" + "abcdefghijklmnopqrst",
    "AWS key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "Slack key": "xoxb-" + "1234567890-abcdef",
    "bearer token": "Bearer " + "abcdefghijklmnopqrstuvwx",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", KEYS)
async def test_nothing_with_the_shape_of_a_key_gets_onto_a_tape(tmp_path, autojump_clock, kind):
    """Wherever it comes from: a request, a response, a header that is kept, what a tool has said."""
    path, key = tmp_path / "a.tape", KEYS[kind]
    made = recorder(path, Names.of(hide=hide_keys))
    headers = {"content-type": f"text/{key}", "x-api-key": key, "set-cookie": key, "authorization": f"Bearer {key}"}
    wire = RecordingWire(
        SpeakingWire([Spoken([f'data: "{key}"'.encode(), Failure(FailureKind.NETWORK, key, True)])]), made
    )
    wire._inner.responses[0].headers = headers
    asked = WireRequest(
        "POST", f"/v1?key={key}", {"authorization": f"Bearer {key}"}, (json.dumps({"a": key, key: 1}).encode(),)
    )
    await read_all(wire, asked)
    made.note("tool", {"call": "c", "name": "shell", "arguments": {"command": key}, "took": 0.0, "how": "done"})
    text = path.read_text()
    assert key not in text
    assert find_keys(text) == ()
    assert f"[{kind} removed]" in text
    # What is compared is without it, too: the tape still fits the request it was made of.
    player = TapePlayer(read_tape(path), Names.of(hide=hide_keys))
    assert player.take_request(asked).number == 1


def test_ordinary_words_are_no_keys():
    text = "sk-learn-is-a-library-for-machine-learning, task-force, AKIA, Bearer of news, hf_hub_download, sk-ant-hill"
    assert find_keys(text) == ()


async def test_of_headers_only_those_are_kept_that_are_read(tmp_path, autojump_clock):
    path = tmp_path / "a.tape"
    response = Spoken(
        [b"x"], 200, {"content-type": "a/b", "set-cookie": "s=1", "x-request-id": "r", "retry-after": "1"}
    )
    await recorded(path, [response])
    [line] = [line for line in lines_of(path) if line["type"] == "response"]
    assert line["headers"] == {"content-type": "a/b", "retry-after": "1"}
    assert "application/json" not in path.read_text()


# --- the file -------------------------------------------------------------------------------------------------------


async def test_a_tape_is_lines_that_can_be_read_and_edited(tmp_path, autojump_clock):
    path = tmp_path / "a.tape"
    await recorded(path, [Spoken(["data: \u2028é\n\n".encode(), b"\xff"])])
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert lines_of(path) == [
        {"type": "request", "request": 1, "method": "POST", "path": "/v1/messages", "body": {"number": 0}},
        {"type": "response", "request": 1, "gap": 0.5, "status": 200, "headers": {"content-type": "text/event-stream"}},
        {"type": "chunk", "request": 1, "gap": 0.0, "text": "data: \u2028é\n\n"},
        {"type": "chunk", "request": 1, "gap": 0.0, "base64": "/w=="},
        {"type": "end", "request": 1, "gap": 0.0, "how": "end"},
    ]
    edited = path.read_text().replace("data: ", "datum: ").replace('"gap":0.5', '"gap":1')
    path.write_text(edited + "\n\n")
    [taped] = requests_of(read_tape(path))
    assert (taped.wait, taped.chunks[0].data) == (1, "datum: \u2028é\n\n".encode())


WRONG = [
    ('{"type":"chunk","request":1,"gap":0,"text":"x"}', "line 2: there is no request 1 before this chunk"),
    ('{"type":"request","request":true,"method":"POST","path":"/"}', "line 2: `request` of a request is True"),
    ('{"type":"end","request":1,"gap":0,"how":"gone"}', "line 2: `how` of an end is 'gone'; there are end, cut"),
    ('{"type":"chunk","request":1,"gap":0}', "line 2: a chunk has no bytes that can be read"),
    ('{"type":"chunk","request":1,"gap":0,"base64":"?"}', "line 2: a chunk has no bytes that can be read"),
    ('{"type":"song"}', "line 2: its type is 'song'; there are request, response"),
    ("[1]", "line 2: this is no JSON object"),
    ("{", "line 2: this is no JSON"),
]


@pytest.mark.parametrize(("line", "told"), WRONG)
def test_what_is_wrong_is_told_by_line(tmp_path, line, told):
    path = tmp_path / "a.tape"
    path.write_bytes(dump_lines([HEADER]) + line.encode() + b"\n")
    with pytest.raises(InputError) as caught:
        requests_of(read_tape(path))
    assert told in str(caught.value)


HEADERS = [
    ({"format": "other"}, "is not a tape"),
    ({"version": 2}, "is a tape of version 2; this NovaCode reads versions up to 1"),
    ({"model": 7}, "line 1: `model` is 7"),
    ({"clock": "noon"}, "line 1: `clock` is 'noon'"),
    ({"scripted": 1}, "line 1: `scripted` is 1"),
    ({"from_the_future": 1}, ""),
]


@pytest.mark.parametrize(("change", "told"), HEADERS)
def test_headers(tmp_path, change, told):
    path = tmp_path / "a.tape"
    path.write_text(json.dumps(json.loads(dump_lines([HEADER])) | change) + "\n")
    if not told:
        assert read_tape(path).header == HEADER
        return
    with pytest.raises(InputError) as caught:
        read_tape(path)
    assert told in str(caught.value)


def test_a_file_that_is_no_tape_is_not_overwritten(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(InputError, match="is not a tape, so it is not overwritten"):
        TapeWriter(path, HEADER)
    assert path.read_text() == "mine"


def test_an_old_tape_is_kept_until_there_is_something_new(tmp_path):
    path = tmp_path / "a.tape"
    path.write_bytes(dump_lines([HEADER, {"type": "stopped", "reason": "old"}]))
    writer = TapeWriter(path, HEADER)
    assert b"old" in path.read_bytes()
    writer.write("stopped", {"reason": "new"})
    writer.close()
    writer.write("stopped", {"reason": "too late"})
    assert [line.data["reason"] for line in read_tape(path).lines] == ["new"]


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        TapeWriter(tmp_path / "missing" / "a.tape", HEADER)


def test_a_disk_that_is_full_is_told_once(tmp_path):
    writer, told = TapeWriter(tmp_path / "a.tape", HEADER), []
    writer.on_failure = told.append
    writer.write("stopped", {"reason": "x"})
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._fd)
    os.close(full)
    for _ in range(2):
        writer.write("stopped", {"reason": "x"})
    assert [error.strerror for error in told] == ["No space left on device"]
