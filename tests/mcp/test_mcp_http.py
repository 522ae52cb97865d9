"""Servers behind an address that do not answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from novacode.app.mcp_servers import try_servers
from novacode.app.settings import Settings
from novacode.mcp.config import ServerConfig
from novacode.mcp.fleet import State
from novacode.tools.toolset import Toolset
from novacode.workspace.processes import RealProcesses

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")


async def _silent(stream: trio.SocketStream) -> None:
    async with stream:
        await trio.sleep_forever()


async def failure(folder: Path, config: ServerConfig) -> str:
    """Start the server and return why it failed."""
    with trio.fail_after(60):
        ((server,), _) = await try_servers(Settings(mcp_servers=(config,)), RealProcesses(), folder, {}, Toolset(()))
    assert server.state is State.FAILED
    return server.why


async def test_br_159_a_server_that_accepts_and_stays_silent_fails_after_its_limit(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, _silent, [listener])
        address = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/mcp"
        why = await failure(tmp_path, ServerConfig("s3", url=address, startup_timeout=0.5))
        assert why == "it did not answer within 0.5 s (startup_timeout)"
        nursery.cancel_scope.cancel()


async def test_a_server_that_is_not_there_fails_at_once(tmp_path: Path) -> None:
    why = await failure(tmp_path, ServerConfig("s", url="http://127.0.0.1:1/mcp", startup_timeout=30))
    assert "127.0.0.1:1" in why


async def test_a_variable_that_a_header_needs_is_named(tmp_path: Path) -> None:
    config = ServerConfig("s", url="http://127.0.0.1:1/mcp", headers={"Authorization": "${TOKEN_OF_S}"})
    assert "TOKEN_OF_S, which is not set" in await failure(tmp_path, config)
