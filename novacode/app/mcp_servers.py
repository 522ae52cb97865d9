"""The MCP servers of a session, from its settings; the client is imported only where there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from novacode.app.json_files import read_json
from novacode.errors import SettingsError
from novacode.tools.toolset import Toolset
from novacode.values.parts import JSON
from novacode.workspace.base import Processes

if TYPE_CHECKING:
    from novacode.app.settings import Settings
    from novacode.mcp.config import ServerConfig
    from novacode.mcp.fleet import Fleet, Server

__all__ = ["McpSession", "mcp_file", "read_mcp_file", "servers_of", "settled_servers", "try_servers"]


@attrs.frozen(eq=False, repr=False)
class McpSession:
    """The servers of one session; `fleet` is `None` where there are none, and then all of it does nothing."""

    fleet: Fleet | None = None

    async def serve(self) -> None:
        """Start them and be with them to their end; cancelled, all have ended."""
        if self.fleet is not None:
            await self.fleet.serve()

    async def ready(self) -> Sequence[str]:
        """Wait, bounded, until they are known; return what a person should be told."""
        return () if self.fleet is None else await self.fleet.ready()

    async def stop(self) -> None:
        """Have all of them end, while somebody still receives signals."""
        if self.fleet is not None:
            await self.fleet.stop()

    def states(self) -> list[dict[str, str]]:
        """Return name and state of each, as `stream-json` says it."""
        if self.fleet is None:
            return []
        return [
            {"name": server.config.name, "status": server.state.value, **({"error": server.why} if server.why else {})}
            for server in self.fleet.servers
        ]


def servers_of(
    settings: Settings, processes: Processes, cwd: Path, environ: Mapping[str, str], tools: Toolset
) -> McpSession:
    """Return the servers of `settings`, which put their tools into `tools` when they are there."""
    if not settings.mcp_servers:
        return McpSession()
    from novacode.mcp.fleet import Fleet  # hardly any run has servers

    return McpSession(Fleet(settings.mcp_servers, processes, cwd, environ, tools.add))


async def try_servers(
    settings: Settings, processes: Processes, cwd: Path, environ: Mapping[str, str], tools: Toolset
) -> tuple[tuple[Server, ...], Sequence[str]]:
    """Start the servers of `settings`, stop them again, and return how each was, and what there is to tell.

    Their tools are put into `tools`; they can be looked at and not called.
    """
    session = servers_of(settings, processes, cwd, environ, tools)
    if session.fleet is None:
        return (), ()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.serve)
        await trio.lowlevel.checkpoint()
        news = await session.fleet.known()
        await session.stop()
        nursery.cancel_scope.cancel()
    return session.fleet.servers, news


def settled_servers(values: Sequence[ServerConfig]) -> tuple[ServerConfig, ...]:
    """Return one server of each name: the last that was named, at the place of the first."""
    return tuple({one.name: one for one in values}.values())


def mcp_file(cwd: Path) -> Path:
    """Return the nearest `.mcp.json` from `cwd` up to the root of its repository; where none is, that of `cwd`."""
    for folder in (cwd, *cwd.parents):
        if (folder / ".mcp.json").is_file():
            return folder / ".mcp.json"
        if (folder / ".git").exists():
            break
    return cwd / ".mcp.json"


def read_mcp_file(path: Path, warnings: list[str]) -> JSON:
    """Return the servers that a `.mcp.json` names, `None` where it is not there. Raises `SettingsError`."""
    data = read_json(path, warnings)
    if data is None:
        return None
    servers = data.get("mcpServers") if isinstance(data, Mapping) else None
    if not isinstance(servers, Mapping):
        raise SettingsError(f'{path} must be a JSON object with the servers in it: {{"mcpServers": {{...}}}}')
    return servers
