"""HttpWire against a real server that behaves, misbehaves and goes away."""

import gc
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from doubles.model_server import Answer, Close, Pause, Reset, Stall, serving

from novacode.errors import CredentialsError, ModelFailed, SettingsError
from novacode.models.endpoint import Endpoint, Timeouts
from novacode.models.http import HttpWire
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind

ASK = WireRequest("POST", "/v1/messages", {"content-type": "application/json"}, (b'{"model": "m"}',))
QUICK = Timeouts(connect=5, write=5, idle=0.15)


def wire_to(server, timeouts=None, **headers):
    return HttpWire(Endpoint(server.url, headers), timeouts)


async def read_all(response):
    chunks = []
    while chunk := await response.receive_some():
        chunks.append(chunk)
    return chunks


async def ask(wire):
    async with wire.open(ASK) as response:
        return await read_all(response)


@asynccontextmanager
async def talking(*answers, timeouts=None):
    """A server, and a wire to it. One function instead of answers is asked for each of them."""
    given = answers[0] if callable(answers[0]) else answers
    async with serving(given) as server:
        wire = wire_to(server, timeouts)
        yield server, wire
        await wire.aclose()


async def failure_of(wire, request=ASK):
    """The failure with which asking and reading everything ends."""
    with pytest.raises(ModelFailed) as caught:
        async with wire.open(request) as response:
            await read_all(response)
    await wire.aclose()
    return caught.value.failure


def network(text):
    return Failure(FailureKind.NETWORK, text, retryable=True)


def host_of(server):
    return server.url.removeprefix("http://")


async def test_request_and_response_pass_unchanged():
    """What is sent arrives with the key, and each chunk comes back as it was sent."""
    answer = Answer.sse(b"data: one\n\n", Pause(0.02), b"data: two\n\n", Pause(0.02), b"data: three\n\n")
    async with serving([answer]) as server:
        wire = wire_to(server, **{"X-Api-Key": "secret"})
        with trio.fail_after(5):
            async with wire.open(ASK) as response:
                assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
                assert await read_all(response) == [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]
                assert await response.receive_some() == b""
        await wire.aclose()
    [seen] = server.requests
    assert (seen.method, seen.path, seen.body) == (ASK.method, ASK.path, ASK.body)
    wanted = {"x-api-key": "secret", "accept-encoding": "identity", "content-type": "application/json"}
    assert {name: seen.headers[name] for name in wanted} == wanted


@pytest.mark.parametrize("sizes", [(), (0,), (1, 2, 3), (300_000,), (5, 300_000, 0, 7, 400_000, 300_000, 2)])
async def test_a_body_in_pieces_arrives_as_one(sizes):
    pieces = tuple(bytes([65 + at]) * size for at, size in enumerate(sizes))
    asked = WireRequest("POST", "/v1/messages", {}, pieces)
    async with talking(Answer.sse(b"fine")) as (server, wire), wire.open(asked) as response:
        assert await read_all(response) == [b"fine"]
    [seen] = server.requests
    assert seen.body == b"".join(pieces)


async def test_chunks_arrive_while_the_server_is_still_speaking():
    async with serving([Answer.sse(b"first", Stall())]) as server:
        wire = wire_to(server)
        with trio.fail_after(5):
            async with wire.open(ASK) as response:
                assert await response.receive_some() == b"first"
        await server.wait_closed(1)
        await wire.aclose()


async def test_connection_is_kept_between_requests():
    async with talking(Answer.sse(b"a"), Answer.sse(b"b")) as (server, wire):
        assert (await ask(wire), await ask(wire)) == ([b"a"], [b"b"])
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_kept_connection_that_died_is_replaced():
    """The server hangs up on the second request of a connection: nobody notices."""

    def answer(seen):
        first_of_its_connection = not any(other.connection == seen.connection for other in server.requests[:-1])
        return Answer.sse(b"fine") if first_of_its_connection else Answer(before=(Close(),))

    async with serving(answer) as server:
        wire = wire_to(server)
        assert (await ask(wire), await ask(wire)) == ([b"fine"], [b"fine"])
        await wire.aclose()
    assert [seen.connection for seen in server.requests] == [1, 1, 2]


async def test_hanging_up_on_a_fresh_connection_is_a_failure():
    async with serving([Answer(before=(Close(),)), Answer.sse(b"never asked for")]) as server:
        failure = await failure_of(wire_to(server))
    wanted = f"the connection to {host_of(server)} broke: Server disconnected without sending a response."
    assert failure == network(wanted)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((b"data: half", Close()), "peer closed connection without sending complete message body"),
        ((b"data: half", Pause(0.02), Reset()), "Connection reset by peer"),
        ((Close(),), "peer closed connection without sending complete message body"),
    ],
    ids=["cut", "reset", "close-after-headers"],
)
async def test_br_092_a_broken_body_is_a_retryable_network_failure(steps, reason):
    async with serving([Answer.sse(*steps)]) as server:
        failure = await failure_of(wire_to(server))
    assert failure == network(failure.message)
    assert failure.message.startswith(f"the connection to {host_of(server)} broke: {reason}")


async def test_br_093_silence_is_a_retryable_failure():
    async with serving([Answer.sse(b"data: 1\n\n", Stall())]) as server:
        with trio.fail_after(5):
            failure = await failure_of(wire_to(server, QUICK))
            await server.wait_closed(1)
    assert failure == network(f"the connection to {host_of(server)} stalled: no byte for 0.15 s")


async def test_br_093_silence_before_the_headers_is_the_same():
    async with serving([Answer(before=(Stall(),))]) as server:
        with trio.fail_after(5):
            failure = await failure_of(wire_to(server, QUICK))
    assert failure == network(f"the connection to {host_of(server)} stalled: no byte for 0.15 s")


async def test_br_093_cancelling_a_silent_stream_closes_the_socket():
    async with talking(Answer.sse(b"data: 1\n\n", Stall())) as (server, wire):
        with trio.fail_after(5):
            with trio.move_on_after(0.05) as scope:
                await ask(wire)
            assert scope.cancelled_caught
            await server.wait_closed(1)


async def raise_after_the_first_chunk(wire):
    async with wire.open(ASK) as response:
        await response.receive_some()
        raise ValueError("stop")


async def cancel_after_the_first_chunk(wire):
    with trio.CancelScope() as scope:
        async with wire.open(ASK) as response:
            await response.receive_some()
            scope.cancel()
            await response.receive_some()
    assert scope.cancelled_caught


async def test_br_016_leaving_early_200_times_leaves_nothing_behind():
    """Raise after the first chunk, or cancel only the stream's own scope: no generator, no socket, no stray cancel.

    A generator left behind is a `ResourceWarning` at its collection, and warnings are errors here.
    """
    async with talking(lambda _: Answer.sse(b"one", b"two", Stall())) as (server, wire):
        for _ in range(100):
            with pytest.raises(ValueError, match="stop"):
                await raise_after_the_first_chunk(wire)
            await cancel_after_the_first_chunk(wire)
            gc.collect(1)
            await trio.lowlevel.checkpoint()
        await server.wait_closed(200)
        gc.collect()
        assert server.opened == 200


@pytest.mark.parametrize("reads", [0, 1, 2])
async def test_leaving_with_the_body_half_read_leaves_no_generator(reads):
    async with serving([Answer.sse(b"one", Pause(0.01), b"two", Pause(0.01), b"three")]) as server:
        wire = wire_to(server)
        async with wire.open(ASK) as response:
            for _ in range(reads):
                await response.receive_some()
        gc.collect()
        await server.wait_closed(1)
        await wire.aclose()


async def test_cancelled_at_every_moment_of_a_request_the_wire_stays_usable():
    """A deadline that falls anywhere in a short exchange never breaks the next one."""
    async with talking(lambda _: Answer.sse(b"one", Pause(0.002), b"two")) as (_, wire):
        for tenth in range(60):
            with trio.move_on_after(tenth / 10_000):
                await ask(wire)
            gc.collect(0)
        assert b"".join(await ask(wire)) == b"onetwo"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_refused_and_the_key_stays(status):
    async with serving() as other:
        place = ("location", f"{other.url}/elsewhere?token=t")
        async with serving([Answer.error(status, {}, place)]) as server:
            failure = await failure_of(wire_to(server, **{"x-api-key": "secret"}))
        assert failure == Failure(
            FailureKind.INVALID_REQUEST,
            f"{host_of(server)} redirects to {other.url}/elsewhere (HTTP {status}). Redirects are not followed, "
            "because that would send the key there: set the base URL to the right address",
            retryable=False,
            status=status,
        )
        assert other.requests == []


async def test_a_compressed_body_is_refused():
    async with serving([Answer((b"\x1f\x8b",), headers=(("content-encoding", "gzip"),))]) as server:
        failure = await failure_of(wire_to(server))
    assert (failure.kind, failure.retryable) == (FailureKind.PROTOCOL, False)
    assert "compressed (gzip)" in failure.message


async def test_nobody_listening():
    async with serving() as server:
        pass
    failure = await failure_of(wire_to(server))
    assert failure == network(f"{host_of(server)} cannot be reached: Connection refused")


async def test_a_name_that_does_not_exist(monkeypatch):
    async def getaddrinfo(*_args, **_kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(trio.socket, "getaddrinfo", getaddrinfo)
    failure = await failure_of(HttpWire(Endpoint("http://no-such-host.invalid")))
    assert failure == network("no-such-host.invalid cannot be reached: Name or service not known")


async def test_plain_http_where_tls_is_expected():
    async with serving([Answer.sse(b"x")]) as server:
        failure = await failure_of(HttpWire(Endpoint(server.url.replace("http:", "https:"))))
    assert failure.kind is FailureKind.NETWORK
    assert failure.message.startswith(f"{host_of(server)} cannot be reached: ")
    assert len(failure.message) > len(f"{host_of(server)} cannot be reached: ")


async def test_error_statuses_are_the_callers_business():
    async with serving([Answer.error(401, {"error": "no"}), Answer.error(404, {"error": "where"})]) as server:
        wire = wire_to(server)
        for status, body in ((401, b'{"error": "no"}'), (404, b'{"error": "where"}')):
            async with wire.open(ASK) as response:
                assert (response.status, b"".join(await read_all(response))) == (status, body)
        await wire.aclose()


async def test_wire_can_be_used_after_it_was_closed():
    async with talking(Answer.sse(b"a"), Answer.sse(b"b")) as (server, wire):
        for wanted in (b"a", b"b"):
            assert await ask(wire) == [wanted]
            await wire.aclose()
    assert [seen.connection for seen in server.requests] == [1, 2]


def test_endpoint_never_shows_its_key():
    endpoint = Endpoint("https://host.example", {"x-api-key": "sk-secret"})
    assert "sk-secret" not in repr(endpoint) + str(endpoint)


@pytest.mark.parametrize("value", ["sk-1\n", "“sk-1”", "sk\u20111"])
def test_a_key_that_cannot_be_a_header_is_refused_without_showing_it(value):
    with pytest.raises(CredentialsError, match="x-api-key") as caught:
        Endpoint("https://host.example", {"x-api-key": value})
    assert value not in str(caught.value)


@pytest.mark.parametrize("url", ["", "host.example", "ftp://host.example", "https://"])
def test_a_base_url_that_cannot_be_used_is_named(url):
    with pytest.raises(SettingsError, match="base URL") as caught:
        Endpoint(url)
    assert repr(url) in str(caught.value)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://h.example", "/v1/messages", "https://h.example/v1/messages"),
        ("https://h.example/", "v1/messages", "https://h.example/v1/messages"),
        ("https://h.example/v1", "/v1/messages", "https://h.example/v1/messages"),
        ("https://h.example/v1", "/chat/completions", "https://h.example/v1/chat/completions"),
        ("https://h.example/v1beta/", "/v1beta/m:go?alt=sse", "https://h.example/v1beta/m:go?alt=sse"),
        ("https://h.example/p?api-version=2", "/chat", "https://h.example/p/chat?api-version=2"),
        ("https://h.example/p?a=1", "/chat?b=2", "https://h.example/p/chat?a=1&b=2"),
        ("http://[::1]:80/v1", "/chat", "http://[::1]:80/v1/chat"),
    ],
)
def test_urls_are_joined(base, path, url):
    assert Endpoint(base).url(path) == url


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:11434", True),
        ("http://127.0.0.1:1", True),
        ("http://[::1]:8080", True),
        ("http://10.0.0.1", False),
        ("https://localhost.example", False),
    ],
)
def test_endpoints_of_this_machine_are_known(url, local):
    assert Endpoint(url).is_local is local


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_from_the_environment_is_not_used_for_this_machine(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with talking(Answer.sse(b"direct")) as (_, wire):
        assert await ask(wire) == [b"direct"]


async def test_a_proxy_from_the_environment_is_used_for_others(monkeypatch):
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    async with serving([Answer.sse(b"by proxy")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        wire = HttpWire(Endpoint("http://model.example/v1"))
        assert await ask(wire) == [b"by proxy"]
        await wire.aclose()
    assert proxy.requests[0].path == "http://model.example/v1/messages"


def test_importing_it_does_not_import_the_http_command_line():
    code = "import sys, novacode.models.http; print({'rich', 'click', 'pygments', 'httpx._main'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_timeouts_are_values():
    assert attrs.asdict(Timeouts()) == {"connect": 20.0, "write": 60.0, "idle": 300.0}
