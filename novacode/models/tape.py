"""Recording and replaying what goes over a wire, chunk by chunk; the file is told of in `tape_file`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NoReturn, Protocol

import attrs
import trio

from novacode.errors import ModelFailed, ReplayMismatch
from novacode.models.tape_file import TapeWriter, packed
from novacode.models.tape_match import Names, body_of
from novacode.models.tape_play import BROKEN_OFF, LONG, TapedRequest, TapePlayer
from novacode.models.wire import Wire, WireResponse
from novacode.protocols.base import WireRequest
from novacode.values.failure import Failure, FailureKind
from novacode.values.parts import JSON

__all__ = ["KEPT_HEADERS", "Recorder", "RecordingWire", "TapeWire"]

KEPT_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "date", "location"})
"""The headers of a response that a codec reads. Others may hold anything, and those of a request hold the key."""


class Recorder:
    """Puts things onto a tape as they happen. `names` says how they are written."""

    def __init__(self, writer: TapeWriter, names: Names) -> None:
        self.writer = writer
        self.names = names
        self._requests = 0

    def request(self, request: WireRequest) -> Recording:
        """Begin to record a request."""
        self._requests += 1
        names = self.names
        told = {"method": request.method, "path": names.text(request.path), "body": names.value(body_of(request))}
        self.writer.write("request", {"request": self._requests, **told})
        return Recording(self._requests, self)

    def note(self, kind: str, fields: Mapping[str, JSON]) -> None:
        """Record something else: what a tool, a person or a hook has said."""
        self.writer.write(kind, self.names.value(fields))


class Recording:
    """One request under way, as it gets onto the tape."""

    def __init__(self, number: int, recorder: Recorder) -> None:
        self._number = number
        self._recorder = recorder
        self._last = trio.current_time()
        self._ended = False
        self.silent = False  # whether nothing has come since somebody gave up waiting

    def response(self, response: WireResponse) -> None:
        """The headers have come."""
        names = self._recorder.names
        headers = {name: names.text(value) for name, value in response.headers.items() if name in KEPT_HEADERS}
        self._write("response", {"status": response.status, "headers": headers})

    def chunk(self, data: bytes) -> None:
        """Bytes have come."""
        # Folders stay as they are: one may be cut by the end of a chunk, and these are the wire's own bytes.
        self._write("chunk", packed(data, self._recorder.names.hide))

    def end(self, how: str, failure: Failure | None = None) -> None:
        """It is over; the first to say so is right."""
        if not self._ended:
            self._ended = True
            told = {} if failure is None else {"failure": self._recorder.names.value(_failure_data(failure))}
            self._write("end", {"how": how, **told})

    def _write(self, kind: str, fields: Mapping[str, JSON]) -> None:
        now = trio.current_time()
        gap, self._last = round(now - self._last, 6), now
        self._recorder.writer.write(kind, {"request": self._number, "gap": gap, **fields})


class RecordingWire:
    """Carries requests over `inner`, and puts them and what comes back onto a tape."""

    def __init__(self, inner: Wire, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def open(self, request: WireRequest) -> AbstractAsyncContextManager[WireResponse]:
        """Send `request` over the wire within; see `Wire.open`."""
        return self._open(request)

    async def aclose(self) -> None:
        """Close the wire within."""
        await self._inner.aclose()

    @asynccontextmanager
    async def _open(self, request: WireRequest) -> AsyncIterator[WireResponse]:
        taped, opened = self._recorder.request(request), False
        try:
            async with self._inner.open(request) as response:
                opened = True
                taped.response(response)
                yield _Recorded(response, taped)
        except ModelFailed as failed:
            if not opened:
                taped.end("cut", failed.failure)
            # Where reading broke that is on the tape already. What is left are the reader's own failures: it has
            # waited for too long, or what it read made no sense to it.
            taped.end("stall" if taped.silent else "left")
            raise
        except BaseException:
            taped.end("stopped")
            raise
        taped.end("left")


@attrs.define(eq=False)
class _Recorded:
    _response: WireResponse
    _taped: Recording
    status: int = attrs.field(init=False)
    headers: Mapping[str, str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.status, self.headers = self._response.status, self._response.headers

    async def receive_some(self) -> bytes:
        """Return the next bytes; see `WireResponse.receive_some`."""
        try:
            data = await self._response.receive_some()
        except ModelFailed as failed:
            self._taped.end("cut", failed.failure)
            raise
        except trio.Cancelled:
            self._taped.silent = True
            raise
        self._taped.silent = False
        if data:
            self._taped.chunk(data)
        else:
            self._taped.end("end")
        return data


class TapeWire:
    """Answers requests from a tape. `on_time` is told the time after each thing that has come.

    A request that is not on the tape raises `ReplayMismatch` with the first difference. Where the player's clock is
    virtual, things come when they came; else at once, with nothing but a checkpoint in between.
    """

    def __init__(self, player: TapePlayer, on_time: Callable[[float], None] | None = None) -> None:
        self._player = player
        self._on_time = on_time
        self._time = player.tape.header.clock

    def open(self, request: WireRequest) -> AbstractAsyncContextManager[WireResponse]:
        """Answer `request`; see `Wire.open`."""
        return self._open(request)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""
        await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def _open(self, request: WireRequest) -> AsyncIterator[WireResponse]:
        await trio.lowlevel.checkpoint()
        taped = self._player.take_request(request)
        response = _Played(taped, self)
        if taped.status is None:
            await response.finish()
        await self.pause(taped.wait)
        try:
            yield response
        finally:
            self._player.done(taped.line)

    @property
    def player(self) -> TapePlayer:
        """What plays the tape."""
        return self._player

    async def pause(self, seconds: float) -> None:
        """Let as much time go by as it did. A checkpoint."""
        if self._player.virtual:
            await trio.sleep(seconds)
        else:
            await trio.lowlevel.checkpoint()
        self._time = round(self._time + seconds, 6)
        if self._on_time is not None:
            self._on_time(self._time)


class _Playing(Protocol):
    @property
    def player(self) -> TapePlayer: ...

    async def pause(self, seconds: float) -> None: ...


class _Played:
    """One response from a tape; see `WireResponse`."""

    def __init__(self, taped: TapedRequest, wire: _Playing) -> None:
        self.status = taped.status or 0
        self.headers: Mapping[str, str] = taped.headers
        self._taped = taped
        self._wire = wire
        self._next = 0
        self._over = False

    async def receive_some(self) -> bytes:
        """Return the next chunk as it was; see `WireResponse.receive_some`."""
        if self._next < len(self._taped.chunks):
            chunk = self._taped.chunks[self._next]
            await self._wire.pause(chunk.gap)
            self._next += 1  # not before: a reader that gives up waiting and comes again misses nothing
            return chunk.data
        return await self.finish()

    async def finish(self) -> bytes:
        """End as the response did; where that was by breaking, raise what was raised."""
        taped, player = self._taped, self._wire.player
        player.done(taped.line)
        if self._over:
            await trio.lowlevel.checkpoint()
            return b""
        match taped.how:
            case "end":
                await self._wire.pause(taped.end_gap)
            case "left":
                await trio.lowlevel.checkpoint()
            case "cut":
                await self._wire.pause(taped.end_gap)
                raise ModelFailed(taped.failure)
            case "stall":
                # The reader gives up by itself where time is virtual, and says so in its own words.
                await self._wire.pause(taped.end_gap + 1)
                text = f"the reply stalled: no byte for {taped.end_gap:.3g} s"
                raise ModelFailed(Failure(FailureKind.NETWORK, text, retryable=True))
            case _:
                await self._stopped()
        self._over = True
        return b""

    async def _stopped(self) -> NoReturn:
        """The run was stopped here, or NovaCode killed: wait for the stop, and give up where none comes."""
        taped, player = self._taped, self._wire.player
        if taped.how != BROKEN_OFF and player.virtual:
            await trio.sleep(LONG)
        raise ReplayMismatch(
            f"{player.tape.source}: the answer to request {taped.number} (line {taped.line}) is not whole: the "
            f"recording {'was stopped' if taped.how != BROKEN_OFF else 'breaks off'} there, and nothing tells what "
            "would have come next"
        )


def _failure_data(failure: Failure) -> dict[str, JSON]:
    return {name: value for name, value in attrs.asdict(failure).items() if value is not None}
