"""The server: listens, guards, serves, and ends. Inside the nursery of whoever runs it; it handles no signals."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.protocol import ws_stream
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from novacode.errors import InputError, UsageError
from novacode.remote.bounds import BOUNDS
from novacode.remote.connections import Connections, Line
from novacode.remote.guard import Guard
from novacode.remote.hub import Hub
from novacode.remote.keys import Keys
from novacode.remote.origin import Site
from novacode.remote.web import routes

__all__ = ["Address", "Listening", "listen", "serve"]

_HEADER_BYTES = 16 * 1024
_IDLE = 5.0
"""Seconds in which a connection has to come with a whole request header, and between two requests."""

_LAST = 1.0
"""Seconds in which the last words are sent."""


@attrs.frozen
class Address:
    """Where to listen, and how. `port` 0 is any free one. With `cert` and `key` it is over TLS."""

    host: str = "127.0.0.1"
    port: int = 8717
    cert: Path | None = None
    key: Path | None = None
    allowed: Sequence[str] = ()

    @property
    def scheme(self) -> str:
        """How it is spoken."""
        return "https" if self.cert is not None else "http"


@attrs.frozen
class Listening:
    """Sockets that listen, and what is known of them. `url` is what to open, without the token."""

    listeners: list[trio.SocketListener]
    site: Site
    port: int
    url: str
    context: ssl.SSLContext | None


async def listen(address: Address) -> Listening:
    """Begin to listen. Raises `InputError` where that cannot be done, and `UsageError` for names that are none."""
    try:
        site = Site.of(address.scheme, address.allowed)
    except ValueError as error:
        raise UsageError(f"--allow-host: {error}") from None
    context = _tls(address)
    listeners = await _listeners(address)
    port = listeners[0].socket.getsockname()[1]
    return Listening(listeners, site, port, f"{address.scheme}://{_written(address.host)}:{port}/", context)


async def serve(
    hub: Hub, listening: Listening, token: str, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve until `hub` is over; started at once."""
    connections = Connections(hub.shared.bug)
    cookie = f"novacode_{listening.port}"
    keys = Keys(token, trio.current_time)
    app: Any = Guard(routes(hub, cookie), listening.site, keys, cookie, connections)
    worker = WorkerContext(None)
    connect = partial(_connected, ASGIWrapper(app), _config(), worker, listening.context)
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as accepting:
            handle = partial(connections.handle, serve=connect)
            accepting.start_soon(partial(trio.serve_listeners, handle, listening.listeners, handler_nursery=nursery))
            task_status.started()
            await hub.over.wait()
            accepting.cancel_scope.cancel()
        await worker.terminated.set()
        with trio.move_on_after(_LAST):
            await connections.emptied()
        await connections.drop_all()
        nursery.cancel_scope.cancel()


async def _connected(app: Any, config: Config, worker: Any, context: ssl.SSLContext | None, line: Line) -> None:
    stream: Any = line
    if context is not None:
        stream = trio.SSLStream(line, context, server_side=True, https_compatible=True)
    await TCPServer(app, config, worker, ConnectionState({}), stream)


def _no_compression(*_: Any) -> None:
    """Agree on no extension of WebSockets.

    Packed, 64 KiB can be 64 MiB, and they are unpacked before anybody looks at the size of a message.
    """


def _config() -> Config:
    # There is no setting for it.
    ws_stream.server_extensions_handshake = _no_compression  # type: ignore[attr-defined, assignment]
    config = Config()
    config.errorlog = None
    config.accesslog = None
    config.include_server_header = False
    config.alpn_protocols = ["http/1.1"]
    config.h11_max_incomplete_size = _HEADER_BYTES
    config.keep_alive_timeout = _IDLE
    config.ssl_handshake_timeout = _IDLE
    config.websocket_max_message_size = BOUNDS.size
    config.websocket_ping_interval = 20.0
    config.graceful_timeout = _LAST
    return config


def _tls(address: Address) -> ssl.SSLContext | None:
    if address.cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(address.cert, address.key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"the certificate {address.cert} cannot be used: {error}") from error
    return context


async def _listeners(address: Address) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as error:
        raise InputError(
            f"{address.host}:{address.port} cannot be listened on: {error.strerror or error}. Another port: --port N;"
            " any free one: --port 0"
        ) from error


def _written(host: str) -> str:
    """Return `host` as it stands in an address; of all addresses, the one that works here."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
