"""Ways to break the runtime on purpose. Each must be found by the attack; one that is not is a missing invariant."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

from novacode import grace
from novacode.authority import approvals
from novacode.engine import agent, gate, ledger, pipeline, reply, run, turn
from novacode.errors import ModelFailed
from novacode.values.events import RunStatus
from novacode.values.parts import BrokenCall
from novacode.values.results import Outcome, ToolResult

__all__ = ["FAULTS"]

Fault = Callable[[pytest.MonkeyPatch], None]


def _retry_after_a_call(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reply.Reply, "has_calls", property(lambda self: False, lambda self, value: None), raising=False)


def _commit_outside_finally(patch: pytest.MonkeyPatch) -> None:
    async def run_turn(kit: Any, talk: Any, request: Any, said: Any, book: Any) -> turn.TurnOutcome:
        async with trio.open_nursery() as nursery:
            lost = await reply.read_reply(kit, request, said, _starter(kit, book, nursery))
        exchange = talk.commit(said, book.close(), kit.emit)
        return turn.TurnOutcome(exchange, said.finish, lost)

    patch.setattr(run, "run_turn", run_turn)


def _stream_error_in_the_nursery(patch: pytest.MonkeyPatch) -> None:
    async def run_turn(kit: Any, talk: Any, request: Any, said: Any, book: Any) -> turn.TurnOutcome:
        try:
            async with trio.open_nursery() as nursery:
                lost = await reply.read_reply(kit, request, said, _starter(kit, book, nursery))
                if lost is not None:
                    raise ModelFailed(lost.failure)
        finally:
            exchange = talk.commit(said, book.close(), kit.emit)
        return turn.TurnOutcome(exchange, said.finish, lost)

    patch.setattr(run, "run_turn", run_turn)


def _starter(kit: Any, book: Any, nursery: trio.Nursery) -> Callable[[Any], None]:
    def start(call: Any) -> None:
        if isinstance(call, BrokenCall):
            book.refuse(call)
        else:
            slot = book.submit(call, kit.tools.claims(call, kit.workspace))
            nursery.start_soon(pipeline.process, slot, kit)

    return start


def _a_call_never_settled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger.Ledger, "open", property(lambda self: ()))


def _completion_order(patch: pytest.MonkeyPatch) -> None:
    whole = ledger.Ledger.close

    def close(self: ledger.Ledger) -> tuple[ToolResult, ...]:
        results = whole(self)
        settled = sorted(self._slots, key=lambda slot: slot._ended_at)
        return tuple(slot.result for slot in settled if slot.result) if len(results) > 1 else results

    patch.setattr(ledger.Ledger, "close", close)


def _gate_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate, "conflict", lambda one, other: False)


def _denied_goes_on(patch: pytest.MonkeyPatch) -> None:
    whole = pipeline._permitted

    async def permitted(*args: Any) -> str:
        with contextlib.suppress(pipeline._Refused):
            return await whole(*args)
        return "nobody"

    patch.setattr(pipeline, "_permitted", permitted)


def _cleanup_unshielded(patch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def cleanup(seconds: float) -> Iterator[trio.CancelScope]:
        with trio.move_on_after(seconds) as scope:
            yield scope

    patch.setattr(grace, "cleanup", cleanup)


def _questions_kept(patch: pytest.MonkeyPatch) -> None:
    async def ask(self: approvals.ApprovalDesk, question: approvals.Question) -> approvals.Answer:
        entry = approvals._Open(self._asked(question))
        self._open[entry.asked.approval_id] = entry
        self._emit(entry.asked)
        await entry.answered.wait()
        assert entry.answer is not None
        return entry.answer

    patch.setattr(approvals.ApprovalDesk, "ask", ask)
    patch.setattr(approvals.ApprovalDesk, "close", lambda self: None)


def _answers_unbound(patch: pytest.MonkeyPatch) -> None:
    def answer(self: agent.Agent, run_id: str, approval_id: str, given: approvals.Answer) -> approvals.Receipt:
        if self.active is None or not self.active.kit.desk.pending:
            return approvals.Receipt.STALE_RUN
        oldest = self.active.kit.desk.pending[0]
        return self.active.answer(self.active.id, oldest.approval_id, given)

    patch.setattr(agent.Agent, "answer", answer)


def _cancelled_becomes_a_result(patch: pytest.MonkeyPatch) -> None:
    whole = pipeline._execute

    async def execute(slot: Any, tool: Any, permit: Any, kit: Any) -> ToolResult:
        try:
            return await whole(slot, tool, permit, kit)
        except trio.Cancelled:
            return ToolResult.of(slot.call, Outcome.ERROR, "cancelled", began=True)

    async def no_checkpoint() -> None:
        return None

    patch.setattr(pipeline, "_execute", execute)
    patch.setattr(run.trio.lowlevel, "checkpoint_if_cancelled", no_checkpoint)


def _next_run_before_reaping(patch: pytest.MonkeyPatch) -> None:
    async def drive(self: run.Run, prompt: Any, model: str) -> Any:
        self._talk.begin(prompt, model, self.kit.emit)
        ending = run.Ending(RunStatus.CANCELLED, "cancelled")
        try:
            with run.one_failure(), self.kit.stopping.scope:
                ending = await self._turns()
        finally:
            self.kit.desk.close()
            ended = self._end(ending)
        with grace.cleanup(5):
            await self.kit.processes.sweep()
        return ended

    patch.setattr(run.Run, "drive", drive)


FAULTS: dict[str, Fault] = {
    "retry after a submitted call": _retry_after_a_call,
    "commit outside finally": _commit_outside_finally,
    "stream error raised inside the nursery": _stream_error_in_the_nursery,
    "a call never settled": _a_call_never_settled,
    "results in completion order": _completion_order,
    "gate ignored": _gate_ignored,
    "a denied call goes on": _denied_goes_on,
    "clean-up unshielded": _cleanup_unshielded,
    "questions kept after the cancel": _questions_kept,
    "answers not bound to the run": _answers_unbound,
    "Cancelled turned into a result": _cancelled_becomes_a_result,
    "the next run started before reaping": _next_run_before_reaping,
}
