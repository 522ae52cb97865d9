"""Invariants about records: the journal, what faces see, and what the model is sent tell the same story."""

from __future__ import annotations

from collections.abc import Iterator

from novacode.lab.trial import Trial, folded
from novacode.values.events import (
    AttemptDropped,
    CallReady,
    CallSettled,
    PartDone,
    TextDelta,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.parts import Text
from novacode.values.results import Outcome

__all__ = ["asked_only_when_all_is_answered", "faces_saw_what_history_holds", "journal_tells_the_history"]


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
