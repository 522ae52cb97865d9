"""The same scenarios on the trio runtime and on asyncio executors, stopped at every step, side by side."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from novacode.errors import InputError
from novacode.lab.asyncio_trial import carry_out_asyncio, judge_asyncio
from novacode.lab.asyncio_variants import VARIANTS
from novacode.lab.invariants import judge
from novacode.lab.perform import row_of
from novacode.lab.point import How, Point, Row
from novacode.lab.scenario import Scenario, find_scenario
from novacode.lab.scripted import Blueprint
from novacode.lab.trial import carry_out

__all__ = ["EXECUTORS", "PARTS", "TRIO", "Compared", "Summary", "compare", "read_compared", "summaries"]

TRIO = "trio"
EXECUTORS = (TRIO, *VARIANTS)
PARTS = 20  # of a run, for where in it the strike came


@attrs.frozen
class Compared:
    """What one run came to: a row of the lab, and what is counted beside it.

    `orphans` are tasks alive when the run had returned, `late_effects` the effects that landed after the request. An
    executor of which something stays alive for ever has no `row.latency_s`.
    """

    executor: str
    row: Row
    twice: bool = False
    orphans: int = 0
    late_effects: int = 0

    @property
    def command(self) -> str:
        """The command line that does exactly this again."""
        point = self.row.point
        words = ["novacode", "lab", "compare", point.scenario, "--executor", self.executor]
        words += ["--seed", str(point.seed), "--step", str(point.step or 0), *["--twice"][: self.twice]]
        return shlex.join(words)

    def dump(self) -> dict[str, Any]:
        """Return it as one flat JSON object: the row, and more."""
        more = {
            "executor": self.executor,
            "twice": self.twice,
            "orphans": self.orphans,
            "late_effects": self.late_effects,
        }
        return self.row.dump() | more | ({"command": self.command} if self.row.violations else {})

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Compared:
        """Return what `dump` wrote. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        return cls(data["executor"], Row.load(data), data["twice"], data["orphans"], data["late_effects"])


@attrs.frozen
class Summary:
    """All runs of one executor. `kinds` counts violating runs by kind, `phases` by kind and phase of the strike.

    `points` has, for each of `PARTS` equal parts of a run's steps, the runs struck there and how many of them violate.
    """

    executor: str
    runs: int
    violating: int
    kinds: Mapping[str, int]
    phases: Mapping[tuple[str, str], int]
    orphans: int
    late_effects: int
    never_quiet: int
    latencies: tuple[float, ...]
    points: tuple[tuple[int, int], ...] = ()

    def latency(self, share: float) -> float | None:
        """Return the latency that `share` of the runs do not exceed; `None` where none was struck."""
        if not self.latencies:
            return None
        return self.latencies[max(0, math.ceil(share * len(self.latencies)) - 1)]


def compare(
    scenario: str, executor: str, seeds: Sequence[int] = (0,), step: int | None = None, *, twice: bool = False
) -> Iterator[Compared]:
    """Yield a run of `scenario` on `executor` that nobody stops, and one stopped at each of its steps.

    `step` is one alone, 0 for the run nobody stops. Seeds order the tasks of trio; asyncio takes them first come first
    served, so the first seed stands for all. Raises `InputError` for a scenario that is not a script.
    """
    found = find_scenario(scenario)
    blueprint = _blueprint(found)
    for seed in seeds if executor == TRIO else seeds[:1]:
        whole = _run(found, blueprint, executor, seed, None, twice=twice)
        if not step:
            yield whole
        for at in range(1, whole.row.steps + 1) if step is None else [step][: bool(step)]:
            yield _run(found, blueprint, executor, seed, at, twice=twice)


def _run(
    scenario: Scenario, blueprint: Blueprint, executor: str, seed: int, step: int | None, *, twice: bool
) -> Compared:
    if executor == TRIO:
        return _on_trio(scenario, seed, step, twice=twice)
    trial = carry_out_asyncio(blueprint, executor, step, twice=twice)
    row = Row(
        _point(scenario, seed, step),
        trial.steps,
        trial.status,
        "" if trial.raised is None else repr(trial.raised),
        judge_asyncio(trial),
        trial.struck_at,
        trial.quiet_at,
        trial.phase,
        alive=trial.alive_at_end,
        outcomes=dict(sorted(Counter(result.outcome for result in trial.results).items())),
        trace=trial.trace,
    )
    return Compared(executor, row, twice, len(trial.orphans), trial.late_effects)


def _point(scenario: Scenario, seed: int, step: int | None) -> Point:
    """Return the point at which all executors are stopped alike: from outside, by cancelling what runs them."""
    return Point(scenario.name, seed, how=How.OUTSIDE if step else How.RUN, step=step)


def _on_trio(scenario: Scenario, seed: int, step: int | None, *, twice: bool) -> Compared:
    """Stop the runtime. A second request changes nothing there: a scope that is cancelled stays so."""
    trial = carry_out(scenario, _point(scenario, seed, step))
    late = trial.written_at_end - trial.written_at_strike if trial.struck else 0
    row = row_of(trial, judge(trial))
    return Compared(TRIO, row, twice, row.alive + max(0, trial.tasks_left), late)


def _blueprint(scenario: Scenario) -> Blueprint:
    if scenario.blueprint is None:
        raise InputError(f"the scenario {scenario.name!r} is in Python; only scripts can be played on other executors")
    return scenario.blueprint


def summaries(rows: Iterable[Compared]) -> list[Summary]:
    """Return a summary of each executor in `rows`, in the order of `EXECUTORS`."""
    by_name: dict[str, list[Compared]] = {}
    for row in rows:
        by_name.setdefault(row.executor, []).append(row)
    return [_summary(name, by_name[name]) for name in EXECUTORS if name in by_name]


def _summary(name: str, compared: Sequence[Compared]) -> Summary:
    kinds: Counter[str] = Counter()
    phases: Counter[tuple[str, str]] = Counter()
    rows = [each.row for each in compared]
    for row in rows:
        for kind in {violation.kind for violation in row.violations}:
            kinds[kind] += 1
            phases[kind, row.phase or "its own end"] += 1
    struck = [row for row in rows if row.struck_at is not None]
    return Summary(
        name,
        len(rows),
        sum(bool(row.violations) for row in rows),
        dict(kinds.most_common()),
        dict(phases.most_common()),
        sum(each.orphans for each in compared),
        sum(each.late_effects for each in compared),
        sum(row.latency_s is None for row in struck),
        tuple(sorted(row.latency_s for row in struck if row.latency_s is not None)),
        _points(rows),
    )


def _points(rows: Sequence[Row]) -> tuple[tuple[int, int], ...]:
    """Return the runs struck, and those of them that broke something, in each twentieth of their runs' steps."""
    most = {row.point.scenario: row.steps for row in rows if row.point.step is None}
    struck, broken = Counter[int](), Counter[int]()
    for row in rows:
        if row.struck_at is not None and row.point.step is not None:
            share = (row.point.step - 1) / max(1, most.get(row.point.scenario, row.steps))
            at = min(PARTS - 1, int(share * PARTS))
            struck[at] += 1
            broken[at] += bool(row.violations)
    return tuple((struck[at], broken[at]) for at in range(PARTS))


def read_compared(text: str, source: str) -> list[Compared]:
    """Return the rows that JSON lines hold. Raises `InputError` that names the line which is none."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(Compared.load(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{source}, line {number} is no row of a comparison: {error!r}") from error
    return rows
