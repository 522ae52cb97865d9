"""Codec and wire put together: a request goes in, model events come out.

**Two kinds of silence.** Any byte shows that the server is alive, so keep-alives reset the idle limit. But only an
event is progress, and a server can keep a dead reply alive for ever. So a reply has stalled when no byte has come for
`idle_timeout`, or when no event has come for `PATIENCE` times as long, whatever else did.

**One way to fail.** Whatever goes wrong on the way to an answer (HTTP status, network, broken protocol, an error event
in the stream, a proxy's page) leaves here as `ModelFailed`. Only `Cancelled` and bugs pass as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn

import trio

from novacode import grace
from novacode.errors import ModelFailed, NovaError, RemoteProtocolError
from novacode.models.wire import Wire, WireResponse
from novacode.protocols.base import Codec, Decoder
from novacode.values.events import ModelEvent
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import CallIds
from novacode.values.request import ModelRequest

__all__ = ["PATIENCE", "ModelClient", "ModelStream"]

PATIENCE = 4
"""How many idle limits a reply may live on keep-alives alone."""

_ERROR_BODY = 64 * 1024  # bytes of an error response that are read; providers' own are under 2 KB
_ERROR_SECONDS = 10.0  # a server that fails may also fail to finish saying so
_PAGE_SECONDS = 1.0  # only its beginning is shown
_EXCERPT = 200  # characters of a body that was not understood, shown to people


class ModelClient:
    """Asks one provider, through one codec, for one conversation.

    `ids` are the session's call ids. `idle_timeout` is in seconds; `None` waits for ever.
    """

    def __init__(self, codec: Codec, wire: Wire, ids: CallIds, idle_timeout: float | None = 300.0) -> None:
        self._codec = codec
        self._wire = wire
        self._ids = ids
        self._idle = idle_timeout

    @property
    def issuer(self) -> str:
        """Who issues the seals in the replies; see `Codec.issuer`."""
        return self._codec.issuer

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelStream]:
        """Send `request`; the body is entered when a stream of events has begun. Raises `ModelFailed`.

        Nothing that reads is left behind. Leaving normally after a whole reply waits up to `grace.DEFAULT.wire` for
        the end of the body, so that the connection can be used again; leaving in any other way closes it.
        """
        async with self._wire.open(self._codec.encode(request)) as response:
            if response.status != 200:
                body = await _read_some(response, _ERROR_SECONDS)
                raise ModelFailed(self._codec.refused(response.status, response.headers, body))
            if "html" in response.headers.get("content-type", ""):
                raise ModelFailed(_not_a_stream(await _read_some(response, _PAGE_SECONDS)))
            stream = ModelStream(response, self._codec.decoder(self._ids), self._idle)
            yield stream
            await stream.drain()

    async def aclose(self) -> None:
        """Close the connections that are kept between requests."""
        await self._wire.aclose()


class ModelStream:
    """One reply, as it comes."""

    def __init__(self, response: WireResponse, decoder: Decoder, idle: float | None) -> None:
        self._response = response
        self._decoder = decoder
        self._idle = idle
        self._ended = False  # the body, not the reply
        self._said_something = False
        self._head = b""  # where the body began, to show when nothing of it was understood

    async def receive(self) -> Sequence[ModelEvent]:
        """Return the next events, at least one; `()` at the end of the reply, and from then on.

        The end is where the reply is complete: what the server does afterwards is not waited for. A checkpoint. Raises
        `ModelFailed`, once every event before the failure was returned. May be cancelled; the reply is then lost.
        """
        await trio.lowlevel.checkpoint()
        fruitless = trio.current_time() + (self._idle or 0) * PATIENCE
        while not (self._ended or self._decoder.finished):
            try:
                events = self._decode(await self._next_bytes(fruitless))
            except RemoteProtocolError as error:
                self._fail(error)
            if events:
                self._said_something = True
                return events
        if self._decoder.error is not None and not self._decoder.finished:
            self._fail(self._decoder.error)
        return ()

    async def drain(self) -> None:
        """Read what the server says after a complete reply, for `grace.DEFAULT.wire` at most; else do nothing."""
        if not self._decoder.finished:
            return
        with trio.move_on_after(grace.DEFAULT.wire):
            try:
                while not self._ended:
                    self._ended = not await self._response.receive_some()
            except ModelFailed:
                self._ended = True  # the reply is whole: a connection that breaks now has cost nothing

    def _decode(self, data: bytes) -> Sequence[ModelEvent]:
        if not data:
            self._ended = True
            return self._decoder.close()
        if not self._said_something and len(self._head) < _EXCERPT:
            self._head += data[:_EXCERPT]
        return self._decoder.feed(data)

    async def _next_bytes(self, fruitless: float) -> bytes:
        if self._decoder.error is not None:
            return b""  # it raises on whatever comes next
        if self._idle is None:
            return await self._response.receive_some()
        now = trio.current_time()
        limit = min(self._idle, fruitless - now)
        with trio.move_on_after(max(0.0, limit)):
            return await self._response.receive_some()
        if limit == self._idle:
            text = f"the reply stalled: no byte for {self._idle:g} s"
        else:
            text = f"the reply stalled: nothing but keep-alives for {self._idle * PATIENCE:g} s"
        raise ModelFailed(Failure(FailureKind.NETWORK, text, retryable=True))

    def _fail(self, error: NovaError) -> NoReturn:
        if isinstance(error, RemoteProtocolError):
            raise ModelFailed(self._broken(error)) from error
        raise error

    def _broken(self, error: RemoteProtocolError) -> Failure:
        text = f"the reply broke the protocol: {error}"
        if not self._said_something and self._head:
            text += f"; it began with {_excerpt(self._head)}"
        return Failure(FailureKind.PROTOCOL, text, retryable=True)


async def _read_some(response: WireResponse, seconds: float) -> bytes:
    """Return the beginning of a body: what has come when it breaks, gets too long or takes longer than `seconds`."""
    body = bytearray()
    with trio.move_on_after(seconds):
        try:
            while len(body) < _ERROR_BODY and (data := await response.receive_some()):
                body += data[: _ERROR_BODY - len(body)]
        except ModelFailed:
            pass  # the status is known, which is what counts
    return bytes(body)


def _not_a_stream(body: bytes) -> Failure:
    text = (
        "the answer is a web page, not a model's reply: the base URL may be wrong, or a proxy or login page is in "
        f"between; it begins with {_excerpt(body)}"
    )
    return Failure(FailureKind.PROTOCOL, text, retryable=False, status=200)


def _excerpt(data: bytes) -> str:
    return repr(" ".join(data.decode("utf-8", "replace").split())[:_EXCERPT])
