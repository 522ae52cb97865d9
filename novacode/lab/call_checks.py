"""Invariants about calls: one result each, in order, and nothing executed that was not authorised."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from novacode.engine.gate import Overlap, conflict
from novacode.lab.mishaps import MishapKind
from novacode.lab.point import How
from novacode.lab.trial import Trial
from novacode.tools.schema import InvalidArguments, structure
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallBroken,
    CallMoved,
    CallReady,
    CallSettled,
    Phase,
    RunStatus,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.parts import BrokenCall, ToolCall
from novacode.values.results import EXECUTED, REFUSED, Outcome, ToolResult

__all__ = [
    "authorised_before_run",
    "conflicts_run_in_order",
    "deadlines_hold",
    "finished_stays_finished",
    "history_in_call_order",
    "nothing_waits_for_nothing",
    "one_result_each",
    "recorded_after_the_run",
    "refused_means_not_executed",
    "stopping_one_call_stops_one",
    "what_was_shown_runs",
]

_CLEANUP = 60.0  # seconds that clean-up may add to a limit; the longest in any scenario and mishap is half of it


def one_result_each(trial: Trial) -> Iterator[str]:
    """Every call the model made has exactly one result, and there are no others."""
    if trial.crashed_at is not None:
        return
    opened = Counter(call.id for turn in _turns(trial) for call in turn)
    settled = Counter(event.result.call_id for event in trial.of(CallSettled))
    if opened != settled:
        yield f"calls {sorted(opened.elements())}, but results {sorted(settled.elements())}"
    for event in trial.of(CallSettled):
        if event.result.outcome is Outcome.LOST:
            yield f"{event.result.call_id} is lost, though nothing crashed"


def history_in_call_order(trial: Trial) -> Iterator[str]:
    """History has the results in the order the model opened the calls, and events tell the same history."""
    if trial.crashed_at is not None:
        return
    items = trial.stage.agent.talk.history.items
    kept = [item for item in items if isinstance(item, Exchange)]
    told = [event.exchange for event in trial.of(TurnCommitted)]
    if told != kept:
        yield "the events tell another history than the one that is kept"
    opened = [call.id for turn in _turns(trial) for call in turn]
    committed = [result.call_id for exchange in kept for result in exchange.results]
    if committed != opened:
        yield f"calls in the order {opened}, but history in the order {committed}"
    settled = {event.result.call_id: event.result for event in trial.of(CallSettled)}
    differing = [r.call_id for exchange in kept for r in exchange.results if settled.get(r.call_id) != r]
    if differing:
        yield f"history has other results than were told, for {differing}"


def refused_means_not_executed(trial: Trial) -> Iterator[str]:
    """What was refused was not entered, and what was entered says so; no call is entered twice."""
    refused = {entry.removeprefix("refuse ") for entry in trial.log if entry.startswith("refuse ")}
    broken = {event.call.id for event in trial.of(CallBroken)}
    entered = [entry.removeprefix("begin ") for entry in trial.log if entry.startswith("begin ")]
    if len(entered) != len(set(entered)):
        yield f"a call ran twice: {entered}"
    for result in _results(trial):
        if result.began != (result.call_id in entered):
            yield f"{result.call_id} says began={result.began}, entered were {entered}"
        if result.outcome in REFUSED and result.call_id in entered:
            yield f"{result.call_id} is {result.outcome} and was executed"
        if result.call_id in refused and result.outcome not in (Outcome.HOOK_DENIED, Outcome.CANCELLED):
            yield f"{result.call_id} was refused by a hook, and is {result.outcome}"
        if (result.call_id in broken) != (result.outcome is Outcome.BROKEN):
            yield f"{result.call_id} is {result.outcome}; broken calls are {sorted(broken)}"
        touched = [word for word in ("take", "record", "post") if f"{word} {result.call_id}" in trial.log]
        if result.outcome in REFUSED - {Outcome.SKIPPED} and touched:
            yield f"{result.call_id} is {result.outcome}, and all the same: {', '.join(touched)}"
    running = {event.call_id for event in trial.of(CallMoved) if event.phase is Phase.RUNNING}
    if running != set(entered):
        yield f"events say {sorted(running)} ran, entered were {sorted(entered)}"


def authorised_before_run(trial: Trial) -> Iterator[str]:
    """Whatever was entered went through the steps before: the hooks were asked, the snapshot was taken."""
    for call_id in trial.stage.ran:
        began = trial.log.index(f"begin {call_id}")
        for step in {"pre", "take"} & set(trial.stage.noted):
            entry = f"{step} {call_id}"
            if entry not in trial.log[:began]:
                yield f"{call_id} was entered without `{step}` before it"
    tools = trial.stage.agent.services.tools
    off = [call_id for call_id, call in trial.stage.ran.items() if not tools.is_enabled(call.name)]
    if off:
        yield f"{off} ran, and there is no such tool, or it is disabled"
    known = {call.id for turn in _turns(trial) for call in turn if isinstance(call, ToolCall)}
    strange = [call_id for call_id in trial.stage.ran if call_id not in known]
    if strange:
        yield f"{strange} ran, and the model never made such a call"


def what_was_shown_runs(trial: Trial) -> Iterator[str]:
    """A call that somebody was asked about ran only if it was allowed, and with exactly what was shown."""
    closed = {event.approval_id: event.decision for event in trial.of(ApprovalClosed)}
    for asked in trial.of(ApprovalAsked):
        ran = trial.stage.ran.get(asked.call.id)
        decision = closed.get(asked.approval_id)
        if ran is None:
            continue
        if decision != "allow":
            yield f"{asked.call.id} ran, and the answer was {decision}"
        if ran.arguments != asked.call.arguments:
            yield f"{asked.call.id} ran with {ran.arguments}; shown was {asked.call.arguments}"


def recorded_after_the_run(trial: Trial) -> Iterator[str]:
    """What was executed to an end is recorded and the hooks are told, once each and not before the end."""
    if trial.struck or _status(trial) is not RunStatus.COMPLETED:
        return
    after = [word for word in ("record", "post") if word in trial.stage.noted]
    for result in _results(trial):
        if result.outcome not in EXECUTED:
            continue
        wanted = [f"{word} {result.call_id}" for word in ("begin", "end", *after)]
        found = [entry for entry in trial.log if entry in wanted]
        if found[:2] != wanted[:2] or sorted(found) != sorted(wanted):
            yield f"{result.call_id} ended as {result.outcome}, and what happened to it was {found}"


def conflicts_run_in_order(trial: Trial) -> Iterator[str]:
    """Of two calls of one turn that touch the same thing the later begins when the earlier has ended."""
    services, options = trial.stage.agent.services, trial.stage.agent.options
    if options.overlap is Overlap.ALL:
        return
    where = {entry: at for at, entry in enumerate(trial.log) if entry.startswith(("begin ", "end "))}
    for turn in _turns(trial):
        ran = [call for call in turn if isinstance(call, ToolCall) and call.id in trial.stage.ran]
        # A call that a hook has changed may have let later ones go ahead by what it claimed before.
        same = [call for call in ran if trial.stage.ran[call.id].arguments == call.arguments]
        claims = {call.id: services.tools.claims(call, services.workspace) for call in same}
        for one, other in itertools.combinations(same, 2):
            if options.overlap is not Overlap.NONE and not conflict(claims[one.id], claims[other.id]):
                continue
            if where[f"begin {other.id}"] < where.get(f"end {one.id}", len(trial.log)):
                yield f"{other.id} began before {one.id} had ended, and they touch the same thing"


def nothing_waits_for_nothing(trial: Trial) -> Iterator[str]:
    """A call goes to the pipeline the moment it is complete, and runs the moment that nothing is in its way."""
    events = trial.first_events if trial.crashed_at is None else trial.events[: trial.crashed_at]
    for stamped, following in itertools.pairwise(events):
        event, then = stamped.event, following.event
        if isinstance(event, CallReady) and not (isinstance(then, CallMoved) and then.call_id == event.call.id):
            yield f"{event.call.id} was complete, and what came next was {type(then).__name__}"
    yield from _waits_in_vain(trial)
    if trial.struck or trial.point.mishap.startswith(MishapKind.CLOCK_JUMP):
        return
    moved = {(event.call_id, event.phase): at for at, event in trial.timed(CallMoved) if not event.waits_for}
    for (call_id, phase), at in moved.items():
        following_phase = {Phase.SUBMITTED: Phase.AUTHORISING, Phase.QUEUED: Phase.RUNNING}.get(phase)
        then_at = moved.get((call_id, following_phase), at) if following_phase else at
        if then_at > at:
            yield f"{call_id} was {phase} at {at:g} s and {following_phase} only at {then_at:g} s"


def _waits_in_vain(trial: Trial) -> Iterator[str]:
    """Yield the waits for calls that touch nothing in common."""
    services, options = trial.stage.agent.services, trial.stage.agent.options
    if options.overlap is not Overlap.DECLARED:
        return
    calls = {call.id: call for turn in _turns(trial) for call in turn if isinstance(call, ToolCall)}
    changed = {call.id for call in calls.values() if _changed(trial, call)}
    claims = {call.id: services.tools.claims(call, services.workspace) for call in calls.values()}
    for event in trial.of(CallMoved):
        for other in event.waits_for:
            involved = {event.call_id, other}
            if not involved & changed and not conflict(claims[event.call_id], claims[other]):
                yield f"{event.call_id} waits for {other}, and they touch nothing in common"


def _changed(trial: Trial, call: ToolCall) -> bool:
    """Whether a hook made another call of it; where it did not run, nobody knows."""
    ran = trial.stage.ran.get(call.id)
    return ran is None or ran.arguments != call.arguments


def deadlines_hold(trial: Trial) -> Iterator[str]:
    """No tool runs longer than its own limit, clean-up apart; and one that took longer has not simply succeeded."""
    if trial.point.mishap.startswith(MishapKind.CLOCK_JUMP):
        return
    tools = trial.stage.agent.services.tools
    for event in trial.of(CallSettled):
        call = trial.stage.ran.get(event.result.call_id)
        tool = tools.find(event.result.name)
        if call is None or tool is None:
            continue
        try:
            limit = tool.limit(structure(tool.spec.args, call.arguments))
        except InvalidArguments:
            yield f"{call.id} ran with arguments that are not valid: {call.arguments}"
            continue
        if limit is not None and event.seconds > limit + _CLEANUP:
            yield f"{call.id} ran {event.seconds:g} s; its limit is {limit:g} s"
        if limit is not None and event.seconds > limit and event.result.outcome is Outcome.OK and not trial.struck:
            yield f"{call.id} is told as done after {event.seconds:g} s; its limit is {limit:g} s"
        if limit is not None and event.seconds < limit and event.result.outcome is Outcome.TIMEOUT:
            yield f"{call.id} timed out after {event.seconds:g} s; its limit is {limit:g} s"


def finished_stays_finished(trial: Trial) -> Iterator[str]:
    """A call whose tool came to its own end keeps its result, whatever is cancelled after it."""
    for result in _results(trial):
        if result.outcome is Outcome.CANCELLED and f"done {result.call_id}" in trial.log:
            yield f"{result.call_id} had finished, and is told as {result.outcome}"


def stopping_one_call_stops_one(trial: Trial) -> Iterator[str]:
    """Where only one call was stopped the others have their own ends, and the run goes on."""
    if trial.point.how is not How.CALL:
        return
    if _status(trial) is RunStatus.CANCELLED:
        yield f"{trial.struck_call} was stopped, and the run with it"
    if _status(trial) is not RunStatus.COMPLETED:
        return
    cancelled = {result.call_id for result in _results(trial) if result.outcome is Outcome.CANCELLED}
    others = cancelled - {trial.struck_call}
    if others:
        yield f"{trial.struck_call or 'nothing'} was stopped, and {sorted(others)} were cancelled with it"


def _turns(trial: Trial) -> Sequence[Sequence[ToolCall | BrokenCall]]:
    """Return the calls of each turn, in the order the model opened them."""
    turns: list[list[ToolCall | BrokenCall]] = []
    for stamped in trial.events:
        match stamped.event:
            case TurnBegan():
                turns.append([])
            case CallReady(call=call) | CallBroken(call=call):
                turns[-1].append(call)
            case _:
                pass
    return [sorted(turn, key=lambda call: call.index) for turn in turns]


def _results(trial: Trial) -> Sequence[ToolResult]:
    return [event.result for event in trial.of(CallSettled)]


def _status(trial: Trial) -> RunStatus | None:
    return trial.ended.status if trial.ended is not None else None
