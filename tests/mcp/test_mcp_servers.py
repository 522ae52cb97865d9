"""Servers as real processes: how they fail, are cancelled and end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from novacode.errors import ToolFailed
from novacode.mcp.config import ServerConfig
from novacode.mcp.fleet import Fleet, State
from novacode.mcp.tool import McpTool
from novacode.tools.base import Permit, SeenFiles, ToolOutput
from novacode.tools.context import ToolContext
from novacode.values.ids import CallId
from novacode.values.parts import Image, ToolCall
from novacode.workspace.paths import Workspace
from novacode.workspace.processes import RealProcesses

SERVER = Path(__file__).with_name("mcp_fake_server.py")


def named(*names: str) -> list[dict[str, Any]]:
    """Return tools that take anything."""
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def fake(name: str = "f", startup_timeout: float = 20.0, **wish: Any) -> ServerConfig:
    """Return a server that does what `wish` says."""
    args = ("-S", "-E", str(SERVER), json.dumps(wish))
    return ServerConfig(name, command=sys.executable, args=args, startup_timeout=startup_timeout)


class World:
    """Servers of one session, and calls of their tools."""

    def __init__(self, folder: Path, *configs: ServerConfig) -> None:
        self.folder, self.tools = folder, dict[str, McpTool]()
        self.processes = RealProcesses()
        self.fleet = Fleet(configs, self.processes, folder, {}, self.take)

    def take(self, tools: Any) -> None:
        self.tools |= {tool.spec.name: tool for tool in tools}

    @property
    def state(self) -> dict[str, State]:
        return {server.config.name: server.state for server in self.fleet.servers}

    async def call(self, name: str, **arguments: Any) -> ToolOutput:
        call = ToolCall(CallId("c1"), 0, name, arguments)
        space = Workspace.at(self.folder)
        context = ToolContext(call.id, space, self.processes, SeenFiles(), lambda _: None, self.folder / "spill")
        return await self.tools[name].run(Permit(call, arguments, "test"), context)


@asynccontextmanager
async def serving(folder: Path, *configs: ServerConfig) -> AsyncIterator[World]:
    world = World(folder, *configs)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.fleet.serve)
            await trio.testing.wait_all_tasks_blocked()
            yield world
            nursery.cancel_scope.cancel()


def words(output: ToolOutput) -> str:
    return "".join(getattr(part, "text", "") for part in output.content)


async def test_a_tool_of_a_server_can_be_called(tmp_path: Path) -> None:
    async with serving(tmp_path, fake()) as world:
        assert await world.fleet.ready() == []
        assert words(await world.call("mcp__f__echo", x="you")) == "echo: you"


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_br_156_a_server_that_dies_while_it_starts_is_told_and_others_work(tmp_path: Path, method: str) -> None:
    async with serving(tmp_path, fake("bad", die_at=method), fake("good")) as world:
        (news,) = await world.fleet.ready()
        assert "bad" in news
        assert "server ended, code 1" in news
        assert "out of cheese" in news
        assert world.state == {"bad": State.FAILED, "good": State.CONNECTED}
        assert words(await world.call("mcp__good__echo", x="1")) == "echo: 1"


async def test_br_156_a_call_fails_when_its_server_dies(tmp_path: Path) -> None:
    async with serving(tmp_path, fake(die_at="tools/call")) as world:
        await world.fleet.ready()
        with pytest.raises(ToolFailed, match=r"server ended, code 1; its last words: out of cheese"):
            await world.call("mcp__f__echo", x="1")
        with pytest.raises(ToolFailed, match="server ended"):
            await world.call("mcp__f__echo", x="1")


async def test_br_156_a_call_fails_when_its_server_closes_stdout_and_lives_on(tmp_path: Path) -> None:
    async with serving(tmp_path, fake(tools=named("close"))) as world:
        await world.fleet.ready()
        with pytest.raises(ToolFailed, match="closed its output"):
            await world.call("mcp__f__close")


async def test_br_157_br_158_a_cancelled_call_is_told_and_what_is_answered_late_disturbs_nobody(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with serving(tmp_path, fake(tools=named("hang", "echo"), log=str(log))) as world:
        await world.fleet.ready()
        with trio.move_on_after(0.2) as scope:
            await world.call("mcp__f__hang")
        assert scope.cancelled_caught
        assert words(await world.call("mcp__f__echo", x="8")) == "echo: 8"
        peer = world.tools["mcp__f__echo"].peer
        assert peer.dropped == 3
    received = [json.loads(line) for line in log.read_text().splitlines()]
    hung = next(one for one in received if one.get("params", {}).get("name") == "hang")
    told = next(one for one in received if one["method"] == "notifications/cancelled")
    assert told["params"]["requestId"] == hung["id"]


async def test_br_159_a_silent_server_fails_after_its_limit_and_the_others_work(tmp_path: Path) -> None:
    silent = fake("s2", startup_timeout=1.0, slow=600)
    async with serving(tmp_path, silent, fake("s4")) as world:
        (news,) = await world.fleet.ready()
        assert "s2" in news
        assert "did not answer within 1 s (startup_timeout)" in news
        assert world.state == {"s2": State.FAILED, "s4": State.CONNECTED}


async def test_br_162_what_is_too_long_is_clipped_and_kept_in_a_file(tmp_path: Path) -> None:
    tools = named("big", "items", "image", "structured")
    async with serving(tmp_path, fake(tools=tools)) as world:
        await world.fleet.ready()
        for name, arguments, size in (("big", {"n": 5_000_000}, 5_000_000), ("structured", {"n": 100_000}, 100_009)):
            text = words(await world.call(f"mcp__f__{name}", **arguments))
            assert len(text) < 32_000
            assert f"the whole output ({size} bytes)" in text
        assert words(await world.call("mcp__f__items")).endswith("4999")
        small = await world.call("mcp__f__image", n=10)
        assert small.content == (Image("image/png", "QUJD" * 10),)
        large = await world.call("mcp__f__image", n=2_500_000)
        assert "image/png of 7500000 bytes, in " in words(large)


async def test_an_error_of_the_tool_and_one_of_the_server_are_failures(tmp_path: Path) -> None:
    async with serving(tmp_path, fake(tools=named("bad", "refuse"))) as world:
        await world.fleet.ready()
        with pytest.raises(ToolFailed, match="it went wrong"):
            await world.call("mcp__f__bad")
        with pytest.raises(ToolFailed, match=r"not today \(code -32000\)"):
            await world.call("mcp__f__refuse")


async def test_br_163_noise_on_stdout_is_skipped_with_one_warning(tmp_path: Path) -> None:
    noise = ["starting up", "", "{not json", '{"level": "info"}']
    async with serving(tmp_path, fake(noise=noise, giant=5_000_000)) as world:
        news = await world.fleet.ready()
        assert [one for one in news if "no messages" in one] == list(news)
        assert len(news) == 1
        assert words(await world.call("mcp__f__echo", x="1")) == "echo: 1"


async def test_br_163_commands_that_cannot_be_started_are_told(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    bad = [ServerConfig(str(i), command=name) for i, name in enumerate(("no-such-program", str(tmp_path), str(script)))]
    async with serving(tmp_path, *bad) as world:
        news = await world.fleet.ready()
        assert [name for name in news if "could not be started" in name] == list(news)
        assert set(world.state.values()) == {State.FAILED}


async def test_br_013_br_015_stubborn_servers_are_all_gone_after_about_one_grace(tmp_path: Path) -> None:
    configs = [fake(str(i), stubborn=True, pid=str(tmp_path / f"pid{i}")) for i in range(6)]
    async with serving(tmp_path, *configs) as world:
        await world.fleet.ready()
        pids = [int((tmp_path / f"pid{i}").read_text()) for i in range(6)]
        began = trio.current_time()
        await world.fleet.stop()
        assert trio.current_time() - began < 10  # one after the other they would need fifteen
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        assert world.processes.reaped.survivors == ()
        assert world.processes.reaped.escalated == 6


async def test_a_server_that_ends_when_its_stdin_does_is_never_signalled(tmp_path: Path) -> None:
    async with serving(tmp_path, fake()) as world:
        await world.fleet.ready()
    assert world.processes.reaped.processes == 0


async def test_a_second_interrupt_skips_the_grace(tmp_path: Path) -> None:
    async with serving(tmp_path, fake(stubborn=True, pid=str(tmp_path / "pid"))) as world:
        await world.fleet.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.fleet.stop)
            while not world.processes.waiting_for():  # noqa: ASYNC110 - processes announce nothing
                await trio.sleep(0.01)
            world.processes.hurry()
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
            pytest.fail("it is alive")
