"""What must be true of every run, whatever it was and wherever it was stopped; judged from records, after the run.

An assertion inside a tool or a hook would be turned into a tool result by the very code under test.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from novacode.errors import UsageError
from novacode.lab import call_checks, record_checks, run_checks
from novacode.lab.point import Violation
from novacode.lab.trial import Trial

__all__ = ["INVARIANTS", "Invariant", "judge", "load_invariant"]

Invariant = Callable[[Trial], Iterator[str]]
"""Yields, in words, what it found broken."""

INVARIANTS: Mapping[str, Invariant] = {
    "crash": run_checks.nothing_escapes,
    "hang": run_checks.comes_to_an_end,
    "pairing": call_checks.one_result_each,
    "order": call_checks.history_in_call_order,
    "executed": call_checks.refused_means_not_executed,
    "authorised": call_checks.authorised_before_run,
    "shown": call_checks.what_was_shown_runs,
    "after": call_checks.recorded_after_the_run,
    "gate": call_checks.conflicts_run_in_order,
    "overlap": call_checks.nothing_waits_for_nothing,
    "deadline": call_checks.deadlines_hold,
    "finished": call_checks.finished_stays_finished,
    "spread": call_checks.stopping_one_call_stops_one,
    "alive": run_checks.nothing_alive,
    "went-on": run_checks.nothing_new_after_the_cancel,
    "swallowed": run_checks.cancelled_goes_up,
    "question": run_checks.questions_are_closed,
    "stale-answer": run_checks.old_answers_change_nothing,
    "journal": record_checks.journal_tells_the_history,
    "ended": run_checks.ended_once_and_last,
    "limits": run_checks.limits_hold,
    "request": record_checks.asked_only_when_all_is_answered,
    "transcript": record_checks.faces_saw_what_history_holds,
    "effect": run_checks.no_effect_after_the_end,
    "next-run": run_checks.next_run_works,
    "expected": run_checks.results_are_those_expected,
}
"""Kind -> what checks it. The kind is what rows and reports call a violation."""


def judge(trial: Trial, more: Sequence[tuple[str, Invariant]] = ()) -> tuple[Violation, ...]:
    """Return everything that `trial` broke. `more` are invariants of one's own, with the kinds to call them by."""
    if trial.crash is not None or trial.hung:
        # There is no end to judge at: the records stop somewhere in the middle.
        early = ("crash", "hang")
        return tuple(Violation(kind, text) for kind in early for text in INVARIANTS[kind](trial))
    checks = (*INVARIANTS.items(), *more)
    return tuple(Violation(kind, text) for kind, check in checks for text in check(trial))


def load_invariant(name: str) -> tuple[str, Invariant]:
    """Return the invariant `module:function`, and the function's name as its kind. Raises `UsageError`."""
    module, _, function = name.partition(":")
    try:
        check = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"the invariant {name!r} cannot be imported as module:function: {error}") from None
    if not callable(check):
        raise UsageError(f"the invariant {name!r} is {check!r}; it must be a function of a trial that yields texts")
    return function, check
