"""Looking for planted faults: the proof that the invariants see something."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import attrs

from novacode.lab.perform import perform
from novacode.lab.point import How, Point, Row

__all__ = ["hunt"]

_STRIDE = 10


def hunt(fault: str, scenarios: Sequence[str], seeds: Sequence[int] = (0,)) -> Row | None:
    """Return the first point at which the runtime, broken by `fault`, breaks an invariant; `None` where it never does.

    Most faults show in a run that nobody stops; those are tried first. Then every tenth step is, in all scenarios and
    ways to stop, then the steps after them, and so on: what shows somewhere is mostly to be seen in many places.
    """
    for point in _points(fault, scenarios, seeds):
        row = perform(point)
        if row.violations:
            return row
    return None


def _points(fault: str, scenarios: Sequence[str], seeds: Sequence[int]) -> Iterator[Point]:
    whole = [Point(scenario, seed, fault=fault) for seed in seeds for scenario in scenarios]
    yield from whole
    steps = {point: perform(attrs.evolve(point, fault="")).steps for point in whole}
    for first, how, point in itertools.product(range(1, _STRIDE + 1), How, whole):
        yield from (attrs.evolve(point, how=how, step=step) for step in range(first, steps[point] + 1, _STRIDE))
