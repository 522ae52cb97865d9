"""What every implementation of `Processes` must do: the suite that the real one and the fake one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
import trio

from novacode.errors import ToolFailed
from novacode.values.ids import CallId
from novacode.workspace.base import Command, Exit, Processes

__all__ = ["World", "check_processes"]


@attrs.frozen
class World:
    """An implementation under test. `argv` maps the roles below to commands of that world.

    `says-a-b`: writes a, then b, ends with 3. `endless`: writes ready, then works for ever, and obeys SIGTERM after
    a moment. `deaf`: the same, but ignores SIGTERM. `leaves`: writes done, leaves something running, ends with 0.
    `alive` tells whether anything that was started is still alive.
    """

    make: Callable[[], Processes]
    argv: Mapping[str, Sequence[str]]
    alive: Callable[[Processes], bool]
    cwd: Path

    def command(self, role: str) -> Command:
        """Return the command of `role`."""
        return Command(self.argv[role], self.cwd, CallId(f"call_{role}"))


class Heard:
    """Takes output, and lets a test wait for the first of it."""

    def __init__(self) -> None:
        self.data = b""
        self.something = trio.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self.something.set()


async def check_processes(world: World) -> None:
    """Run the whole suite, one implementation after the other made anew."""
    for check in (
        _order_and_code,
        _cannot_start,
        _cancelled_before_it_began,
        _cancel_waits_for_the_end,
        _hurry_ends_the_grace,
        _cancelling_one_leaves_the_other,
        _background_lives_until_sweep,
        _an_exception_of_output_stops_the_command,
    ):
        processes = world.make()
        await check(world, processes)
        await processes.sweep()
        assert not world.alive(processes), check.__name__
        assert processes.waiting_for() == (), check.__name__
        assert processes.reaped.survivors == (), check.__name__


async def _order_and_code(world: World, processes: Processes) -> None:
    heard = Heard()
    assert await processes.run(world.command("says-a-b"), heard) == Exit(3)
    assert heard.data == b"a\nb\n"
    assert processes.reaped.processes == 0


async def _cannot_start(world: World, processes: Processes) -> None:
    with pytest.raises(ToolFailed, match="no-such-program-anywhere"):
        await processes.run(Command(("no-such-program-anywhere",), world.cwd, CallId("call_1")), Heard())


async def _cancelled_before_it_began(world: World, processes: Processes) -> None:
    heard = Heard()
    with trio.CancelScope() as scope:
        scope.cancel()
        await processes.run(world.command("says-a-b"), heard)
    assert scope.cancelled_caught
    assert heard.data == b""


async def _cancel_when_ready(world: World, processes: Processes, role: str, then: Callable[[], None]) -> bytes:
    heard = Heard()
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            with pytest.raises(trio.Cancelled):
                await processes.run(world.command(role), heard)
            assert not world.alive(processes)
            await trio.lowlevel.checkpoint()

        nursery.start_soon(run)
        await heard.something.wait()
        nursery.cancel_scope.cancel()
        then()
    return heard.data


async def _cancel_waits_for_the_end(world: World, processes: Processes) -> None:
    assert b"ready\n" in await _cancel_when_ready(world, processes, "endless", lambda: None)
    assert processes.reaped.processes >= 1


async def _hurry_ends_the_grace(world: World, processes: Processes) -> None:
    began = trio.current_time()
    heard = Heard()
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            with trio.CancelScope() as scope:
                nursery.start_soon(press_twice, scope)
                await processes.run(world.command("deaf"), heard)

        async def press_twice(scope: trio.CancelScope) -> None:
            await heard.something.wait()
            scope.cancel()
            for _ in range(1000):
                if processes.waiting_for():
                    break
                await trio.sleep(0.001)
            processes.hurry()

        nursery.start_soon(run)
    assert processes.reaped.escalated >= 1
    assert trio.current_time() - began < 15  # the world's grace is longer


async def _cancelling_one_leaves_the_other(world: World, processes: Processes) -> None:
    first, second = Heard(), Heard()
    scopes = trio.CancelScope(), trio.CancelScope()

    async def run(scope: trio.CancelScope, heard: Heard) -> None:
        with scope:
            await processes.run(world.command("endless"), heard)

    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as inner:
            nursery.start_soon(run, scopes[1], second)
            inner.start_soon(run, scopes[0], first)
            await first.something.wait()
            await second.something.wait()
            scopes[0].cancel()
        assert not scopes[1].cancelled_caught
        assert world.alive(processes)
        scopes[1].cancel()


async def _background_lives_until_sweep(world: World, processes: Processes) -> None:
    heard = Heard()
    ended = await processes.run(world.command("leaves"), heard)
    assert (ended.code, heard.data) == (0, b"done\n")
    assert ended.background
    assert world.alive(processes)
    with trio.CancelScope() as scope:
        scope.cancel()
        await processes.sweep()
    assert not world.alive(processes)


async def _an_exception_of_output_stops_the_command(world: World, processes: Processes) -> None:
    def broken(_: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await processes.run(world.command("endless"), broken)
    assert not world.alive(processes)
