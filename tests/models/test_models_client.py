"""ModelClient: silence, failures and ends, over a fake wire on a virtual clock and over real HTTP."""

import json
from contextlib import asynccontextmanager, suppress

import attrs
import pytest
import trio
from doubles.model_server import Answer, Close, Pause, Reset, Stall, serving

from novacode.errors import LocalProtocolError, ModelFailed, RemoteProtocolError
from novacode.models.client import PATIENCE, ModelClient
from novacode.models.endpoint import Endpoint
from novacode.models.http import HttpWire
from novacode.protocols.anthropic import AnthropicCodec
from novacode.protocols.openai_chat import OpenAIChatCodec
from novacode.values.events import Finished, TextDelta
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import History
from novacode.values.ids import CallIds
from novacode.values.parts import User
from novacode.values.request import ModelRequest, StopReason

ASK = ModelRequest("m", "", History().with_user(User.said("hello")))
EVENTS = {"content-type": "text/event-stream"}


def event(**data):
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
START = event(type="message_start", message=MESSAGE)
END = event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={}) + event(type="message_stop")


def text(word, index=0):
    return (
        event(type="content_block_start", index=index, content_block={"type": "text", "text": ""})
        + event(type="content_block_delta", index=index, delta={"type": "text_delta", "text": word})
        + event(type="content_block_stop", index=index)
    )


@attrs.define
class FakeResponse:
    """Chunks of bytes, seconds to wait, failures to raise; `None` is silence without end."""

    status: int
    headers: dict
    chunks: list
    left: bool = False

    async def receive_some(self):
        await trio.lowlevel.checkpoint()
        while self.chunks:
            match self.chunks.pop(0):
                case bytes() as data:
                    return data
                case None:
                    await trio.sleep_forever()
                case ModelFailed() as error:
                    raise error
                case seconds:
                    await trio.sleep(seconds)
        return b""


class FakeWire:
    def __init__(self, *chunks, status=200, headers=None):
        self.response = FakeResponse(status, headers or EVENTS, list(chunks))

    @asynccontextmanager
    async def open(self, request):
        try:
            yield self.response
        finally:
            self.response.left = True

    async def aclose(self):
        pass


def client_on(*chunks, idle=10.0, codec=None, **response):
    return ModelClient(codec or AnthropicCodec(), FakeWire(*chunks, **response), CallIds(), idle)


async def replied(client, seen=None):
    """The events of one reply; also kept in `seen`, for replies that fail."""
    events = [] if seen is None else seen
    async with client.stream(ASK) as stream:
        while more := await stream.receive():
            events += more
    return events


async def failure_of(client, seen=None):
    with pytest.raises(ModelFailed) as caught:
        await replied(client, seen)
    return caught.value.failure


def words(events):
    return [event.text for event in events if isinstance(event, TextDelta)]


@asynccontextmanager
async def over_http(*answers, codec=None, path=""):
    """A server that gives `answers`, and a client that asks it."""
    async with serving(answers) as server:
        wire = HttpWire(Endpoint(server.url + path))
        yield server, ModelClient(codec or AnthropicCodec(), wire, CallIds())
        await wire.aclose()


# --- silence ------------------------------------------------------------------------------------------------------


KEEP_ALIVES = [b": waiting\n\n", b":\n", b"\n\n", b"event: ping\n\n", b"data:\n\n", b"data: \n\n"]
KEEP_ALIVES += [b"data: : PROCESSING\n\n", b"id: 7\nretry: 100\n\n", event(type="ping")]


@pytest.mark.parametrize("keep_alive", KEEP_ALIVES)
async def test_br_089_keep_alives_count_as_life(keep_alive, autojump_clock):
    """Between two good events they reset the idle limit, however long one of them alone would have been."""
    patient = [9.0, keep_alive, 9.0, keep_alive, 9.0]
    events = await replied(client_on(START, text("one"), *patient, text("two", 1), END))
    assert words(events) == ["one", "two"]


async def test_br_089_keep_alives_do_not_count_as_progress(autojump_clock):
    began = trio.current_time()
    seen = []
    failure = await failure_of(client_on(START, text("one"), *[5.0, b": waiting\n\n"] * 1000), seen)
    wanted = "the reply stalled: nothing but keep-alives for 40 s"
    assert failure == Failure(FailureKind.NETWORK, wanted, retryable=True)
    assert words(seen) == ["one"]
    assert trio.current_time() - began == pytest.approx(10.0 * PATIENCE)


async def test_progress_resets_the_patience_for_keep_alives(autojump_clock):
    slow = [*[9.0, b": waiting\n\n"] * 4, text("more", 1)]
    assert words(await replied(client_on(START, *slow, *slow, END))) == ["more", "more"]


async def test_br_093_silence_is_a_retryable_stall(autojump_clock):
    began = trio.current_time()
    client = client_on(START, text("one"), None)
    failure = await failure_of(client)
    assert failure == Failure(FailureKind.NETWORK, "the reply stalled: no byte for 10 s", retryable=True)
    assert trio.current_time() - began == pytest.approx(10.0)


async def test_br_093_a_silent_reply_can_be_cancelled(autojump_clock):
    client = client_on(START, None)
    with trio.move_on_after(0.5) as scope:
        await replied(client)
    assert scope.cancelled_caught
    assert client._wire.response.left


async def test_without_a_limit_silence_is_waited_for(autojump_clock):
    assert words(await replied(client_on(START, 1e6, text("late"), END, idle=None))) == ["late"]


# --- the end ------------------------------------------------------------------------------------------------------


async def test_a_complete_reply_ends_without_the_servers_end(autojump_clock):
    """The stream ends at once; leaving waits a moment for the connection, and no longer."""
    began = trio.current_time()
    client = client_on(START, text("all"), END, None)
    async with client.stream(ASK) as stream:
        events = []
        while more := await stream.receive():
            events += more
        assert events[-1] == Finished(StopReason.END, "end_turn")
        assert await stream.receive() == ()
        assert trio.current_time() == began
    assert trio.current_time() - began == pytest.approx(1.0)


async def test_a_connection_that_breaks_after_the_reply_costs_nothing():
    broke = ModelFailed(Failure(FailureKind.NETWORK, "broke", retryable=True))
    assert words(await replied(client_on(START, text("all"), END, broke))) == ["all"]


async def test_the_connection_is_used_again_after_a_complete_reply():
    answer = Answer.sse(START, text("a"), END, Pause(0.02))
    async with over_http(answer, answer) as (server, client):
        for _ in range(2):
            assert words(await replied(client)) == ["a"]
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_leaving_early_drains_nothing(autojump_clock):
    began = trio.current_time()
    async with client_on(START, text("a"), None).stream(ASK) as stream:
        await stream.receive()
    assert trio.current_time() == began


async def test_the_consumers_own_exception_passes_unchanged():
    async def read_and_raise():
        async with client_on(START, text("a"), END).stream(ASK) as stream:
            await stream.receive()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await read_and_raise()


# --- broken replies -----------------------------------------------------------------------------------------------


async def test_br_090_an_error_event_comes_after_what_was_said_before_it():
    busy = event(type="error", error={"type": "overloaded_error", "message": "busy"})
    half_a_call = event(
        type="content_block_start", index=1, content_block={"type": "tool_use", "id": "t", "name": "shell", "input": {}}
    )
    seen = []
    failure = await failure_of(client_on(START + text("Partial") + half_a_call + busy), seen)
    assert words(seen) == ["Partial"]
    assert (failure.kind, failure.retryable, failure.raw_type) == (FailureKind.OVERLOADED, True, "overloaded_error")


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(data)}\n\n".encode()


async def test_br_091_a_chat_reply_without_its_end_mark_is_complete():
    client = client_on(chunk({"content": "ok"}), chunk({}, "stop"), codec=OpenAIChatCodec())
    assert words(await replied(client)) == ["ok"]


@pytest.mark.parametrize(
    ("codec", "chunks"),
    [(OpenAIChatCodec(), [chunk({"content": "half"})]), (AnthropicCodec(), [START, text("half")])],
    ids=["chat", "anthropic"],
)
async def test_br_091_a_reply_that_just_ends_is_cut(codec, chunks):
    seen = []
    failure = await failure_of(client_on(*chunks, codec=codec), seen)
    assert words(seen) == ["half"]
    assert (failure.kind, failure.retryable) == (FailureKind.PROTOCOL, True)
    assert failure.message.startswith("the reply broke the protocol: ")


@pytest.mark.parametrize("fault", [Close(), Reset()], ids=["cut", "reset"])
async def test_br_092_a_connection_cut_in_the_middle_of_a_frame(fault):
    frame = text("never whole")
    async with over_http(
        Answer.sse(START, text("half"), frame[: len(frame) // 2], Pause(0.05), fault), Answer.sse(START, END)
    ) as (_, client):
        seen = []
        failure = await failure_of(client, seen)
        assert words(seen) == ["half"]
        assert (failure.kind, failure.retryable) == (FailureKind.NETWORK, True)
        assert isinstance((await replied(client))[-1], Finished)


async def test_a_body_that_was_not_understood_is_shown():
    client = client_on(b'{"detail": "streaming is off"}', headers={"content-type": "application/json"})
    failure = await failure_of(client)
    assert failure.kind is FailureKind.PROTOCOL
    assert "streaming is off" in failure.message


async def test_cut_at_every_byte_a_reply_fails_or_is_whole():
    """Nothing but `ModelFailed` leaves the client, wherever a reply is cut."""
    body = START + text("añ😀") + END
    outcomes = set()
    for end in range(len(body) + 1):
        try:
            outcomes.add(type((await replied(client_on(body[:end])))[-1]))
        except ModelFailed as error:
            outcomes.add((error.failure.kind, error.failure.retryable))
    assert outcomes == {Finished, (FailureKind.PROTOCOL, True)}


async def test_a_bug_of_ours_is_not_dressed_up_as_the_providers():
    class Wrong(AnthropicCodec):
        def decoder(self, ids):
            decoder = super().decoder(ids)
            decoder.feed(START + b": ")
            with suppress(RemoteProtocolError):
                decoder.close()
            decoder.error = None
            return decoder

    with pytest.raises(LocalProtocolError):
        await replied(client_on(START, codec=Wrong()))


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (401, FailureKind.AUTHENTICATION, False),
        (404, FailureKind.INVALID_REQUEST, False),
        (429, FailureKind.RATE_LIMIT, True),
        (500, FailureKind.SERVER, True),
        (529, FailureKind.OVERLOADED, True),
    ],
)
async def test_a_refusal_is_read_by_the_codec(status, kind, retryable):
    async with over_http(Answer.error(status, {"error": {"message": "because"}}, ("retry-after", "3"))) as (_, client):
        failure = await failure_of(client)
    assert (failure.kind, failure.retryable, failure.status) == (kind, retryable, status)
    assert "because" in failure.message


async def test_a_huge_refusal_is_read_in_part():
    chunk_of_it = b"x" * 65536
    async with over_http(Answer((b'{"error": "', *[chunk_of_it] * 200), 500)) as (server, client):
        failure = await failure_of(client)
        await server.wait_closed(1)
    assert failure.status == 500
    assert len(failure.message) < 5_000


async def test_a_refusal_that_never_ends_is_not_waited_for(autojump_clock):
    began = trio.current_time()
    failure = await failure_of(client_on(b'{"error": {"message": "sorry"}}', None, status=503, idle=300.0))
    assert (failure.status, failure.retryable) == (503, True)
    assert trio.current_time() - began == pytest.approx(10.0)


async def test_a_refusal_whose_body_breaks_still_has_its_status():
    broke = ModelFailed(Failure(FailureKind.NETWORK, "broke", retryable=True))
    assert (await failure_of(client_on(broke, status=529))).kind is FailureKind.OVERLOADED


async def test_a_web_page_is_not_a_reply():
    page = Answer((b"<html><title>Sign in</title></html>",), headers=(("content-type", "text/html; charset=utf-8"),))
    async with over_http(page) as (_, client):
        failure = await failure_of(client)
    assert (failure.kind, failure.retryable, failure.status) == (FailureKind.PROTOCOL, False, 200)
    assert "web page" in failure.message
    assert "Sign in" in failure.message


async def test_a_web_page_that_never_ends_is_not_waited_for(autojump_clock):
    began = trio.current_time()
    failure = await failure_of(client_on(b"<html>", None, headers={"content-type": "text/html"}))
    assert "<html>" in failure.message
    assert trio.current_time() - began == pytest.approx(1.0)


async def test_the_request_is_what_the_codec_wrote():
    async with over_http(Answer.sse(START, END)) as (server, client):
        await replied(client)
    [seen] = server.requests
    assert (seen.path, seen.json["model"], seen.json["stream"]) == ("/v1/messages", "m", True)


async def test_cancelling_closes_the_connection_at_once():
    async with over_http(Answer.sse(START, text("a"), Stall())) as (server, client):
        with trio.fail_after(5):
            with trio.move_on_after(0.05) as scope:
                await replied(client)
            assert scope.cancelled_caught
            await server.wait_closed(1)
