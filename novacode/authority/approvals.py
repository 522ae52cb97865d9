"""The open questions of one run.

A desk lives and dies with its run. An answer counts only where it names this run and a question that is open;
anything else changes nothing and says so to whoever sent it.
"""

from __future__ import annotations

import enum

import attrs
import trio

from novacode.values.events import ApprovalAsked, ApprovalClosed, Emit
from novacode.values.ids import ApprovalId, IdSource, RunId
from novacode.values.parts import ToolCall

__all__ = ["NOBODY", "Answer", "ApprovalDesk", "Question", "Receipt", "Scope"]

NOBODY = "nobody"
"""Who has decided where nobody could be asked."""


class Receipt(enum.StrEnum):
    """What became of an answer."""

    ACCEPTED = "accepted"
    STALE_RUN = "stale_run"
    UNKNOWN = "unknown"
    ALREADY = "already"


class Scope(enum.StrEnum):
    """How long an allowance holds."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


@attrs.frozen
class Answer:
    """A decision. `by` is who or what decided, `words` go to the model with a refusal.

    `rules` are what to remember for `scope`, in the text form of rules, as the person saw and perhaps edited them.
    """

    allowed: bool
    by: str
    words: str = ""
    scope: Scope = Scope.ONCE
    rules: tuple[str, ...] = ()


@attrs.frozen(eq=False, repr=False)
class Question:
    """What is to be asked: the call as it will run, and what a person needs to see to decide."""

    call: ToolCall
    reason: str
    summary: str = ""
    details: str = ""
    rule: str = ""
    would_allow: str = ""


@attrs.define(eq=False, repr=False)
class _Open:
    asked: ApprovalAsked
    answered: trio.Event = attrs.field(factory=trio.Event)
    answer: Answer | None = None


class ApprovalDesk:
    """Asks, waits, and takes answers. `somebody` is whether anybody could answer; if not, the answer is no, at once."""

    def __init__(self, run_id: RunId, ids: IdSource, emit: Emit, *, somebody: bool) -> None:
        self.run_id = run_id
        self.somebody = somebody
        self._ids = ids
        self._emit = emit
        self._open: dict[ApprovalId, _Open] = {}
        self._closed: set[ApprovalId] = set()
        self._over = False

    @property
    def pending(self) -> tuple[ApprovalAsked, ...]:
        """The open questions, oldest first."""
        return tuple(question.asked for question in self._open.values())

    async def ask(self, question: Question) -> Answer:
        """Ask and wait for the answer. A checkpoint, except where there is nobody to ask.

        Cancelling withdraws the question: faces are told that it is closed, and answers to it are too late.
        """
        if self._over or not self.somebody:
            return Answer(allowed=False, by=NOBODY, words=_nobody(question))
        entry = _Open(self._asked(question))
        approval_id = entry.asked.approval_id
        self._open[approval_id] = entry
        self._emit(entry.asked)
        try:
            await entry.answered.wait()
        finally:
            if approval_id in self._open:
                self._close(approval_id, "abandoned", "the run")
        return entry.answer or Answer(allowed=False, by="the run", words="The question was withdrawn.")

    def answer(self, run_id: str, approval_id: str, answer: Answer) -> Receipt:
        """Take an answer. Synchronous; counts only for an open question of this run, and only once."""
        if run_id != self.run_id or self._over:
            return Receipt.STALE_RUN
        known = ApprovalId(approval_id)
        if known in self._closed:
            return Receipt.ALREADY
        entry = self._open.get(known)
        if entry is None:
            return Receipt.UNKNOWN
        entry.answer = answer
        entry.answered.set()
        self._close(known, "allow" if answer.allowed else "deny", answer.by)
        return Receipt.ACCEPTED

    def close(self) -> None:
        """End the desk: what is still open is withdrawn, and every later answer is stale."""
        self._over = True
        for approval_id, entry in tuple(self._open.items()):
            entry.answered.set()
            self._close(approval_id, "abandoned", "the run")

    def _asked(self, question: Question) -> ApprovalAsked:
        return ApprovalAsked(
            self._ids.approval(self.run_id),
            question.call,
            question.reason,
            summary=question.summary,
            details=question.details,
            rule=question.rule,
        )

    def _close(self, approval_id: ApprovalId, decision: str, by: str) -> None:
        call = self._open.pop(approval_id).asked.call
        self._closed.add(approval_id)
        self._emit(ApprovalClosed(approval_id, call.id, call.name, decision, by))


def _nobody(question: Question) -> str:
    hint = f" {question.would_allow}" if question.would_allow else ""
    return f"nobody can be asked in this run, and {question.reason.rstrip('.')}.{hint}"
