"""Everything a run may be waiting for is given up the moment the run is stopped; measured on the virtual clock.

The world's last clean-up takes half a second: whatever the run was waiting for, it is over exactly that much later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from doubles.fake_model import Break, Pause, call, say
from doubles.records import DONE, TOOL_USE, Hook
from doubles.world import World

from novacode.authority.hooks import HookAnswer, NoHooks, PromptAnswer
from novacode.values.events import CallMoved, CallSettled, Notice, Phase, RunEnded, RunStatus
from novacode.values.parts import ToolCall
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.base import NoSnapshots

FOR_EVER = 1e9
SWEEP = 0.5
STRUCK = 5.0


class Slow(NoHooks):
    """Hooks of which one method takes for ever."""

    def __init__(self, slow: str) -> None:
        self._slow = slow

    async def _maybe(self, name: str) -> None:
        if name == self._slow:
            await trio.sleep(FOR_EVER)

    async def session_started(self) -> str:
        await self._maybe("session_started")
        return ""

    async def prompt_submitted(self, prompt: str) -> PromptAnswer:
        await self._maybe("prompt_submitted")
        return PromptAnswer()

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        await self._maybe("pre_tool_use")
        return HookAnswer(call)

    async def post_tool_use(self, call: ToolCall, result: ToolResult) -> ToolResult:
        await self._maybe("post_tool_use")
        return result

    async def stopped(self, text: str, *, active: bool) -> str:
        await self._maybe("stopped")
        return ""


class SlowSnapshots(NoSnapshots):
    """A tree that takes for ever to look at."""

    async def take(self, call: Any, paths: Sequence[Path]) -> Sequence[Notice]:
        await trio.sleep(FOR_EVER)
        return ()


WORK = call("a", "work", 1)


@attrs.frozen
class Wait:
    """Something to wait for: how to get there, and what a call that was under way then is told."""

    make: Callable[[], World]
    outcome: Outcome | None = None
    began: bool = False


def hooked(slow: str) -> Callable[[], World]:
    return lambda: World([[WORK, TOOL_USE], DONE], services={"hooks": Slow(slow)})


WAITS = {
    "the model's first word": Wait(lambda: World([[Pause(FOR_EVER)]])),
    "the model's next word": Wait(lambda: World([[say("I "), Pause(FOR_EVER)]])),
    "the time until a retry": Wait(lambda: World([[Break()], [Break()], [Break()], *[[Break()]] * 99], retries=99)),
    "the time after a reply that broke off": Wait(lambda: World([[WORK, Pause(4.5), Break()], DONE]), Outcome.OK, True),
    "an approval": Wait(lambda: World([[call("a", "asks", 1), TOOL_USE]]), Outcome.CANCELLED),
    "its turn behind another call": Wait(
        lambda: World([[call("b", "work", 1, takes=FOR_EVER, writes=["x"]), call("a", "work", 2, writes=["x"])]]),
        Outcome.CANCELLED,
    ),
    "a tool": Wait(lambda: World([[call("a", "work", 1, takes=FOR_EVER), TOOL_USE]]), Outcome.CANCELLED, True),
    "a snapshot": Wait(
        lambda: World([[WORK, TOOL_USE]], services={"snapshots": SlowSnapshots()}), Outcome.CANCELLED, False
    ),
    "a hook at the start of the session": Wait(hooked("session_started")),
    "a hook at the prompt": Wait(hooked("prompt_submitted")),
    "a hook before a call": Wait(hooked("pre_tool_use"), Outcome.CANCELLED),
    "a hook after a call": Wait(hooked("post_tool_use"), Outcome.OK, True),
    "a hook at the end": Wait(hooked("stopped"), Outcome.OK, True),
}


@pytest.mark.parametrize("how", ["stopped", "cancelled from outside"])
@pytest.mark.parametrize("what", WAITS)
async def test_every_wait_ends_at_once(what: str, how: str, autojump_clock: Any) -> None:
    """With one result for each call that says how far it had come; and the next run works."""
    wait = WAITS[what]
    world = wait.make()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(STRUCK)
        if how == "stopped":
            world.agent.cancel("SIGINT")
        else:
            nursery.cancel_scope.cancel()
    [ended] = world.of(RunEnded)
    assert trio.current_time() == STRUCK + SWEEP
    assert (ended.status, world.alive, world.model.open) == (RunStatus.CANCELLED, set(), 0)
    settled = {event.result.call_id: event.result for event in world.of(CallSettled)}
    if wait.outcome is not None:
        assert (settled["a"].outcome, settled["a"].began) == (wait.outcome, wait.began)
    if how == "stopped":
        assert ended.reaped.ms == SWEEP * 1000
    world.services = attrs.evolve(world.services, hooks=Hook(world.log), snapshots=NoSnapshots())
    world.agent.services = world.services
    world.model.replies = [DONE]
    assert (await world.agent.run("again")).status is RunStatus.COMPLETED


@pytest.mark.parametrize("phase", [Phase.ASKING, Phase.QUEUED, Phase.RUNNING])
async def test_a_face_can_say_what_is_waited_for(phase: Phase, autojump_clock: Any) -> None:
    """Every call that waits says so as an event, a queued one with the calls that hold it up."""
    name = {Phase.ASKING: "an approval", Phase.QUEUED: "its turn behind another call", Phase.RUNNING: "a tool"}[phase]
    world = WAITS[name].make()
    with trio.move_on_after(STRUCK):
        await world.agent.run("go")
    moves = [event for event in world.of(CallMoved) if event.call_id == "a"]
    assert moves[-1].phase is phase
    assert moves[-1].waits_for == (("b",) if phase is Phase.QUEUED else ())
