"""A server behind an address, over the transport of the official library. Imports it: a second of work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

import httpx2
import trio
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from novacode.mcp.client import PROTOCOL
from novacode.mcp.config import ServerConfig, expanded
from novacode.mcp.peer import Peer
from novacode.mcp.stdio import innermost
from novacode.values.parts import JSON

__all__ = ["HttpLink"]

_VERSION = {"mcp-protocol-version": PROTOCOL}


class HttpLink:
    """The conversation with one server; see `client.Link`."""

    def __init__(self, config: ServerConfig, environ: Mapping[str, str]) -> None:
        self.peer = Peer(self._send)
        self.ended = trio.Event()
        self.why = ""
        self._config = config
        self._headers = expanded(config.headers, environ, f"mcp_servers.{config.name}.headers")
        self._outgoing, self._to_write = trio.open_memory_channel[Mapping[str, JSON]](math.inf)
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Be connected to the end. Whoever waits for an answer then is told why. Never raises."""
        why = "the connection was closed"
        try:
            with self._scope:
                await self._talk()
        except Exception as error:  # noqa: BLE001 - a server that cannot be talked to must not end the session
            why = innermost(error)
        finally:
            self.why = self.why or why
            self.peer.close(self.why)
            self._outgoing.close()
            self.ended.set()

    def stop(self) -> None:
        """End it."""
        self._scope.cancel()

    async def _talk(self) -> None:
        timeout = httpx2.Timeout(self._config.startup_timeout, read=self._config.call_timeout)
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=timeout) as client,
            streamable_http_client(self._config.url, http_client=client) as (incoming, outgoing),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._write, outgoing)
            async for item in incoming:
                if not isinstance(item, Exception):
                    self.peer.receive(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))
            nursery.cancel_scope.cancel()

    async def _write(self, outgoing: object) -> None:
        async for message in self._to_write:
            headers = None if message.get("method") == "initialize" else dict(_VERSION)
            wrapped = SessionMessage(
                jsonrpc_message_adapter.validate_python(message), metadata=ClientMessageMetadata(headers=headers)
            )
            await outgoing.send(wrapped)  # type: ignore[attr-defined]  # the library keeps its class to itself

    def _send(self, message: Mapping[str, JSON]) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self._outgoing.send_nowait(message)
