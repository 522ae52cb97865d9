"""A client over a WebSocket, and one that only listens, over server-sent events."""

from __future__ import annotations

import re

import attrs
import trio

from novacode import grace
from novacode.remote import protocol
from novacode.remote.bounds import BadMessage
from novacode.remote.client import Client, TooSlow
from novacode.remote.guard import Message, Receive, Scope, Send
from novacode.remote.hub import Hub
from novacode.remote.protocol import Hello
from novacode.remote.room import Room
from novacode.remote.states import Refusal
from novacode.remote.watcher import Batch

__all__ = ["EventStream", "WebSocket"]

_HELLO = 10.0
_BEAT = 5.0
_PER_SECOND = 50.0
_BURST = 200.0
_TYPE = re.compile(r'\{"type":"([a-z_]+)"')
_GOING_AWAY, _UNSUPPORTED, _POLICY, _TOO_BIG, _TOO_SLOW = 1001, 1003, 1008, 1009, 4408


class _Over(Exception):
    """The connection is to be closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@attrs.define
class _Pace:
    """How fast messages may come: so many a second on average, and some at once."""

    left: float = _BURST
    at: float = attrs.field(factory=trio.current_time)

    def take(self) -> bool:
        """Take one; whether it was not too fast."""
        now = trio.current_time()
        self.left = min(_BURST, self.left + (now - self.at) * _PER_SECOND)
        self.at = now
        self.left -= 1
        return self.left >= 0


class WebSocket:
    """The ASGI application of `/ws`: one connection after the other's handshake has been let in."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection to its end."""
        await receive()
        await send({"type": "websocket.accept"})
        connection = _Connection(self._hub, receive, send)
        over = await connection.run()
        if over is not None:
            with grace.cleanup(grace.DEFAULT.wire):
                await send({"type": "websocket.close", "code": over.code, "reason": over.reason[:100]})


class _Connection:
    def __init__(self, hub: Hub, receive: Receive, send: Send) -> None:
        self._hub = hub
        self._receive = receive
        self._send = send
        self._pace = _Pace()
        self._over: _Over | None = None

    async def run(self) -> _Over | None:
        """Talk until one side ends it; returns with which code to close, `None` where the client has closed."""
        client: Client | None = None
        refused: BadMessage | None = None
        try:
            client = await self._greeted()
            if client is None:
                return None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen, client, nursery.cancel_scope)
                nursery.start_soon(self._speak, client, nursery.cancel_scope)
            return self._over
        except BadMessage as bad:
            refused = bad
        except _Over as over:
            return over
        finally:
            if client is not None:
                client.leave()
        await self._text(protocol.encode(refused.reply()))
        return _Over(_TOO_BIG if refused.code == "too_big" else _POLICY, refused.code)

    async def _greeted(self) -> Client | None:
        """Return the client that has said hello; `None` where it went away. Raises `BadMessage` and `_Over`."""
        with trio.move_on_after(_HELLO):
            text = await self._next()
            if text is None:
                return None
            message = protocol.parse(text)
            if not isinstance(message, Hello):
                raise BadMessage("no_hello", "the first message has to be a `hello`", ref=message.ref, fatal=True)
            client = Client(self._hub, message.name)
            try:
                await client.take(message)
            except BaseException:
                client.leave()
                raise
            return client
        raise _Over(_POLICY, "no hello came")

    async def _listen(self, client: Client, scope: trio.CancelScope) -> None:
        """Do what the client says, one message after the other."""
        try:
            while (text := await self._next()) is not None:
                await self._take(client, text)
        except _Over as over:
            self._over = over
        scope.cancel()

    async def _take(self, client: Client, text: str) -> None:
        fatal: BadMessage | None = None
        try:
            if not self._pace.take():
                raise BadMessage("too_fast", f"more than {_PER_SECOND:g} messages a second came", fatal=True)
            await client.take(protocol.parse(text))
        except BadMessage as bad:
            if not bad.fatal:
                client.tell(bad.reply())
            fatal = bad if bad.fatal else None
        if fatal is not None:
            await self._text(protocol.encode(fatal.reply()))
            raise _Over(_TOO_BIG if fatal.code == "too_big" else _POLICY, fatal.code)

    async def _speak(self, client: Client, scope: trio.CancelScope) -> None:
        """Send what there is to send."""

        async def send(batch: Batch) -> None:
            await self._text(batch.text)

        try:
            await client.send_all(send)
            self._over = _Over(_GOING_AWAY, "the server ends")
        except TooSlow:
            self._over = _Over(_TOO_SLOW, "nothing is read here")
        scope.cancel()

    async def _next(self) -> str | None:
        """Return the next message; `None` where the client has gone. Raises `_Over` where it is no text."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return None
        text = message.get("text")
        if text is None:
            raise _Over(_UNSUPPORTED, "messages are text")
        return str(text)

    async def _text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})


class EventStream:
    """The answer to a request for events: what a client is sent that watches `room` from the event `after` on."""

    def __init__(self, hub: Hub, room: Room, after: int | None) -> None:
        self._hub = hub
        self._room = room
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client goes away or the server ends."""
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")],
            }
        )
        client = Client(self._hub, "events")
        client.watch(self._room, self._after)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_gone, receive, nursery.cancel_scope)
                nursery.start_soon(_beat, send)
                await self._stream(client, send)
                nursery.cancel_scope.cancel()
        finally:
            client.leave()
        with grace.cleanup(grace.DEFAULT.wire):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, client: Client, send: Send) -> None:
        async def put(batch: Batch) -> None:
            found = _TYPE.match(batch.text)
            assert found is not None, "every message begins with its type"
            number = f"id: {batch.last}\n" if batch.count else ""
            await send(_chunk(f"event: {found[1]}\n{number}data: {batch.text}\n\n".encode()))

        try:
            await client.send_all(put)
        except (TooSlow, Refusal):
            return


async def _until_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _beat(send: Send) -> None:
    """Say something now and then, so that a client that has gone without a word is noticed."""
    while True:
        await trio.sleep(_BEAT)
        await send(_chunk(b": still here\n\n"))


def _chunk(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
