"""The network: requests over HTTP/1.1, bodies as they come. The only module that knows httpx.

**No generator is left behind.** An httpx body is four nested async generators. Dropped half way, trio's collector has
to finish them, warns, and the connection stays open until then; an exception raised at the innermost `await` unwinds
all four. So a body that was begun and not read to its end is read on in a scope that is already cancelled.

**Dead connections are not failures.** A server may close a kept-alive connection just as the next request is written
to it. Where that happens on a reused connection and no byte of a response has come, the request is sent again on
another one. Every other failure is left to the caller, who knows whether trying again is safe.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import trio

from novacode import grace
from novacode._version import VERSION
from novacode.errors import ModelFailed
from novacode.models.endpoint import Endpoint, Timeouts
from novacode.models.wire import WireResponse, batches
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind

__all__ = ["Endpoint", "HttpWire", "Timeouts"]

_KEPT = 4  # connections kept between requests


_NOT_NEEDED = ("httpx._main", "httpcore._sync.http2", "httpcore._async.http2")


@contextmanager
def _without_what_is_not_needed() -> Iterator[None]:
    """Keep httpx from importing its command line (click, rich, pygments), and httpcore from importing HTTP/2.

    Measured on 3.11 with trio: 60 ms and, where h2 is installed, 18 ms. Both handle the `ImportError` themselves, and
    a program that we are only a part of can have both later: httpcore imports HTTP/2 again where it is spoken.
    """
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in _NOT_NEEDED if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]


with _without_what_is_not_needed():
    import httpcore  # noqa: F401  httpx would import it with the first client
    import httpx


class HttpWire:
    """Carries requests to one endpoint, over connections that are kept between them.

    Redirects are refused: following one would carry the key to somebody else. Certificates and proxies are taken from
    the usual environment variables; an endpoint on this machine is reached without a proxy.
    """

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts | None = None) -> None:
        self._endpoint = endpoint
        self._timeouts = timeouts or Timeouts()
        self._client: httpx.AsyncClient | None = None

    def open(self, request: WireRequest) -> AbstractAsyncContextManager[WireResponse]:
        """Send `request`; see `Wire.open`. Raises `ModelFailed` also for a redirect and for a compressed body."""
        return self._open(request)

    async def aclose(self) -> None:
        """Close the kept connections. The wire can be used again afterwards."""
        client, self._client = self._client, None
        if client is not None:
            with grace.cleanup(grace.DEFAULT.wire):
                await client.aclose()

    @asynccontextmanager
    async def _open(self, request: WireRequest) -> AsyncIterator[WireResponse]:
        response = _HttpResponse(await self._send(request), self._endpoint.host, self._timeouts)
        try:
            response.check()
            yield response
        finally:
            with grace.cleanup(grace.DEFAULT.wire):
                await response.aclose()

    async def _send(self, request: WireRequest) -> httpx.Response:
        """Send `request` and return the response with its body unread."""
        with _mapped(self._endpoint.host, self._timeouts):
            for _ in range(_KEPT):  # each turn of the loop uses up one dead connection
                with suppress(_ConnectionWentAway):
                    return await self._attempt(request)
            return await self._attempt(request)

    async def _attempt(self, request: WireRequest) -> httpx.Response:
        """Send once. Raises `_ConnectionWentAway` where a kept connection turned out to be dead."""
        client = self._connected()
        connected = False

        async def trace(name: str, _: Mapping[str, Any]) -> None:
            nonlocal connected
            connected = connected or name == "connection.connect_tcp.started"

        outgoing = client.build_request(
            request.method,
            self._endpoint.url(request.path),
            # The body is not handed in as content: httpx keeps that in a cycle of request and response, and a long
            # session's are megabytes each, which would pile up until the collector comes round.
            headers={**request.headers, **self._endpoint.headers, "content-length": str(request.size)},
            extensions={"trace": trace},
        )
        outgoing.stream = _Body(request.pieces)
        try:
            return await client.send(outgoing, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            if connected:
                raise
            raise _ConnectionWentAway(str(error)) from error

    def _connected(self) -> httpx.AsyncClient:
        """Return the client, made when it is first needed: reading the certificates alone takes 200 ms."""
        if self._client is None:
            url = urlsplit(self._endpoint.base_url)
            self._client = httpx.AsyncClient(
                verify=True if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                mounts={f"all://{url.netloc.rpartition('@')[2]}": None} if self._endpoint.is_local else None,
                follow_redirects=False,
                timeout=httpx.Timeout(
                    connect=self._timeouts.connect,
                    read=self._timeouts.idle,
                    write=self._timeouts.write,
                    pool=self._timeouts.connect,
                ),
                # Tools run for minutes between two requests: httpx's own 5 s would mean a handshake every turn.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=120.0),
                headers={"user-agent": f"novacode/{VERSION}", "accept-encoding": "identity"},
            )
        return self._client


class _Body(httpx.AsyncByteStream):
    """A request body that is not a generator: httpx's own is left behind when sending is interrupted."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._rest = [b"".join(batch) for batch in batches(pieces)][::-1]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop()


class _ConnectionWentAway(httpx.TransportError):
    """A kept connection was closed by the server before anything of a response came."""


class _HttpResponse:
    """One response; see `WireResponse`."""

    def __init__(self, response: httpx.Response, host: str, timeouts: Timeouts) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._response = response
        self._host = host
        self._timeouts = timeouts
        self._chunks = response.aiter_raw()
        self._begun = False
        self._ended = False

    def check(self) -> None:
        """Raise `ModelFailed` for a response that nobody should read."""
        if 300 <= self.status < 400:
            place = _bare(self.headers.get("location", ""))
            raise _failed(
                FailureKind.INVALID_REQUEST,
                f"{self._host} redirects to {place or 'nowhere'} (HTTP {self.status}). Redirects are not followed, "
                "because that would send the key there: set the base URL to the right address",
                status=self.status,
            )
        encoding = self.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise _failed(
                FailureKind.PROTOCOL,
                f"{self._host} sends its answer compressed ({encoding}) although that was declined; is there a proxy "
                "in between?",
                status=self.status,
            )

    async def receive_some(self) -> bytes:
        """Return the next bytes of the body; see `WireResponse.receive_some`."""
        await trio.lowlevel.checkpoint()  # buffered bytes come without one
        if self._ended:
            return b""
        self._begun = True
        try:
            with _mapped(self._host, self._timeouts):
                return await anext(self._chunks)
        except StopAsyncIteration:
            self._ended = True
            return b""
        except BaseException:
            self._ended = True  # whatever it was has gone through all the generators and closed the connection
            raise

    async def aclose(self) -> None:
        """Give the connection back where the body was read to its end, else close it. See the module's docstring."""
        if self._begun and not self._ended:
            self._ended = True
            with trio.CancelScope() as scope, suppress(httpx.HTTPError):
                scope.cancel()
                async for _ in self._chunks:  # what is buffered comes first; it is at most one read
                    pass
        await self._response.aclose()


@contextmanager
def _mapped(host: str, timeouts: Timeouts) -> Iterator[None]:
    """Turn what httpx raises into `ModelFailed`, once and for all."""
    try:
        yield
    except httpx.HTTPError as error:
        raise ModelFailed(_network_failure(error, host, timeouts)) from error


def _network_failure(error: httpx.HTTPError, host: str, timeouts: Timeouts) -> Failure:
    cause = _cause(error)
    reason = _words(error, cause)
    retryable = True
    match error:
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            text = f"{host} did not accept a connection within {timeouts.connect:g} s"
        case httpx.ReadTimeout():
            text = f"the connection to {host} stalled: no byte for {timeouts.idle:g} s"
        case httpx.WriteTimeout():
            text = f"{host} did not take the request within {timeouts.write:g} s"
        case httpx.ConnectError() if isinstance(cause, ssl.SSLCertVerificationError):
            text = f"the certificate of {host} cannot be trusted: {cause.verify_message}"
            retryable = False
        case httpx.ConnectError():
            text = f"{host} cannot be reached: {reason}"
        case httpx.ProxyError():
            text = f"the proxy on the way to {host} refuses: {reason}"
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
            text = f"the request to {host} could not be sent: {reason}"
            retryable = False
        case _:
            text = f"the connection to {host} broke: {reason}"
    return Failure(FailureKind.NETWORK, text, retryable=retryable)


def _cause(error: BaseException) -> BaseException:
    """Return the operating system's error below `error`, or the last one that says something."""
    chain = [error]
    while (below := chain[-1].__cause__ or chain[-1].__context__) is not None and below not in chain:
        if isinstance(below, BaseExceptionGroup):  # one for each address that was tried
            below = below.exceptions[0]
        chain.append(below)
    system = [link for link in chain if isinstance(link, OSError) and link.errno is not None]
    return system[-1] if system else next((link for link in reversed(chain) if str(link)), error)


def _words(error: BaseException, cause: BaseException) -> str:
    if isinstance(cause, OSError) and cause.strerror:
        if isinstance(cause, ssl.SSLError | socket.gaierror) or cause.errno is None:
            return cause.strerror
        return os.strerror(cause.errno)  # trio's own text repeats the address
    return str(cause) or str(error) or type(error).__name__


def _failed(kind: FailureKind, text: str, status: int) -> ModelFailed:
    return ModelFailed(Failure(kind, text, retryable=False, status=status))


def _bare(url: str) -> str:
    """Return `url` without user, query and fragment, where secrets travel."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
