"""One run: from a person's prompt to the moment when everything it started has stopped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable

import attrs
import trio

from novacode import grace
from novacode.authority.approvals import Answer, Receipt
from novacode.authority.hooks import HookedRun
from novacode.engine.compaction import Compactor
from novacode.engine.conversation import Conversation
from novacode.engine.groups import one_failure
from novacode.engine.kit import Kit
from novacode.engine.ledger import Ledger
from novacode.engine.limits import Ending, NextStep, Progress, Step
from novacode.engine.reply import Reply
from novacode.engine.turn import TurnOutcome, run_turn
from novacode.errors import ReplayMismatch
from novacode.values.events import Level, Notice, Reaped, RunEnded, RunStatus, TurnBegan
from novacode.values.failure import FailureKind
from novacode.values.ids import CallId, RunId
from novacode.values.parts import User
from novacode.values.request import Usage
from novacode.workspace.jobs import Job, Jobs

__all__ = ["Run"]

_SWEEP = 5.0  # seconds for stopping what commands have left running; more than a process's own grace needs


class Run:
    """One run. Made by `Agent`; `drive` runs it, the other methods steer it and are synchronous."""

    def __init__(self, run_id: RunId, kit: Kit, talk: Conversation, progress: Progress, compactor: Compactor) -> None:
        self.id = run_id
        self.kit = attrs.evolve(
            kit,
            hooks=kit.hooks.for_run(HookedRun(run_id, kit.emit, self._stop_for_a_hook)),
            jobs=Jobs(f"job_{run_id.rpartition('-r')[2]}_"),
        )
        self._talk = talk
        self._limits = progress.limits
        self._progress = progress
        self._compactor = compactor
        self._ledger = self._new_ledger()
        self._outcomes: Counter[str] = Counter()
        self._cut_off = 0
        self._uncounted = False
        self._begun = False
        self._went_on = 0
        self._stop_asked_at: float | None = None
        self._fatal: Ending | None = None
        self._reaped_before = kit.processes.reaped

    def cancel(self, reason: str) -> None:
        """Ask the run to stop. It is over when `drive` returns: when everything it started has stopped."""
        if self._stop_asked_at is None:
            self._stop_asked_at = self.kit.clock()
            self.kit.stopping.reason = reason
            self.kit.stopping.scope.cancel()

    def fail(self, ending: Ending) -> None:
        """Ask the run to stop because something it needs has failed: it ends as `ending`, however far it gets."""
        self._fatal = self._fatal or ending
        self.cancel(ending.text)

    def stop_call(self, call_id: CallId) -> bool:
        """Cancel just this call; the run goes on. Whether there was such a call under way."""
        return self._ledger.stop(call_id)

    def stop_job(self, name: str) -> bool:
        """Stop the background job of that name; the run goes on. Whether there was one that was running."""
        return self.kit.jobs.stop(name)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The background jobs that are running."""
        return self.kit.jobs.running

    def answer(self, run_id: str, approval_id: str, answer: Answer) -> Receipt:
        """Answer an open question; counts only if it names this run and an open question of it."""
        return self.kit.desk.answer(run_id, approval_id, answer)

    async def drive(self, prompt: User, model: str) -> RunEnded:
        """Run to the end and say how it went.

        Where the run itself was cancelled (`cancel`, a limit) that is an ending like others. A cancellation from
        outside goes on upwards, after everything is reaped and `RunEnded` is emitted. Raises `RunBroken` for a bug,
        and other `NovaError`s as they are.
        """

        async def work() -> Ending:
            return await self._begin(prompt, model) or await self._turns()

        return await self._to_the_end(work)

    async def compact(self, wanted: str) -> RunEnded:
        """Shorten the conversation instead, with a summary that holds what is `wanted`; ends as `drive` does."""

        async def work() -> Ending:
            return await self._compactor.when_asked(self.kit, self._talk, self._progress, wanted)

        return await self._to_the_end(work)

    async def _to_the_end(self, work: Callable[[], Awaitable[Ending]]) -> RunEnded:
        scope = self.kit.stopping.scope
        seconds = self._limits.max_seconds
        scope.deadline = math.inf if seconds is None else trio.current_time() + seconds
        ending = outside = Ending(RunStatus.CANCELLED, "cancelled", "cancelled from outside")
        try:
            with one_failure(), scope:
                async with self.kit.jobs.open():
                    ending = await work()
            if scope.cancelled_caught and ending is outside:  # it had not come to an end before, and jobs were stopping
                ending = self._stopped()
        except ReplayMismatch as mismatch:
            ending = Ending(RunStatus.FAILED, "replay_mismatch", str(mismatch))
        except Exception as bug:
            ending = Ending(RunStatus.FAILED, "internal_error", str(bug))
            raise
        finally:
            ended = await self._close(ending)
        return ended

    async def _close(self, ending: Ending) -> RunEnded:
        """Stop what is left, then say that the run is over: last of all, and in any case."""
        self.kit.desk.close()
        try:
            with grace.cleanup(_SWEEP):
                await self.kit.processes.sweep()
        finally:
            ended = self._end(self._fatal or ending)
        return ended

    async def _begin(self, prompt: User, model: str) -> Ending | None:
        """Make the prompt history, unless a hook refuses it: then no model ever sees it."""
        kit, talk = self.kit, self._talk
        news = await kit.ready()
        told = await kit.hooks.session_started()
        answer = await kit.hooks.prompt_submitted(prompt.text)
        if answer.blocked:
            return Ending(RunStatus.REFUSED, "hook", f"a hook refused the prompt: {answer.reason}")
        talk.begin(prompt, model, kit.emit)
        self._begun = True
        for text in news:
            kit.emit(Notice(Level.WARNING, text))
        for words in filter(None, (told, answer.context)):
            talk.nudge(words, kit.emit, origin="hook")
        return None

    async def _turns(self) -> Ending:
        """Turn after turn, until one is the last."""
        kit, progress = self.kit, self._progress
        step = Step()
        while True:
            # A tool may have swallowed the cancellation; no further model call follows one all the same.
            await trio.lowlevel.checkpoint_if_cancelled()
            if (limit := progress.reached()) is not None:
                return limit
            await self._before(step)
            if (
                ending := await self._compactor.before_turn(kit, self._talk, progress) or progress.reached()
            ) is not None:
                return ending
            kit.emit(TurnBegan(progress.turns + 1))
            following = await self._following(await self._turn())
            if isinstance(following, Step):
                step = following
            elif await self._goes_on_after(following):
                step = Step()
            else:
                return following

    async def _following(self, outcome: TurnOutcome) -> NextStep:
        """Return what follows a turn; a request that was too long is made again once the history is shorter."""
        following = self._progress.after(outcome)
        if outcome.lost is None or outcome.lost.failure.kind is not FailureKind.CONTEXT_TOO_LONG:
            return following
        if isinstance(following, Step):
            return following
        return await self._compactor.after_refusal(self.kit, self._talk, self._progress, following) or Step()

    async def _turn(self) -> TurnOutcome:
        self._ledger = self._new_ledger()
        reply = Reply(self.kit.model.issuer)
        request = self.kit.request(self._talk.history, self._progress.output_left)
        try:
            outcome = await run_turn(self.kit, self._talk, request, reply, self._ledger)
            if outcome.lost is None:
                self._compactor.saw(request, reply.usage)
                self._check_counted(reply.usage)
            return outcome
        finally:
            self._progress.add(reply.costs)
            self._outcomes.update(result.outcome.value for result in self._ledger.close())
            self._cut_off += self._ledger.cut_off

    def _check_counted(self, usage: Usage) -> None:
        """Say once that a limit cannot be held, because the provider does not report what it would be held by."""
        limits = self._limits
        if usage != Usage() or self._uncounted or (limits.max_output_tokens or limits.max_budget_usd) is None:
            return
        self._uncounted = True
        text = "the provider reports no token counts: the limits of tokens and cost cannot be held over several turns"
        self.kit.emit(Notice(Level.WARNING, text))

    async def _before(self, step: Step) -> None:
        if step.delay is not None:
            text = f"the response broke off ({step.why}); going on from what came in {step.delay:.3g} s"
            self.kit.emit(Notice(Level.WARNING, text))
            await trio.sleep(step.delay)
        if step.nudge:
            self._talk.nudge(step.nudge, self.kit.emit)

    async def _goes_on_after(self, ending: Ending) -> bool:
        """Ask the hooks whether the run may end here, and tell the model where it may not."""
        if ending.status is not RunStatus.COMPLETED:
            return False
        wanted = await self.kit.hooks.stopped(self._talk.last_text(), active=self._went_on > 0)
        if wanted and self._went_on >= self._limits.stop_hooks:
            text = f"hooks have made the run go on {self._went_on} times and want it once more; it ends all the same"
            self.kit.emit(Notice(Level.WARNING, text))
            return False
        if wanted:
            self._went_on += 1
            self._talk.nudge(wanted, self.kit.emit, origin="hook")
        return bool(wanted)

    def _stop_for_a_hook(self, reason: str) -> None:
        self.fail(Ending(RunStatus.REFUSED, "hook", f"a hook ended the run: {reason}"))

    def _new_ledger(self) -> Ledger:
        return Ledger(self.kit.emit, self.kit.gate, self.kit.clock, self.kit.stopping)

    def _stopped(self) -> Ending:
        reason = self.kit.stopping.reason
        if reason is None:
            late = trio.current_time() - self.kit.stopping.scope.deadline
            self._stop_asked_at = self.kit.clock() - late  # nobody asked; the deadline did, when it passed
            return Ending(RunStatus.LIMIT, "max_seconds", f"the limit of {self._limits.max_seconds:g} s is reached")
        return Ending(RunStatus.CANCELLED, reason, f"cancelled: {reason}")

    def _end(self, ending: Ending) -> RunEnded:
        kit, progress = self.kit, self._progress
        if ending.text and ending.failure is None:  # a failure is told by `RunEnded`, with what can be done about it
            level = Level.INFO if ending.status is RunStatus.CANCELLED else Level.WARNING
            kit.emit(Notice(level, ending.text))
        ended = RunEnded(
            ending.status,
            ending.reason,
            text=self._talk.last_text() if self._begun else "",
            turns=progress.turns,
            usage=progress.usage,
            cost_usd=progress.cost_usd,
            failure=ending.failure,
            calls={"total": self._outcomes.total(), **self._outcomes},
            reaped=self._reaped(),
            jobs=self._stopped_jobs(),
        )
        kit.emit(ended)
        return ended

    def _stopped_jobs(self) -> tuple[str, ...]:
        """Name the jobs that the end of the run has stopped."""
        left = self.kit.jobs.cut_off
        for job in left:
            self.kit.emit(Notice(Level.INFO, f"{job.name} was still running and was stopped with the run: {job.title}"))
        return tuple(job.name for job in left)

    def _reaped(self) -> Reaped:
        kit, before, now = self.kit, self._reaped_before, self.kit.processes.reaped
        survivors = tuple(pid for pid in now.survivors if pid not in before.survivors)
        for pid in survivors:
            kit.emit(Notice(Level.WARNING, f"process {pid} could not be stopped and is still alive"))
        asked_at = kit.clock() if self._stop_asked_at is None else self._stop_asked_at
        return Reaped(
            tasks=self._cut_off,
            processes=now.processes - before.processes,
            escalated=now.escalated - before.escalated,
            survivors=survivors,
            ms=round((kit.clock() - asked_at) * 1000),
        )
