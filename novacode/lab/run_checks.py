"""Invariants about runs: when one is over, nothing of it is left, and the next one works."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from novacode.authority.approvals import Receipt
from novacode.lab.mishaps import MishapKind
from novacode.lab.point import How
from novacode.lab.trial import Trial, folded
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    AttemptDropped,
    CallReady,
    CallSettled,
    PartDone,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    TextDelta,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.parts import Text
from novacode.values.results import Outcome

__all__ = [
    "asked_only_when_all_is_answered",
    "cancelled_goes_up",
    "comes_to_an_end",
    "ended_once_and_last",
    "faces_saw_what_history_holds",
    "journal_tells_the_history",
    "limits_hold",
    "next_run_works",
    "no_effect_after_the_end",
    "nothing_alive",
    "nothing_escapes",
    "nothing_new_after_the_cancel",
    "old_answers_change_nothing",
    "questions_are_closed",
]

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
    if trial.point.how in (How.OUTSIDE, How.CRASH):
        # Struck in its very last step it may end by itself: there was no checkpoint any more to be cancelled at.
        if not trial.caught and (trial.ended is None or "model" in _after_the_strike(trial)):
            yield "Cancelled did not go on upwards"
    elif trial.ended is None:
        yield "a cancelled run did not return"
    ended = [stamped.event for stamped in trial.first_events if isinstance(stamped.event, RunEnded)]
    # Struck in the clean-up of a run that had come to its end, it keeps the end it had.
    if ended and ended[0].status is not RunStatus.CANCELLED and _turns_were_going_on(trial):
        yield f"a cancelled run ended as {ended[0].status}: {ended[0].reason}"


def _after_the_strike(trial: Trial) -> Sequence[str]:
    return trial.first_log[trial.first_log.index("strike") :] if "strike" in trial.first_log else ()


def _turns_were_going_on(trial: Trial) -> bool:
    """Whether the strike came while a tool was running, so that the turn cannot have ended by itself."""
    struck = trial.first_log.index("strike") if "strike" in trial.first_log else 0
    before, after = trial.first_log[:struck], trial.first_log[struck:]
    return "sweep begins" not in before and any(
        entry.startswith("end ") and f"begin {entry.removeprefix('end ')}" in before for entry in after
    )


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


def journal_tells_the_history(trial: Trial) -> Iterator[str]:
    """A session read back from the journal has the history that was kept; after a crash, one that is paired."""
    for stamped in trial.unrecorded[:1]:
        yield f"a face saw {type(stamped.event).__name__} {stamped.seq} before it was on record"
    numbers = [stamped.seq for stamped in trial.events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"events are numbered {numbers}"
    if trial.crashed_at is not None:
        yield from _read_back_after_a_crash(trial)
        return
    loaded = folded(trial.events)
    if loaded.history != trial.stage.agent.talk.history:
        yield "the journal tells another history than the one that was kept"
    if loaded.notices or loaded.repaired or loaded.interrupted:
        yield f"the journal is not whole: {loaded.notices} {loaded.repaired}"


def _read_back_after_a_crash(trial: Trial) -> Iterator[str]:
    assert trial.loaded is not None, "a crash is always followed by reading back"
    before = trial.events[: trial.crashed_at]
    opened = {stamped.event.call.id for stamped in before if isinstance(stamped.event, CallReady)}
    kept = {result.call_id: result for item in trial.loaded.history.exchanges for result in item.results}
    if opened - set(kept):
        yield f"the crash lost {sorted(opened - set(kept))}"
    settled = {s.event.result.call_id: s.event.result for s in before if isinstance(s.event, CallSettled)}
    entered = _entered_before(trial)
    for call_id, result in kept.items():
        known = settled.get(call_id)
        if known is not None and result != known:
            yield f"{call_id} was {known.outcome} before the crash and is {result.outcome} after it"
        if known is None and result.outcome is not (Outcome.LOST if call_id in entered else Outcome.SKIPPED):
            yield f"{call_id} is {result.outcome} after the crash; entered were {sorted(entered)}"


def _entered_before(trial: Trial) -> set[str]:
    log = trial.first_log
    before = log[: log.index("strike")]
    return {entry.removeprefix("begin ") for entry in before if entry.startswith("begin ")}


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
        if (begun, len(ended)) != (1, 1):
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
    limits = getattr(trial.stage, "limits", None)
    if limits is None:
        return
    turns = sum(isinstance(stamped.event, TurnBegan) for stamped in trial.first_events)
    if limits.max_turns is not None and turns > limits.max_turns:
        yield f"{turns} turns; the limit is {limits.max_turns}"
    if limits.max_seconds is not None and not trial.point.mishap.startswith(MishapKind.CLOCK_JUMP):
        took = trial.first_events[-1].at - trial.first_events[0].at
        if took > limits.max_seconds + _CLEANUP:
            yield f"the run took {took:g} s; the limit is {limits.max_seconds:g} s"


def asked_only_when_all_is_answered(trial: Trial) -> Iterator[str]:
    """A request holds everything that was said and done before it, each call with its result."""
    committed, wanted = 0, []
    for stamped in trial.events:
        if isinstance(stamped.event, TurnBegan):
            wanted.append(committed)
        elif isinstance(stamped.event, TurnCommitted):
            committed += 1
    if trial.crashed_at is None:
        held = [sum(1 for _ in request.history.exchanges) for request in trial.stage.requests]
        if held != wanted[: len(held)]:
            yield f"requests held {held} exchanges; there were {wanted}"
    for request in trial.stage.requests:
        paired = [item for item in request.history.items if isinstance(item, Exchange)]
        if any(len(item.message.calls) != len(item.results) for item in paired):
            yield "a request carried an unpaired exchange"
    for one, other in itertools.pairwise(trial.events):
        if isinstance(other.event, AttemptDropped) and isinstance(one.event, CallReady):
            yield "a response was asked for again after a call of it"
    yield from _dropped_after_a_call(trial)


def _dropped_after_a_call(trial: Trial) -> Iterator[str]:
    called = False
    for stamped in trial.events:
        match stamped.event:
            case TurnBegan():
                called = False
            case CallReady():
                called = True
            case AttemptDropped() if called:
                yield "a response was asked for again after one of its calls was submitted"
            case _:
                pass


def faces_saw_what_history_holds(trial: Trial) -> Iterator[str]:
    """What a face draws of a response, forgetting what it is told to forget, is what history then holds."""
    drawn: dict[int, list[str]] = {}
    for stamped in trial.events:
        match stamped.event:
            case TurnBegan() | AttemptDropped():
                drawn = {}
            case TextDelta(index, text):
                drawn.setdefault(index, []).append(text)
            case PartDone(index, Text(text)) if "".join(drawn.get(index, [])) != text:
                yield f"part {index} was drawn as {''.join(drawn.get(index, []))!r} and is {text!r}"
            case TurnCommitted(exchange=exchange):
                seen = "".join("".join(pieces) for _, pieces in sorted(drawn.items()))
                if exchange.message.text != seen:
                    yield f"a face drew {seen!r}, and history holds {exchange.message.text!r}"
            case _:
                pass


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
    elif trial.next_ended.text != "fine":
        yield f"the next run said {trial.next_ended.text!r}, not what its model says"
