"""Many runs over many parameters: what is varied, the points that come of it, and what is written down about each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import attrs

from novacode.lab.point import How, Row
from novacode.lab.schedule import Kind
from novacode.lab.variants import Variant

__all__ = ["ANY", "NONE", "Experiment", "SweepPoint", "Swept", "points_of"]

ANY = "any"
NONE = "none"


@attrs.frozen
class SweepPoint:
    """One run. `phase` is what it shall be at when it is stopped: one of the lab's phases, `any`, or `none`.

    Which of the steps of that phase it is, is drawn with `seed`, and so are the durations of the variant. `real` is
    whether it runs in real time, with real processes.
    """

    scenario: str
    seed: int
    variant: Variant
    phase: str = ANY
    how: How = How.RUN
    schedule: Kind = Kind.UNIFORM
    real: bool = False

    @property
    def name(self) -> str:
        """The scenario's name, with its parameters."""
        return self.variant.named(self.scenario)


@attrs.frozen
class Swept:
    """What a run came to. Where the run is never at the wanted phase nothing was struck, and `row.phase` is empty."""

    point: SweepPoint
    row: Row

    def dump(self) -> dict[str, Any]:
        """Return it as one flat JSON object: a row of the lab, and the parameters beside it."""
        variant = self.point.variant
        parameters = {
            "base": self.point.scenario,
            "calls": variant.calls,
            "takes": variant.takes,
            "cleanup": variant.cleanup,
            "grace": variant.grace,
            "wanted_phase": self.point.phase,
            "real": self.point.real,
        }
        return self.row.dump() | parameters

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Swept:
        """Return what `dump` wrote. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        row = Row.load(data)
        draw = row.point.seed if data["takes"] or data["cleanup"] else 0
        variant = Variant(data["calls"], data["takes"], data["cleanup"], data["grace"], draw)
        point = row.point
        return cls(
            SweepPoint(
                data["base"],
                point.seed,
                variant,
                data["wanted_phase"],
                How(data["how"]),
                point.schedule,
                bool(data["real"]),
            ),
            row,
        )


@attrs.frozen
class Experiment:
    """What is varied: the product of all of these."""

    scenarios: tuple[str, ...]
    seeds: int = 1
    calls: tuple[int | None, ...] = (None,)
    takes: tuple[str, ...] = ("",)
    cleanups: tuple[str, ...] = ("",)
    graces: tuple[float | None, ...] = (None,)
    phases: tuple[str, ...] = (ANY,)
    how: How = How.RUN
    schedule: Kind = Kind.UNIFORM
    real: bool = False


def points_of(experiment: Experiment) -> list[SweepPoint]:
    """Return every point of `experiment`, in the order in which its rows are written."""
    product = itertools.product(
        experiment.scenarios,
        experiment.calls,
        experiment.takes,
        experiment.cleanups,
        experiment.graces,
        experiment.phases,
        range(experiment.seeds),
    )
    return [
        SweepPoint(
            scenario,
            seed,
            Variant(calls, takes, cleanup, grace, seed if takes or cleanup else 0),
            phase,
            experiment.how,
            experiment.schedule,
            experiment.real,
        )
        for scenario, calls, takes, cleanup, grace, phase, seed in product
    ]
