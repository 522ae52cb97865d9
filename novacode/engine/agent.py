"""A conversation that can be run: one run at a time, each with its own questions, queue and scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from novacode.authority.approvals import Answer, ApprovalDesk, Receipt
from novacode.engine.bus import Bus
from novacode.engine.compaction import Compactor
from novacode.engine.conversation import Conversation
from novacode.engine.gate import Gate, Overlap
from novacode.engine.groups import RunBroken
from novacode.engine.kit import Kit, Services
from novacode.engine.ledger import Stopping
from novacode.engine.limits import Ending, Limits, Progress
from novacode.engine.run import Run
from novacode.errors import SessionError, UsageError
from novacode.values.events import ApprovalAsked, RunEnded, RunStatus
from novacode.values.ids import IdSource, RunId
from novacode.values.parts import User
from novacode.values.request import Usage

__all__ = ["Agent", "AgentOptions"]


@attrs.frozen(eq=False, repr=False)
class AgentOptions:
    """How an agent runs. `somebody` is whether a person can be asked; `model` is what events call the model.

    `window` is how many tokens the model can read, where that is known.
    """

    limits: Limits = attrs.field(factory=Limits)
    overlap: Overlap = Overlap.DECLARED
    somebody: bool = False
    model: str = ""
    cost: Callable[[Usage], float | None] = lambda _: None
    window: int | None = None


class Agent:
    """Runs prompts on one conversation. All its methods but `run` are synchronous and may be called at any time."""

    def __init__(
        self, services: Services, talk: Conversation, bus: Bus, ids: IdSource, options: AgentOptions | None = None
    ) -> None:
        self.services = services
        self.talk = talk
        self.bus = bus
        self.options = options or AgentOptions()
        self._ids = ids
        self._run: Run | None = None
        self._cancelled_before = ""
        self._compactor = Compactor(self.options.window)
        self.on_answer: Callable[[ApprovalAsked, Answer], None] = lambda asked, answer: None
        """Told of every answer that counts, the question first."""
        self.on_run: Callable[[RunId], None] = lambda run_id: None
        """Told of every run as it begins, before its first event."""
        bus.on_failure = self._cannot_write
        bus.on_bug = self._face_failed
        self._bug: Exception | None = None

    @property
    def active(self) -> Run | None:
        """The run under way."""
        return self._run

    async def run(self, prompt: User | str) -> RunEnded:
        """Run one prompt to its end; see `Run.drive` for what that means under cancellation.

        Raises `UsageError` while another run of this agent is under way: the next one starts when it is over. Raises
        `SessionError` where the session could not be written before: what is run then would be on no record. Raises
        `RunBroken`, once everything is on record and reaped, where a subscriber of the bus has failed.
        """
        user = User.said(prompt) if isinstance(prompt, str) else prompt
        return await self._one(lambda run: run.drive(user, self.options.model))

    async def compact(self, wanted: str = "") -> RunEnded:
        """Shorten the conversation with a summary that the model writes; `wanted` is what that has to hold besides.

        It is a run without a prompt, and ends, is cancelled and raises as one. Its reason is `compacted`, or
        `not_compacted` where there was nothing to win.
        """
        return await self._one(lambda run: run.compact(wanted))

    async def _one(self, drive: Callable[[Run], Awaitable[RunEnded]]) -> RunEnded:
        if self.bus.failure is not None:
            raise SessionError(f"no run can start: {self.bus.failure}") from self.bus.failure
        if self._run is not None:
            raise UsageError(f"run {self._run.id} is still under way; wait for its end or cancel it first")
        self._run = run = self._new_run(self._ids.run())
        self.on_run(run.id)
        if self._cancelled_before:
            run.cancel(self._cancelled_before)
            self._cancelled_before = ""
        try:
            ended = await drive(run)
        finally:
            self._run = None
            bug, self._bug = self._bug, None
        if bug is not None:
            raise RunBroken(f"the run was ended by a bug: {type(bug).__name__}: {bug}") from bug
        return ended

    def cancel(self, reason: str) -> bool:
        """Ask the active run to stop; whether there was one."""
        if self._run is None:
            return False
        self._run.cancel(reason)
        return True

    def cancel_next(self, reason: str) -> None:
        """Have the next run cancelled as it begins: it was asked to stop before there was anything to stop."""
        self._cancelled_before = reason

    def stop_job(self, name: str) -> bool:
        """Stop a background job of the active run; whether there was one that was running."""
        return self._run is not None and self._run.stop_job(name)

    def answer(self, run_id: str, approval_id: str, answer: Answer) -> Receipt:
        """Answer an open question of the active run; anything else changes nothing and is told."""
        if self._run is None:
            return Receipt.STALE_RUN
        asked = next((one for one in self._run.kit.desk.pending if one.approval_id == approval_id), None)
        receipt = self._run.answer(run_id, approval_id, answer)
        if receipt is Receipt.ACCEPTED and asked is not None:
            self.on_answer(asked, answer)
        return receipt

    def _cannot_write(self, error: SessionError) -> None:
        if self._run is not None:
            self._run.fail(Ending(RunStatus.FAILED, "session_error", f"the session cannot be written: {error}"))

    def _face_failed(self, bug: Exception) -> None:
        # Raised where the event was emitted it would come between what was done and its commit.
        self._bug = self._bug or bug
        if self._run is not None:
            self._run.fail(Ending(RunStatus.FAILED, "internal_error", f"{type(bug).__name__}: {bug}"))

    def _new_run(self, run_id: RunId) -> Run:
        emit = self.bus.emitter(run_id)
        desk = ApprovalDesk(run_id, self._ids, emit, somebody=self.options.somebody)
        kit = Kit.of(self.services, emit=emit, desk=desk, gate=Gate(self.options.overlap), stopping=Stopping())
        progress = Progress(self.options.limits, self.options.cost)
        return Run(run_id, kit, self.talk, progress, self._compactor)
