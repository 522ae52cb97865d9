"""A server that speaks the wire of docs/remote.md to the page, and says what a test tells it to. No sessions behind it.

It runs in a thread of its own, since the browser's driver wants the test's.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from typing import Any

import attrs
import pytest
import trio

pytest.importorskip("hypercorn", reason="the packages of the extra `remote` are not installed")
pytest.importorskip("starlette", reason="the packages of the extra `remote` are not installed")
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

__all__ = ["POLICY", "PageServer", "page_server"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
JSON = dict[str, Any]


@attrs.define
class PageServer:
    """What the tests hold. `said` are the client's messages but pings; `answer` may answer one by itself."""

    port: int
    said: queue.Queue[JSON] = attrs.field(factory=queue.Queue)
    answer: Callable[[JSON], list[JSON]] = lambda message: []
    _token: trio.lowlevel.TrioToken | None = None
    _sockets: dict[int, trio.MemorySendChannel[JSON | None]] = attrs.field(factory=dict)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}/"

    def say(self, *messages: JSON) -> None:
        """Send messages to every browser, in order."""
        assert self._token is not None
        self._token.run_sync_soon(self._to_all, messages)

    def hang_up(self) -> None:
        """Close every connection, as a server that ends does."""
        assert self._token is not None
        self._token.run_sync_soon(self._to_all, (None,))

    def next(self, type: str) -> JSON:
        """Return the next message of that type; others before it are thrown away."""
        while True:
            message = self.said.get(timeout=20)
            if message["type"] == type:
                return message

    def _to_all(self, messages: tuple[JSON | None, ...]) -> None:
        for sender in self._sockets.values():
            for message in messages:
                sender.send_nowait(message)

    async def talk(self, socket: WebSocket) -> None:
        """Serve one connection."""
        await socket.accept()
        sender, receiver = trio.open_memory_channel[JSON | None](100_000)
        self._sockets[id(socket)] = sender
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._speak, socket, receiver, nursery.cancel_scope)
                await self._listen(socket, sender)
                nursery.cancel_scope.cancel()
        finally:
            del self._sockets[id(socket)]

    async def _listen(self, socket: WebSocket, sender: trio.MemorySendChannel[JSON | None]) -> None:
        with contextlib.suppress(WebSocketDisconnect):
            while True:
                message = json.loads(await socket.receive_text())
                if message["type"] != "ping":
                    self.said.put(message)
                for one in self.answer(message):
                    sender.send_nowait({"ref": message.get("ref"), **one})

    async def _speak(
        self, socket: WebSocket, receiver: trio.MemoryReceiveChannel[JSON | None], scope: trio.CancelScope
    ) -> None:
        async for message in receiver:
            if message is None:
                await socket.close(1001)
                scope.cancel()
                return
            await socket.send_text(json.dumps(message))


def _asset(name: str) -> Response:
    path = files("novacode.remote") / "page" / name
    if not path.is_file():
        return Response("no such file", 404)
    # The real server allows no caching; here every test loads the page again.
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "max-age=600"}
    return Response(path.read_bytes(), media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


@contextlib.contextmanager
def page_server(port: int = 0) -> Iterator[PageServer]:
    """Serve the page until the block ends. A `port` of 0 is any that is free."""
    ready: queue.Queue[PageServer] = queue.Queue()
    stop = trio.Event()

    async def index(request: Request) -> Response:
        return _asset("index.html")

    async def asset(request: Request) -> Response:
        return _asset(request.path_params["name"])

    async def state(request: Request) -> Response:
        return JSONResponse({"type": "hello"})

    async def main() -> None:
        made = PageServer(port)
        made._token = trio.lowlevel.current_trio_token()
        app = Starlette(
            routes=[
                Route("/", index),
                Route("/assets/{name}", asset),
                Route("/api/v1/state", state),
                WebSocketRoute("/ws", made.talk),
            ]
        )
        config = Config()
        config.bind = [f"127.0.0.1:{port}"]
        config.errorlog = None
        async with trio.open_nursery() as nursery:
            urls = await nursery.start(partial(serve, app, config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
            made.port = int(urls[0].rpartition(":")[2])
            ready.put(made)

    thread = threading.Thread(target=trio.run, args=(main,), name="page server")
    thread.start()
    made = ready.get(timeout=20)
    try:
        yield made
    finally:
        assert made._token is not None
        made._token.run_sync_soon(made._to_all, (None,))
        made._token.run_sync_soon(stop.set)
        thread.join(20)
        assert not thread.is_alive(), "the server of the page did not end"
