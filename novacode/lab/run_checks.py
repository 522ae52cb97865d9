"""Invariants about runs: when one is over, nothing of it is left, and the next one works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from novacode.authority.approvals import Receipt
from novacode.lab.mishaps import MishapKind
from novacode.lab.point import How
from novacode.lab.trial import Trial
from novacode.models.script import UNMET
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallSettled,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    TurnBegan,
)
from novacode.values.results import Outcome

__all__ = [
    "cancelled_goes_up",
    "comes_to_an_end",
    "ended_once_and_last",
    "limits_hold",
    "next_run_works",
    "no_effect_after_the_end",
    "nothing_alive",
    "nothing_escapes",
    "nothing_new_after_the_cancel",
    "old_answers_change_nothing",
    "questions_are_closed",
    "results_are_those_expected",
]

_IN_A_CALL = ("running", "asking", "queued")
"""Phases in which something of a turn is under way that has to be looked at again before the run can end."""

_CLEANUP = 60.0  # seconds that clean-up may add to a limit; the longest in any scenario and mishap is half of it


def nothing_escapes(trial: Trial) -> Iterator[str]:
    """No exception comes out of a run but where a hook of somebody else's crashed."""
    if trial.crash is not None:
        yield f"it came out of trio: {_words(trial.crash)}"
    if trial.raised is not None and not _may_raise(trial):
        yield f"the run raised {_words(trial.raised)}"


def _may_raise(trial: Trial) -> bool:
    around = trial.point.mishap.startswith(MishapKind.HOOK_CRASH)
    return around or getattr(trial.stage, "may_raise", False)


def _words(error: BaseException) -> str:
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    shown = f"{type(error).__name__}: {error}"
    return shown if cause is None or cause is error else f"{shown} ({type(cause).__name__}: {cause})"


def comes_to_an_end(trial: Trial) -> Iterator[str]:
    """A run ends; it neither waits for ever nor goes round in circles."""
    if trial.hung:
        yield f"it came to no end; the last that happened: {trial.log[-3:]}"


def nothing_alive(trial: Trial) -> Iterator[str]:
    """When a run is over no tool, no task and no response of it is left."""
    if trial.alive_at_end:
        yield f"alive after the run: {list(trial.alive_at_end)}"
    if trial.tasks_left > 0:
        yield f"{trial.tasks_left} tasks are left after the run"
    if trial.streams_at_end:
        yield f"{trial.streams_at_end} responses of the model are still open after the run"


def nothing_new_after_the_cancel(trial: Trial) -> Iterator[str]:
    """After the cancel no model is asked and no tool is entered."""
    if not trial.struck_run or "strike" not in trial.first_log:
        return
    after = trial.first_log[trial.first_log.index("strike") + 1 :]
    if "model" in after:
        yield f"the model was asked after the cancel: {list(after)}"
    if any(entry.startswith("begin ") for entry in after):
        yield f"a tool was entered after the cancel: {list(after)}"


def cancelled_goes_up(trial: Trial) -> Iterator[str]:
    """A cancellation from outside goes on upwards, and only where there was one; a cancelled run says so."""
    if trial.caught and not trial.struck_run:
        yield "a cancellation nobody asked for"
    if not trial.struck_run or trial.over_when_struck or trial.raised is not None:
        return
    in_a_call = trial.phase in _IN_A_CALL and trial.point.how is not How.BOTH
    if trial.point.how in (How.OUTSIDE, How.CRASH):
        # Struck in its very last step it may end by itself: there was no checkpoint any more to be cancelled at.
        if not trial.caught and (trial.ended is None or in_a_call):
            yield "Cancelled did not go on upwards"
    elif trial.ended is None:
        yield "a cancelled run did not return"
    # Its own time limit may pass at the very moment of the strike; then either may be told as the reason.
    told = {stamped.event.status for stamped in trial.first_events if isinstance(stamped.event, RunEnded)}
    if in_a_call and told & {RunStatus.COMPLETED, RunStatus.REFUSED, RunStatus.FAILED}:
        yield f"a run that was cancelled in a call of it ended as {told}"


def questions_are_closed(trial: Trial) -> Iterator[str]:
    """Every question is closed, once, when the run is over."""
    if trial.pending_at_end:
        yield f"{trial.pending_at_end} questions are still open after the run"
    asked = [event.approval_id for event in trial.of(ApprovalAsked)]
    closed = [event.approval_id for event in trial.of(ApprovalClosed)]
    if sorted(asked) != sorted(closed):
        yield f"asked were {asked}, closed {closed}"
    decided = {event.call_id: event.decision for event in trial.of(ApprovalClosed)}
    for event in trial.of(CallSettled):
        result = event.result
        if result.outcome is Outcome.DENIED and decided.get(result.call_id) == "allow":
            yield f"{result.call_id} was allowed, and is denied"


def old_answers_change_nothing(trial: Trial) -> Iterator[str]:
    """An answer to a question of the run before is not taken by the next one."""
    if any(receipt is Receipt.ACCEPTED for receipt in trial.receipts):
        yield f"an old answer was taken: {[receipt.value for receipt in trial.receipts]}"
    late = [entry for entry in trial.log[trial.log_at_end :] if entry.startswith("begin ")]
    if late:
        yield f"the next run's call ran, though it was refused: {late}"


def ended_once_and_last(trial: Trial) -> Iterator[str]:
    """A run says that it is over once, when everything is reaped, with the right counts, and then says no more."""
    for position, entry in enumerate(trial.log):
        if entry == "run ended" and (position == 0 or trial.log[position - 1] != "sweep ends"):
            yield "a run ended before everything was reaped"
    runs: dict[str, list[Stamped]] = {}
    for stamped in trial.events:
        runs.setdefault(stamped.run_id, []).append(stamped)
    for run_id, events in runs.items():
        begun = sum(isinstance(stamped.event, RunBegan) for stamped in events)
        ended = [stamped.event for stamped in events if isinstance(stamped.event, RunEnded)]
        # One that is stopped while hooks look at its prompt has not begun, and ends all the same.
        if begun > 1 or len(ended) != 1 or (begun == 0 and any(isinstance(s.event, TurnBegan) for s in events)):
            yield f"{run_id} began {begun} times and ended {len(ended)} times"
            continue
        if not isinstance(events[-1].event, RunEnded):
            yield f"{run_id} said {type(events[-1].event).__name__} after its end"
        outcomes = Counter(s.event.result.outcome.value for s in events if isinstance(s.event, CallSettled))
        if {"total": outcomes.total(), **outcomes} != dict(ended[0].calls):
            yield f"{run_id} counted {dict(ended[0].calls)}; its calls ended as {dict(outcomes)}"
    wanted = 1 if trial.point.step is None else 2
    if len(runs) != wanted:
        yield f"{wanted} runs were started, and {len(runs)} run ids were used"


def limits_hold(trial: Trial) -> Iterator[str]:
    """A run keeps its limits: turns and seconds."""
    limits = trial.stage.limits
    turns = sum(isinstance(stamped.event, TurnBegan) for stamped in trial.first_events)
    if limits.max_turns is not None and turns > limits.max_turns:
        yield f"{turns} turns; the limit is {limits.max_turns}"
    if limits.max_seconds is not None and not trial.point.mishap.startswith(MishapKind.CLOCK_JUMP):
        took = trial.first_events[-1].at - trial.first_events[0].at
        if took > limits.max_seconds + _CLEANUP:
            yield f"the run took {took:g} s; the limit is {limits.max_seconds:g} s"


def no_effect_after_the_end(trial: Trial) -> Iterator[str]:
    """Nothing is written when the run is over, and nothing by a call that was not entered."""
    written = list(trial.stage.written)
    if len(written) > trial.written_at_end:
        yield f"written after the run was over: {written[trial.written_at_end :]}"
    strange = sorted({call_id for call_id in written if call_id not in trial.stage.ran})
    if strange:
        yield f"written by calls that did not run: {strange}"


def next_run_works(trial: Trial) -> Iterator[str]:
    """The next run on the same session starts at once and works; its call is asked about where it should be."""
    if trial.point.step is None:
        return
    if trial.next_raised is not None:
        yield f"the next run raised {_words(trial.next_raised)}"
    elif trial.next_ended is None or trial.next_ended.status is not RunStatus.COMPLETED:
        how = "did not end" if trial.next_ended is None else f"ended as {trial.next_ended.status}"
        yield f"the next run {how}: {trial.next_ended.reason if trial.next_ended else ''}"


def results_are_those_expected(trial: Trial) -> Iterator[str]:
    """Where nobody stops a run and nothing goes wrong around it, its model is given the results that it expects."""
    failure = trial.ended.failure if trial.ended is not None else None
    if trial.point.step is None and not trial.point.mishap and failure is not None and UNMET in failure.message:
        yield failure.message
