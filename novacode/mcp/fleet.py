"""The MCP servers of one session: started beside everything else, known by their state, stopped together."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from novacode.errors import NovaError, SettingsError
from novacode.mcp.client import Link, greet, list_tools
from novacode.mcp.config import ServerConfig
from novacode.mcp.names import server_names
from novacode.mcp.stdio import StdioLink
from novacode.mcp.tool import McpTool, tools_of
from novacode.workspace.base import Processes

__all__ = ["Fleet", "Server", "State"]


class State(enum.StrEnum):
    """How a server is; in the words that `stream-json` is read with elsewhere."""

    PENDING = "pending"
    CONNECTED = "connected"
    FAILED = "failed"
    DISABLED = "disabled"


@attrs.define(eq=False)
class Server:
    """One server. `why` says what went wrong, `tools` are what is offered of it."""

    config: ServerConfig
    short: str
    state: State = State.PENDING
    why: str = ""
    about: str = ""
    tools: tuple[McpTool, ...] = ()
    settled: trio.Event = attrs.field(factory=trio.Event)
    link: Link | None = None
    offered: bool = False

    def settle(self, state: State, why: str = "") -> None:
        """It is known how it is."""
        self.state, self.why = state, why
        self.settled.set()


class Fleet:
    """All servers. `offer` takes their tools, in the order of the settings. `cwd` is where processes run."""

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        processes: Processes,
        cwd: Path,
        environ: Mapping[str, str],
        offer: Callable[[Sequence[McpTool]], None],
    ) -> None:
        shorts = server_names(one.name for one in configs)
        self.servers = tuple(Server(one, shorts[one.name]) for one in configs)
        self._processes = processes
        self._cwd = cwd
        self._environ = environ
        self._offer = offer
        self._news: list[str] = []
        self._serving = self._stopping = False
        self._checker: Any = None
        for server in self.servers:
            if server.config.disabled:
                server.settle(State.DISABLED)

    async def serve(self) -> None:
        """Start all servers and be with them to their end. Cancelled, all are stopped at once, and have ended then."""
        self._serving = True
        wanted = [server for server in self.servers if not server.config.disabled]
        try:
            async with trio.open_nursery() as nursery:
                for server in wanted:
                    nursery.start_soon(self._keep, server)
        finally:
            for server in wanted:
                if not server.settled.is_set():
                    server.settle(State.FAILED, "the session has ended")

    async def ready(self) -> Sequence[str]:
        """Wait until it is known of every server how it is, offer the tools that have come, return what is new.

        Bounded: each server has its `startup_timeout` from its start. Returns at once where nothing is being served.
        """
        return await self.known() if self._serving else ()

    async def known(self) -> Sequence[str]:
        """The same, also where the task that serves has not begun yet."""
        for server in self.servers:
            await server.settled.wait()
        for server in self.servers:
            if server.state is State.CONNECTED and not server.offered:
                server.offered = True
                self._offer(server.tools)
        news, self._news = self._news, []
        return news

    async def stop(self) -> None:
        """Have all servers end, at the same time; returns when they have."""
        self._stopping = True
        links = [server.link for server in self.servers if server.link is not None]
        for link in links:
            link.stop()
        for link in links:
            await link.ended.wait()

    async def _keep(self, server: Server) -> None:
        """Start one server and be with it to its end. Never raises for what it does."""
        try:
            link = server.link = await self._link(server.config)
        except SettingsError as error:
            self._fail(server, str(error))
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            await self._get_to_know(server, link)
            await link.ended.wait()
        if server.state is State.CONNECTED and not self._stopping:
            self._fail(server, link.why)

    async def _get_to_know(self, server: Server, link: Link) -> None:
        seconds = server.config.startup_timeout
        try:
            with trio.fail_after(seconds):
                server.about = await greet(link.peer)
                listed = await list_tools(link.peer)
                checker = await _checker()
        except trio.TooSlowError:
            self._fail(server, f"it did not answer within {seconds:g} s (startup_timeout)")
            link.stop()
            return
        except NovaError as error:
            self._fail(server, str(error))
            link.stop()
            return
        facts = (server.config.name, server.short, server.config.call_timeout)
        server.tools, warnings = tools_of(facts, listed, link.peer, checker)
        self._news += warnings
        server.settle(State.CONNECTED)

    def _fail(self, server: Server, why: str) -> None:
        server.settle(State.FAILED, why)
        self._news.append(f"MCP server {server.config.name} failed, so its tools are not there: {why}")

    async def _link(self, config: ServerConfig) -> Link:
        if config.url:
            return await _http_link(config, self._environ)
        link = StdioLink(config, self._processes, self._cwd, self._environ)
        noise = f"MCP server {config.name} writes lines to its standard output that are no messages; they are left out"
        link.on_noise = lambda: self._news.append(noise)
        return link


async def _http_link(config: ServerConfig, environ: Mapping[str, str]) -> Link:
    """Return a link over HTTP. Raises `SettingsError` where the library is not installed."""

    def load() -> type[Link]:
        from novacode.mcp.http import HttpLink  # a second of imports, beside the event loop

        return HttpLink

    try:
        made = await trio.to_thread.run_sync(load)
    except ImportError as error:
        raise SettingsError(f"a server with `url` needs a library: pip install 'novacode[mcp]' ({error})") from error
    return made(config, environ)  # type: ignore[call-arg]  # a protocol says nothing of how it is made


async def _checker() -> Any:
    """Return what makes validators of schemas, `None` where it is not installed; imported beside the event loop."""

    def load() -> Any:
        try:
            from novacode.mcp.checking import validator  # 0.1 s, and only with a server
        except ImportError:
            return None
        return validator

    return await trio.to_thread.run_sync(load)
