"""From a point to its row."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence

from novacode.lab.faults import planted
from novacode.lab.invariants import Invariant, judge
from novacode.lab.point import Point, Row, Violation
from novacode.lab.scenario import Scenario, find_scenario
from novacode.lab.trial import Trial, carry_out
from novacode.values.events import CallSettled, RunEnded

__all__ = ["perform", "row_of"]


def perform(point: Point, scenario: Scenario | None = None, more: Sequence[tuple[str, Invariant]] = ()) -> Row:
    """Carry `point` out and judge it. The same point gives the same row, in any process.

    `scenario` is the one the point names, where it has been found already. Raises `InputError` and its like for what
    cannot be set up; whatever the runtime does is in the row.
    """
    with planted(point.fault) if point.fault else contextlib.nullcontext():
        trial = carry_out(scenario or find_scenario(point.scenario), point)
        return row_of(trial, judge(trial, more))


def row_of(trial: Trial, violations: tuple[Violation, ...] = ()) -> Row:
    """Return what is written down about `trial`."""
    ended = next((event for event in trial.of(RunEnded)), None) if trial.loaded is None else None
    settled = [s.event.result for s in trial.first_events if isinstance(s.event, CallSettled)]
    if trial.loaded is not None:
        settled = [result for exchange in trial.loaded.history.exchanges for result in exchange.results]
    return Row(
        trial.point,
        trial.steps,
        ended.status.value if ended else "none" if trial.loaded is None else "crashed",
        ended.reason if ended else "",
        violations,
        trial.struck_at,
        trial.quiet_at,
        trial.phase,
        trial.struck_call,
        len(trial.alive_at_end),
        dict(sorted(Counter(result.outcome.value for result in settled).items())),
        trial.trace,
    )
