"""A plain asyncio executor, written as its best authors write it: what the trio runtime is compared with.

A task for each call as soon as the model has made it, `gather` in the order of the calls, and cancel-and-wait on every
way out.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - this is the reference executor that the ban speaks of

import attrs

from novacode.lab.asyncio_stage import World, read_call
from novacode.models.script_steps import CallStep, PauseStep, ScriptTurn, TextStep, ThinkingStep
from novacode.values.parts import ToolCall
from novacode.values.request import StopReason

__all__ = ["Reference", "Settled", "Tasks"]


@attrs.frozen
class Settled:
    """How a call ended, and whether its tool had been entered."""

    call_id: str
    outcome: str
    began: bool


Tasks = dict[str, "asyncio.Task[Settled]"]


class StreamLost(Exception):
    """The model's answer broke off."""


class Reference:
    """The correct one.

    `history` has the results of each turn, `opened` the ids of all calls in the order the model made them.
    `streaming` is whether the model is answering just now, `settled` the result of each call that has one.
    """

    breaks = ""
    """What is wrong with it, for people."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.history: list[tuple[Settled, ...]] = []
        self.opened: list[str] = []
        self.streaming = False
        self.settled: dict[str, Settled] = {}

    async def run(self) -> str:
        """Play the script to its end; return how it ended. When it is over, nothing of it is left."""
        try:
            async with asyncio.timeout(self.world.blueprint.limits.max_seconds):
                return await self._turns()
        except TimeoutError:
            return "limit"
        except StreamLost:
            return "failed"
        finally:
            await self.world.sweep()
            self.world.log.append("run ended")

    async def _turns(self) -> str:
        most = self.world.blueprint.limits.max_turns
        for number, turn in enumerate(self.world.blueprint.script.turns, 1):
            goes_on = await self.turn(turn, number)
            if not goes_on:
                return "completed"
            if number == most:
                return "limit"
        return "completed"

    async def turn(self, turn: ScriptTurn, number: int) -> bool:
        """Play one turn; whether there is to be another."""
        tasks: Tasks = {}
        try:
            await self.stream(turn, number, tasks)
            if turn.reason is StopReason.OUTPUT_LIMIT:
                await self.cut_off(tasks)
                return False
            await self.collect(tasks)
        except BaseException:
            await self.stop(tasks)
            raise
        finally:
            self.commit(tasks)
        return turn.reason is StopReason.TOOL_USE

    async def stream(self, turn: ScriptTurn, number: int, tasks: Tasks) -> None:
        """Take in what the model says, and start each call as soon as it is whole. Raises `StreamLost`."""
        self.world.log.append("model")
        self.streaming = True
        try:
            for place, step in enumerate(turn.steps):
                match step:
                    case PauseStep(seconds):
                        await asyncio.sleep(seconds)
                    case TextStep(_, fragments) | ThinkingStep(_, _, fragments):
                        await _chunks(fragments)
                    case CallStep(fragments=fragments):
                        await _chunks(fragments)
                        call = read_call(step, f"t{number}-{place}", place)
                        if call is not None:
                            self.submit(call, tasks)
                    case _:
                        raise StreamLost
        finally:
            self.streaming = False

    def submit(self, call: ToolCall, tasks: Tasks) -> None:
        """Start the task of a call."""
        self.opened.append(call.id)
        tasks[call.id] = asyncio.get_running_loop().create_task(self.execute(call), name=call.id)

    async def execute(self, call: ToolCall) -> Settled:
        """Authorise and run one call. Whatever happens to it is its result; only a cancellation also goes on."""
        outcome = "cancelled"
        try:
            outcome = await self.world.permitted(call)
            if not outcome:
                outcome = await self.run_tool(call)
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except TimeoutError:
            outcome = "timeout"
        except Exception:  # noqa: BLE001 - a tool may fail in any way; that is a result
            outcome = "error"
        finally:
            settled = self.settle(call.id, outcome)
        return settled

    async def run_tool(self, call: ToolCall) -> str:
        """Run the tool within its limit."""
        async with asyncio.timeout(self.world.limit(call)):
            return await self.world.play(call)

    async def collect(self, tasks: Tasks) -> None:
        """Wait for the calls of a turn, in the order of the calls."""
        await asyncio.gather(*tasks.values())

    async def cut_off(self, tasks: Tasks) -> None:
        """The answer was cut off at the output limit: stop what it has begun."""
        await self.stop(tasks)

    async def stop(self, tasks: Tasks) -> None:
        """Cancel what is under way, and wait until it is over."""
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    def commit(self, tasks: Tasks) -> None:
        """Put the turn into history. A task that was cancelled before its first step has written no result."""
        self.history.append(
            tuple(self.settled.get(call_id) or Settled(call_id, "cancelled", False) for call_id in tasks)
        )

    def settle(self, call_id: str, outcome: str) -> Settled:
        """Write down how a call ended."""
        settled = Settled(call_id, outcome, call_id in self.world.entered)
        self.settled[call_id] = settled
        return settled


async def _chunks(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)
