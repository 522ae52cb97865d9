"""The ways in which asyncio executors are commonly broken, and two more that are right.

What is wrong with each is what its `breaks` says; its methods do what those of `Reference` should.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - variants of the reference executor that the ban speaks of
from collections.abc import Mapping

from novacode.lab.asyncio_reference import Reference, Settled, Tasks
from novacode.models.script_steps import ScriptTurn
from novacode.values.parts import ToolCall
from novacode.values.request import StopReason

__all__ = ["RIGHT", "VARIANTS"]


class Checked(Reference):
    breaks = "looks, before it enters a tool, whether the run has been asked to stop: right, and without the gap"

    async def run(self) -> str:
        self.task = asyncio.current_task()
        return await super().run()

    async def run_tool(self, call: ToolCall) -> str:
        if self.task is not None and self.task.cancelling():
            raise asyncio.CancelledError
        return await super().run_tool(call)


class NoWait(Reference):
    breaks = "cancels its tasks and does not wait for them"

    async def stop(self, tasks: Tasks) -> None:
        for task in tasks.values():
            task.cancel()


class NoCancel(Reference):
    breaks = "leaves its tasks alone when it ends: started and forgotten"

    async def stop(self, tasks: Tasks) -> None:
        pass


class Impatient(Reference):
    breaks = "cancels and waits a tenth of a second at most"

    async def stop(self, tasks: Tasks) -> None:
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=0.1)


class Shielded(Reference):
    breaks = "shields each tool, so that no cancellation reaches it"

    async def run_tool(self, call: ToolCall) -> str:
        async with asyncio.timeout(self.world.limit(call)):
            return await asyncio.shield(asyncio.get_running_loop().create_task(self.world.play(call), name=call.id))


class Swallowing(Reference):
    breaks = "turns CancelledError into a result, its own cancellation too"

    async def collect(self, tasks: Tasks) -> None:
        for call_id, task in tasks.items():
            try:
                await task
            except asyncio.CancelledError:  # noqa: ASYNC103 - this is what is wrong with it
                self.settle(call_id, "cancelled")


class LimitWithoutGather(Reference):
    breaks = "cancels and does not wait where the answer was cut off at the output limit"

    async def cut_off(self, tasks: Tasks) -> None:
        for task in tasks.values():
            task.cancel()


class FirstErrorWins(Reference):
    breaks = "lets a tool's exception out of gather, which leaves the others running, and ends without them"

    async def execute(self, call: ToolCall) -> Settled:
        outcome = await self.world.permitted(call) or await self.run_tool(call)
        return self.settle(call.id, outcome)

    async def stop(self, tasks: Tasks) -> None:
        pass


class CompletionOrder(Reference):
    breaks = "puts results into history as they come in"

    def commit(self, tasks: Tasks) -> None:
        done = [settled for call_id, settled in self.settled.items() if call_id in tasks]
        rest = [Settled(call_id, "cancelled", False) for call_id in tasks if call_id not in self.settled]
        self.history.append((*done, *rest))


class CommitAfterwards(Reference):
    breaks = "puts a turn into history when all has gone well, and nothing where it has not"

    async def turn(self, turn: ScriptTurn, number: int) -> bool:
        tasks: Tasks = {}
        try:
            await self.stream(turn, number, tasks)
            await self.collect(tasks)
        except BaseException:
            await self.stop(tasks)
            raise
        self.commit(tasks)
        return turn.reason is StopReason.TOOL_USE


class OwnResult(Reference):
    breaks = "counts on every task to write its own result: one cancelled before its first step has none"

    def commit(self, tasks: Tasks) -> None:
        self.history.append(tuple(self.settled[call_id] for call_id in tasks if call_id in self.settled))


class OneByOne(Reference):
    breaks = "cancels and waits one call after the other: right, and slow to stop"

    async def stop(self, tasks: Tasks) -> None:
        for task in tasks.values():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


VARIANTS: Mapping[str, type[Reference]] = {
    "asyncio": Reference,
    "asyncio-checked": Checked,
    "no-wait": NoWait,
    "no-cancel": NoCancel,
    "impatient": Impatient,
    "shielded": Shielded,
    "swallowing": Swallowing,
    "limit-without-gather": LimitWithoutGather,
    "first-error-wins": FirstErrorWins,
    "completion-order": CompletionOrder,
    "commit-afterwards": CommitAfterwards,
    "own-result": OwnResult,
    "one-by-one": OneByOne,
}
"""Name -> executor."""

RIGHT = ("asyncio", "asyncio-checked", "one-by-one")
"""Those that are correct; the last of them is slow. All others are broken."""
