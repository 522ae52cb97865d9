"""A server that somebody else has written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from novacode.app.mcp_servers import try_servers
from novacode.app.settings import Settings
from novacode.mcp.config import ServerConfig
from novacode.mcp.fleet import State
from novacode.tools.toolset import Toolset
from novacode.workspace.processes import RealProcesses


@pytest.mark.slow
async def test_the_tools_of_an_official_server_are_there(tmp_path: Path) -> None:
    program = shutil.which("mcp-server-time", path=str(Path(sys.executable).parent)) or shutil.which("mcp-server-time")
    if program is None:
        pytest.skip("mcp-server-time is not installed")
    config = ServerConfig("time", command=program, startup_timeout=60)
    tools, processes = Toolset(()), RealProcesses()
    news: Sequence[str] = ()
    with trio.fail_after(90):
        servers, news = await try_servers(Settings(mcp_servers=(config,)), processes, tmp_path, {}, tools)
    assert (servers[0].state, news) == (State.CONNECTED, [])
    assert set(tools.names) == {"mcp__time__get_current_time", "mcp__time__convert_time"}
