"""HttpWire over TLS: certificates nobody vouches for, handshakes that never end, records that are cut."""

import ssl
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from doubles.certificates import self_signed

from novacode.errors import ModelFailed
from novacode.models.endpoint import Endpoint, Timeouts
from novacode.models.http import HttpWire
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind

ASK = WireRequest("POST", "/v1/messages", {}, (b"{}",))
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a self-signed certificate for localhost."""
    return self_signed(tmp_path_factory.mktemp("tls"))


async def cut_inside_a_record(stream):
    await stream.receive_some()
    await stream.send_all(HEAD)
    await stream.transport_stream.send_all(b"\x17\x03\x03\x01\x00half of a record")
    await trio.sleep(0.02)
    await stream.transport_stream.aclose()


@asynccontextmanager
async def tls_server(certificate):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate[1], certificate[0])

    async def handle(stream):
        with suppress(trio.BrokenResourceError):  # where the client does not like the certificate
            await cut_inside_a_record(stream)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        yield f"localhost:{listener.transport_listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def read_into(seen, wire):
    async with wire.open(ASK) as response:
        while data := await response.receive_some():
            seen.append(data)


async def failure_of(host, seen, timeouts=None):
    wire = HttpWire(Endpoint(f"https://{host}"), timeouts)
    with pytest.raises(ModelFailed) as caught:
        await read_into(seen, wire)
    await wire.aclose()
    return caught.value.failure


async def test_a_certificate_nobody_vouches_for(certificate):
    async with tls_server(certificate) as host:
        failure = await failure_of(host, [])
    assert failure == Failure(FailureKind.NETWORK, failure.message, retryable=False)
    assert failure.message.startswith(f"the certificate of {host} cannot be trusted: self")


async def test_br_092_a_connection_cut_inside_a_tls_record(certificate, monkeypatch):
    """The certificate is one the environment vouches for, also for an endpoint on this machine."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    seen = []
    async with tls_server(certificate) as host:
        failure = await failure_of(host, seen)
    assert seen == [b"hello"]
    assert failure == Failure(FailureKind.NETWORK, failure.message, retryable=True)
    assert failure.message.startswith(f"the connection to {host} broke: ")


async def test_a_handshake_that_never_ends():
    async def say_nothing(stream):
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, say_nothing, [listener])
        host = f"localhost:{listener.socket.getsockname()[1]}"
        failure = await failure_of(host, [], Timeouts(connect=0.1))
        nursery.cancel_scope.cancel()
    wanted = f"{host} did not accept a connection within 0.1 s"
    assert failure == Failure(FailureKind.NETWORK, wanted, retryable=True)
