"""Connections: how many there may be, how long one may take, and what becomes of one that nobody reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from novacode.remote.bounds import BOUNDS

__all__ = ["Connections", "Line"]

_WRITING = 30.0
"""Seconds in which a client has to take what is sent to it."""

_AT_ONCE = 16 * 1024
"""Bytes that are read at once. They can be thousands of tiny fragments, and nobody else is heard meanwhile."""

_ENDING = 1.0
"""Seconds in which the server has to see that a client has gone."""

_AHEAD = 4 * BOUNDS.size
"""Bytes that may come on a connection before one of the messages they are has been taken.

It is room for some of the largest. More is a message that never ends, all of which the protocol library would keep,
also after it has said 1009.
"""

_AHEAD_OF_ALL = 16 * BOUNDS.size
"""The same of all connections together; the one that has most of it makes place."""


class Line(trio.abc.HalfCloseableStream):
    """A connection whose writing is bounded in time, and whose reading in what comes before anything is made of it.

    The server shields its writes, so nothing else could end one. `ahead` is how many bytes have come since something
    was taken; `came` is called when there are more. Who serves it does so in `scope`.
    """

    def __init__(self, stream: trio.SocketStream, peer: Any, came: Callable[[], Awaitable[None]]) -> None:
        self.socket = stream.socket
        self.peer = peer
        self.ahead = 0
        self._stream = stream
        self.scope = trio.CancelScope()
        self._came = came

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or raise `BrokenResourceError` where that takes too long: the connection is dead then."""
        with trio.move_on_after(_WRITING) as scope:
            try:
                await self._stream.send_all(data)
            except trio.BusyResourceError as busy:  # the server is just closing it, from another task
                raise trio.BrokenResourceError("the connection is being closed") from busy
        if scope.cancelled_caught:
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError(f"nothing was read for {_WRITING:g} s")

    async def wait_send_all_might_not_block(self) -> None:
        """As the stream."""
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """As the stream; raises `BrokenResourceError` where too much has come that nothing was made of."""
        try:
            data = await self._stream.receive_some(min(max_bytes or _AT_ONCE, _AT_ONCE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end_soon()
            raise
        if not data:
            self._end_soon()
        self.ahead += len(data)
        await self._came()
        if self.ahead > _AHEAD:
            self._end_soon()
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError(f"more than {_AHEAD} bytes came, and no message")
        return data

    def _end_soon(self) -> None:
        """Nothing can come any more. A WebSocket's server would see that at its next ping, and keep all until then."""
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + _ENDING)

    async def send_eof(self) -> None:
        """As the stream."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """As the stream."""
        await self._stream.aclose()


@attrs.define
class Connections:
    """All connections. Where there are `most`, the oldest that has not been let in makes place for the next one.

    `bug` is told of what a connection ends with that it should not.
    """

    bug: Callable[[Exception], None]
    most: int = 256
    _lines: dict[Any, Line] = attrs.field(factory=dict)
    _strangers: dict[Any, Line] = attrs.field(factory=dict)
    _fewer: trio.Event = attrs.field(factory=trio.Event)

    def known(self, peer: Any) -> None:
        """Take note that the client at `peer` was let in."""
        if peer is not None:
            self._strangers.pop(tuple(peer[:2]), None)

    def heard(self, peer: Any) -> None:
        """Take note that something of the client at `peer` was taken: a message, a part of a body, its end."""
        line = self._lines.get(tuple(peer[:2])) if peer is not None else None
        if line is not None:
            line.ahead = 0

    async def handle(self, stream: trio.SocketStream, serve: Callable[[Line], Awaitable[None]]) -> None:
        """Have `serve` handle a connection to its end, or close it where there are too many."""
        try:
            peer = tuple(stream.socket.getpeername()[:2])
        except OSError:  # it is gone already
            await trio.aclose_forcefully(stream)
            return
        if len(self._lines) >= self.most and not await self._make_place():
            await trio.aclose_forcefully(stream)
            return
        line = self._lines[peer] = self._strangers[peer] = Line(stream, peer, self._keep_bounds)
        try:
            with line.scope:
                await serve(line)
        except Exception as error:  # noqa: BLE001 - of one connection; it is told, and the others go on
            self.bug(error)
        finally:
            if self._lines.get(peer) is line:
                del self._lines[peer]
            self._strangers.pop(peer, None)
            self._fewer.set()

    async def _keep_bounds(self) -> None:
        while sum(line.ahead for line in self._lines.values()) > _AHEAD_OF_ALL:
            line = max(self._lines.values(), key=lambda line: line.ahead)
            line.ahead = 0
            await trio.aclose_forcefully(line)

    async def emptied(self) -> None:
        """Wait until there is no connection."""
        while self._lines:
            self._fewer = trio.Event()
            await self._fewer.wait()

    async def _make_place(self) -> bool:
        if not self._strangers:
            return False
        peer = next(iter(self._strangers))
        line = self._strangers.pop(peer)
        self._lines.pop(peer, None)
        await trio.aclose_forcefully(line)
        return True

    async def drop_all(self) -> None:
        """Close what is open, whatever is still to be sent."""
        for line in tuple(self._lines.values()):
            await trio.aclose_forcefully(line)
