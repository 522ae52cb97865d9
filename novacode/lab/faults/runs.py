"""Faults of a run: its questions, its limits, its end, its record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import trio

from novacode import grace
from novacode.authority import approvals
from novacode.engine import agent, bus, limits, run
from novacode.lab.faults.patching import Fault, Patch
from novacode.sessions import mending
from novacode.values import ids
from novacode.values.events import RunStatus, Stamped
from novacode.values.ids import ApprovalId, RunId

__all__ = ["FAULTS"]


def _cleanup_unshielded(patch: Patch) -> None:
    @contextlib.contextmanager
    def cleanup(seconds: float) -> Iterator[trio.CancelScope]:
        with trio.move_on_after(seconds) as scope:
            yield scope

    patch.set(grace, "cleanup", cleanup)


def _questions_kept(patch: Patch) -> None:
    async def ask(self: approvals.ApprovalDesk, question: approvals.Question) -> approvals.Answer:
        entry = approvals._Open(self._asked(question))
        self._open[entry.asked.approval_id] = entry
        self._emit(entry.asked)
        await entry.answered.wait()
        assert entry.answer is not None
        return entry.answer

    patch.set(approvals.ApprovalDesk, "ask", ask)
    patch.set(approvals.ApprovalDesk, "close", lambda self: None)


def _answers_not_bound(patch: Patch) -> None:
    def answer(self: agent.Agent, run_id: str, approval_id: str, given: approvals.Answer) -> approvals.Receipt:
        if self.active is None or not self.active.kit.desk.pending:
            return approvals.Receipt.STALE_RUN
        oldest = self.active.kit.desk.pending[0]
        return self.active.answer(self.active.id, oldest.approval_id, given)

    patch.set(agent.Agent, "answer", answer)


def _no_means_yes(patch: Patch) -> None:
    whole = approvals.ApprovalDesk.answer

    def answer(self: Any, run_id: str, approval_id: str, given: approvals.Answer) -> approvals.Receipt:
        return whole(self, run_id, approval_id, attrs.evolve(given, allowed=True))

    patch.set(approvals.ApprovalDesk, "answer", answer)


def _question_shows_less(patch: Patch) -> None:
    whole = approvals.ApprovalDesk.ask

    async def ask(self: approvals.ApprovalDesk, question: approvals.Question) -> approvals.Answer:
        shown = dict(list(question.call.arguments.items())[:-1])
        return await whole(self, attrs.evolve(question, call=attrs.evolve(question.call, arguments=shown)))

    patch.set(approvals.ApprovalDesk, "ask", ask)


def _ended_before_reaping(patch: Patch) -> None:
    async def close(self: run.Run, ending: Any) -> Any:
        self.kit.desk.close()
        ended = self._end(ending)
        with grace.cleanup(5):
            await self.kit.processes.sweep()
        return ended

    patch.set(run.Run, "_close", close)


def _nothing_reaped(patch: Patch) -> None:
    async def close(self: run.Run, ending: Any) -> Any:
        self.kit.desk.close()
        return self._end(ending)

    patch.set(run.Run, "_close", close)


def _ended_twice(patch: Patch) -> None:
    whole = run.Run._end

    def end(self: run.Run, ending: Any) -> Any:
        whole(self, ending)
        return whole(self, ending)

    patch.set(run.Run, "_end", end)


def _turns_not_limited(patch: Patch) -> None:
    patch.set(limits.Progress, "reached", lambda self: None)


def _time_not_limited(patch: Patch) -> None:
    whole = agent.Agent._new_run

    def new_run(self: agent.Agent, run_id: RunId) -> run.Run:
        made = whole(self, run_id)
        made._limits = attrs.evolve(made._limits, max_seconds=None)
        return made

    patch.set(agent.Agent, "_new_run", new_run)


def _run_id_reused(patch: Patch) -> None:
    patch.set(ids.IdSource, "run", lambda self: RunId(f"{self.session}-r1"))


def _approval_id_reused(patch: Patch) -> None:
    patch.set(ids.IdSource, "approval", lambda self, run_id: ApprovalId(f"{run_id}-a1"))


def _call_id_repeated(patch: Patch) -> None:
    patch.set(ids.CallIds, "claim", lambda self, wire_id: wire_id or "call_1")


def _journal_after_faces(patch: Patch) -> None:
    def hand_out(self: bus.Bus, stamped: Stamped) -> None:
        for sink in reversed(self._sinks):
            sink(stamped)

    patch.set(bus.Bus, "_hand_out", hand_out)


def _cancel_swallowed(patch: Patch) -> None:
    whole = run.Run._turns

    async def turns(self: run.Run) -> Any:
        try:
            return await whole(self)
        except BaseException:  # noqa: BLE001 - a nursery gives it in a group
            return limits.Ending(RunStatus.COMPLETED, "completed")

    patch.set(run.Run, "_turns", turns)


def _crash_forgets_what_began(patch: Patch) -> None:
    whole = mending._made_up
    patch.set(mending, "_made_up", lambda call, begun: whole(call, False))


def _run_never_free(patch: Patch) -> None:
    whole = agent.Agent.run

    async def run_once(self: agent.Agent, prompt: Any) -> Any:
        try:
            return await whole(self, prompt)
        except BaseException:
            self._run = self._new_run(self._ids.run())
            raise

    patch.set(agent.Agent, "run", run_once)


FAULTS = (
    Fault("cleanup-unshielded", "clean-up is cut off by the cancellation it cleans up after", _cleanup_unshielded),
    Fault("questions-kept", "questions outlive the run that asked them", _questions_kept),
    Fault("answers-not-bound", "an answer counts for whatever is asked", _answers_not_bound),
    Fault("no-means-yes", "a refusal is taken for an allowance", _no_means_yes),
    Fault("question-shows-less", "a question leaves out an argument of what will run", _question_shows_less),
    Fault("ended-before-reaping", "a run says that it is over before everything has stopped", _ended_before_reaping),
    Fault("nothing-reaped", "what commands left running is not stopped", _nothing_reaped),
    Fault("ended-twice", "a run says twice that it is over", _ended_twice),
    Fault("turns-not-limited", "the limit of turns is not kept", _turns_not_limited),
    Fault("time-not-limited", "the limit of time is not kept", _time_not_limited),
    Fault("run-id-reused", "two runs have one id", _run_id_reused),
    Fault("approval-id-reused", "two questions have one id", _approval_id_reused),
    Fault("call-id-repeated", "a provider's repeated ids are taken as they are", _call_id_repeated),
    Fault("journal-after-faces", "a face sees an event before it is on record", _journal_after_faces),
    Fault("cancel-swallowed", "a cancellation from outside ends in a result", _cancel_swallowed),
    Fault("crash-forgets-what-began", "after a crash a begun call is told as skipped", _crash_forgets_what_began),
    Fault("run-never-free", "after a cancellation the session thinks that it still runs", _run_never_free),
)
