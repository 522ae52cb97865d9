"""The same scenarios on the trio runtime and on asyncio executors, stopped at every step, side by side."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from novacode.errors import InputError
from novacode.lab.asyncio_reference import VARIANTS
from novacode.lab.asyncio_trial import AsyncioTrial, carry_out_asyncio, judge_asyncio
from novacode.lab.invariants import judge
from novacode.lab.perform import row_of
from novacode.lab.point import How, Point, Violation
from novacode.lab.scenario import Scenario, find_scenario
from novacode.lab.scripted import Blueprint
from novacode.lab.trial import carry_out

__all__ = ["EXECUTORS", "TRIO", "Compared", "Summary", "compare", "read_compared", "summaries"]

TRIO = "trio"
EXECUTORS = (TRIO, *VARIANTS)


@attrs.frozen
class Compared:
    """What one run came to. Times are seconds of virtual time; `latency_s` is from the request to stop to quiet.

    `orphans` are tasks alive when the run had returned, `late_effects` the effects that landed after the request. An
    executor of which something stays alive for ever has no `latency_s`.
    """

    executor: str
    scenario: str
    seed: int
    step: int | None
    twice: bool
    steps: int
    status: str
    phase: str = ""
    struck_at: float | None = None
    latency_s: float | None = None
    orphans: int = 0
    late_effects: int = 0
    violations: tuple[Violation, ...] = ()

    @property
    def command(self) -> str:
        """The command line that does exactly this again."""
        words = f"novacode lab compare {self.scenario} --executor {self.executor} --seed {self.seed}"
        return f"{words} --step {self.step or 0}{' --twice' if self.twice else ''}"

    def dump(self) -> dict[str, Any]:
        """Return it as one flat JSON object."""
        data = attrs.asdict(self)
        return data | ({"command": self.command} if self.violations else {})

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Compared:
        """Return what `dump` wrote. Raises `KeyError` or `TypeError` for anything else."""
        fields = {field.name: data[field.name] for field in attrs.fields(cls)}
        return cls(**{**fields, "violations": tuple(Violation(**item) for item in data["violations"])})


@attrs.frozen
class Summary:
    """All runs of one executor. `kinds` counts violating runs by kind, `phases` by kind and phase of the strike."""

    executor: str
    runs: int
    violating: int
    kinds: Mapping[str, int]
    phases: Mapping[tuple[str, str], int]
    orphans: int
    late_effects: int
    never_quiet: int
    latencies: tuple[float, ...]

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
        for at in range(1, whole.steps + 1) if step is None else [step][: bool(step)]:
            yield _run(found, blueprint, executor, seed, at, twice=twice)


def _run(
    scenario: Scenario, blueprint: Blueprint, executor: str, seed: int, step: int | None, *, twice: bool
) -> Compared:
    if executor == TRIO:
        return _on_trio(scenario, seed, step, twice=twice)
    trial = carry_out_asyncio(blueprint, executor, step, twice=twice)
    return Compared(
        executor,
        scenario.name,
        seed,
        step,
        twice,
        trial.steps,
        trial.status,
        trial.phase,
        trial.struck_at,
        _latency(trial),
        len(trial.orphans),
        trial.late_effects,
        judge_asyncio(trial),
    )


def _latency(trial: AsyncioTrial) -> float | None:
    if trial.struck_at is None or trial.quiet_at is None:
        return None
    return round(trial.quiet_at - trial.struck_at, 9)


def _on_trio(scenario: Scenario, seed: int, step: int | None, *, twice: bool) -> Compared:
    """Stop the runtime as the asyncio executors are stopped: from outside, by the scope around the run.

    A second request changes nothing there: a scope that is cancelled stays so.
    """
    trial = carry_out(scenario, Point(scenario.name, seed, how=How.OUTSIDE if step else How.RUN, step=step))
    row = row_of(trial, judge(trial))
    late = trial.written_at_end - trial.written_at_strike if trial.struck else 0
    return Compared(
        TRIO,
        scenario.name,
        seed,
        step,
        twice,
        row.steps,
        row.status,
        row.phase,
        row.struck_at,
        row.latency_s,
        row.alive + max(0, trial.tasks_left),
        late,
        row.violations,
    )


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


def _summary(name: str, rows: Sequence[Compared]) -> Summary:
    kinds: Counter[str] = Counter()
    phases: Counter[tuple[str, str]] = Counter()
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
        sum(row.orphans for row in rows),
        sum(row.late_effects for row in rows),
        sum(row.latency_s is None for row in struck),
        tuple(sorted(row.latency_s for row in struck if row.latency_s is not None)),
    )


def read_compared(text: str, source: str) -> list[Compared]:
    """Return the rows that JSON lines hold. Raises `InputError` that names the line which is none."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(Compared.load(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{source}, line {number} is no row of a comparison: {error!r}") from error
    return rows
