"""What a report is made of: rows of explorations, sweeps and comparisons, read from their files and counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from novacode.errors import InputError
from novacode.lab.compare import TRIO, Compared
from novacode.lab.phases import PHASES
from novacode.lab.point import How, Row

__all__ = [
    "Broken",
    "Data",
    "Map",
    "Reading",
    "Tried",
    "broken",
    "by_phase",
    "chosen_runs",
    "family",
    "maps_of",
    "read_data",
    "tried_faults",
]

_MOST_SEEDS = 40  # rows of one map
_NO_COMMAND = "(real processes: nothing does exactly this again)"


@attrs.frozen
class Data:
    """All rows of the files that were read. `sources` are their names; `real` are those of runs in real time."""

    sources: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    compared: tuple[Compared, ...] = ()
    real: tuple[Row, ...] = ()


@attrs.define
class Reading:
    """Collects rows of all forms."""

    rows: list[Row] = attrs.field(factory=list)
    real: list[Row] = attrs.field(factory=list)
    compared: list[Compared] = attrs.field(factory=list)

    def take(self, data: Mapping[str, Any]) -> None:
        """Take one row. Raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        if "executor" in data:
            self.compared.append(Compared.load(data))
        else:
            (self.real if data.get("real") else self.rows).append(Row.load(data))


def read_data(paths: Sequence[Path]) -> Data:
    """Return the rows in `paths`, each of them JSON lines of one form or the other; half a last line is left out.

    Raises `InputError` that names the file and the line which is no row, or the file that cannot be read.
    """
    reading = Reading()
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
            try:
                reading.take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path}, line {number} is no row of the lab: {error!r}") from error
    if not (reading.rows or reading.compared or reading.real):
        named = ", ".join(map(str, paths))
        raise InputError(f"there is no row in {named}: `novacode lab explore … --out FILE` writes some")
    names = tuple(path.name for path in paths)
    return Data(names, tuple(reading.rows), tuple(reading.compared), tuple(reading.real))


def family(scenario: str) -> str:
    """Return the name of a scenario without the number that its durations are drawn with.

    A sweep gives every run a variant of its own; a map or a line for each would say nothing.
    """
    base, _, query = scenario.partition("?")
    kept = [part for part in query.split("&") if part and not part.startswith("draw=")]
    return f"{base}?{'&'.join(kept)}" if kept else base


@attrs.frozen
class Map:
    """What became of a scenario, by seed and by step. `cells` has `(seed, step)` -> status, or `violated`."""

    scenario: str
    how: How
    cells: Mapping[tuple[int, int], str]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds there are, at most as many as can be looked at."""
        return tuple(sorted({seed for seed, _ in self.cells}))[:_MOST_SEEDS]

    @property
    def seeds_left(self) -> int:
        """How many seeds are not among them."""
        return len({seed for seed, _ in self.cells}) - len(self.seeds)

    @property
    def steps(self) -> int:
        """The last step there is."""
        return max(step for _, step in self.cells)

    @property
    def statuses(self) -> Counter[str]:
        """How many cells there are of each status."""
        return Counter(self.cells.values())


def maps_of(rows: Iterable[Row]) -> list[Map]:
    """Return a map for each scenario, of the way of stopping of which it has the most runs; planted faults apart."""
    cells: dict[str, dict[How, dict[tuple[int, int], str]]] = {}
    for row in rows:
        point = row.point
        if point.step is not None and row.struck_at is not None:
            name = f"{family(point.scenario)} with the fault {point.fault}" if point.fault else family(point.scenario)
            of = cells.setdefault(name, {}).setdefault(point.how, {})
            key = (point.seed, point.step)
            if of.get(key) != "violated":
                of[key] = "violated" if row.violations else row.status
    return [_fullest(scenario, hows) for scenario, hows in sorted(cells.items())]


def _fullest(scenario: str, hows: Mapping[How, Mapping[tuple[int, int], str]]) -> Map:
    how = max(hows, key=lambda each: (len(hows[each]), each is How.RUN))
    return Map(scenario, how, hows[how])


def by_phase(rows: Iterable[Row]) -> dict[str, list[float]]:
    """Return the latencies of the runs that were struck, sorted, by what they were at."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.phase and row.latency_s is not None:
            found.setdefault(row.phase, []).append(row.latency_s)
    return {phase: sorted(found[phase]) for phase in PHASES if phase in found}


@attrs.frozen
class Broken:
    """Runs of one scenario, or one planted fault or executor, that broke one invariant, with the first of them.

    `phases` counts them by what they were at when they were stopped. `own`: the runtime did it, as it is.
    """

    where: str
    kind: str
    runs: int
    text: str
    command: str
    phases: Mapping[str, int] = attrs.field(factory=dict)
    own: bool = False


def broken(data: Data) -> list[Broken]:
    """Return what was broken: by the runtime first, scenario by scenario, then with faults planted, then by others."""
    first: dict[tuple[int, str, str], tuple[str, str]] = {}
    phases: dict[tuple[int, str, str], Counter[str]] = {}
    for rank, where, row, command in _judged(data):
        for violation in row.violations:
            first.setdefault((rank, where, violation.kind), (violation.text, command))
        for kind in {violation.kind for violation in row.violations}:
            phases.setdefault((rank, where, kind), Counter())[row.phase or "its own end"] += 1
    ordered = sorted(first, key=lambda key: (key[0], key[1], -phases[key].total(), key[2]))
    return [_broken(key, phases[key], *first[key]) for key in ordered]


def _broken(key: tuple[int, str, str], phases: Counter[str], text: str, command: str) -> Broken:
    rank, where, kind = key
    return Broken(where, kind, phases.total(), text, command, dict(phases.most_common()), own=not rank)


def _judged(data: Data) -> Iterator[tuple[int, str, Row, str]]:
    """Yield the rows that violate, and in which part of the table, where, and with which command."""
    for row in (row for row in data.rows if row.violations):
        fault = row.point.fault
        where = f"planted fault {fault}" if fault else family(row.point.scenario)
        yield int(bool(fault)), where, row, row.point.command
    for row in (row for row in data.real if row.violations):
        yield 0, f"{family(row.point.scenario)}, in real time", row, _NO_COMMAND
    for each in (each for each in data.compared if each.row.violations):
        own = each.executor == TRIO
        yield 0 if own else 2, each.row.point.scenario if own else each.executor, each.row, each.command


@attrs.frozen
class Tried:
    """A fault that was planted: in how many runs, how many of them broke an invariant, and which."""

    name: str
    runs: int
    found: int
    kinds: tuple[str, ...]


def tried_faults(rows: Iterable[Row]) -> list[Tried]:
    """Return every fault that was planted in `rows`; those that nothing was seen of first."""
    runs, found = Counter[str](), Counter[str]()
    kinds: dict[str, set[str]] = {}
    for row in rows:
        if fault := row.point.fault:
            runs[fault] += 1
            found[fault] += bool(row.violations)
            kinds.setdefault(fault, set()).update(violation.kind for violation in row.violations)
    tried = [Tried(name, runs[name], found[name], tuple(sorted(kinds[name]))) for name in sorted(runs)]
    return sorted(tried, key=lambda each: each.found > 0)


def chosen_runs(rows: Sequence[Row], most: int) -> list[tuple[str, Row]]:
    """Return runs worth looking at, each with why: what broke something, what took longest, what was in the middle."""
    struck = sorted((row for row in rows if row.latency_s is not None), key=lambda row: row.latency_s or 0.0)
    wanted = [("it broke something", row) for row in rows if row.violations][:1]
    if struck:
        wanted.append(("it took longest to stop", struck[-1]))
        busy = [row for row in struck if row.phase == "running"] or struck
        wanted.append(("of the runs with tools under way, half stopped sooner", busy[len(busy) // 2]))
    wanted += [("nobody stopped it", row) for row in rows if row.point.step is None][:1]
    seen, chosen = set(), []
    for why, row in wanted:
        if row.point not in seen:
            seen.add(row.point)
            chosen.append((why, row))
    return chosen[:most]
