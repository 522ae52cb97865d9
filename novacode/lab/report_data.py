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
from novacode.lab.point import How, Row, Violation

__all__ = ["Broken", "Data", "Map", "Reading", "broken", "by_phase", "chosen_runs", "maps_of", "read_data"]

_MOST_SEEDS = 40  # rows of one map


@attrs.frozen
class Data:
    """All rows of the files that were read. `sources` are their names."""

    sources: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    compared: tuple[Compared, ...] = ()


@attrs.define
class Reading:
    """Collects rows of both forms."""

    rows: list[Row] = attrs.field(factory=list)
    compared: list[Compared] = attrs.field(factory=list)

    def take(self, data: Mapping[str, Any]) -> None:
        """Take one row. Raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        if "executor" in data:
            self.compared.append(Compared.load(data))
        else:
            self.rows.append(Row.load(data))


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
    if not reading.rows and not reading.compared:
        named = ", ".join(map(str, paths))
        raise InputError(f"there is no row in {named}: `novacode lab explore … --out FILE` writes some")
    return Data(tuple(path.name for path in paths), tuple(reading.rows), tuple(reading.compared))


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
    def steps(self) -> int:
        """The last step there is."""
        return max(step for _, step in self.cells)

    @property
    def statuses(self) -> Counter[str]:
        """How many cells there are of each status."""
        return Counter(self.cells.values())


def maps_of(rows: Iterable[Row]) -> list[Map]:
    """Return a map for each scenario, of the way of stopping of which it has the most runs."""
    cells: dict[str, dict[How, dict[tuple[int, int], str]]] = {}
    for row in rows:
        point = row.point
        if point.step is not None and row.struck_at is not None:
            of = cells.setdefault(point.scenario, {}).setdefault(point.how, {})
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

    `own`: the runtime did it, as it is.
    """

    where: str
    kind: str
    runs: int
    text: str
    command: str
    own: bool = False


def broken(data: Data) -> list[Broken]:
    """Return what was broken: by the runtime first, scenario by scenario, then with faults planted, then by others."""
    first: dict[tuple[int, str, str], tuple[str, str]] = {}
    count: Counter[tuple[int, str, str]] = Counter()
    for rank, where, violations, command in _judged(data):
        for violation in violations:
            key = (rank, where, violation.kind)
            first.setdefault(key, (violation.text, command))
        count.update({(rank, where, violation.kind) for violation in violations})
    ordered = sorted(first, key=lambda key: (key[0], key[1], -count[key]))
    return [Broken(key[1], key[2], count[key], *first[key], own=not key[0]) for key in ordered]


def _judged(data: Data) -> Iterator[tuple[int, str, Sequence[Violation], str]]:
    for row in data.rows:
        if row.violations:
            fault = row.point.fault
            where = f"planted fault {fault}" if fault else row.point.scenario
            yield int(bool(fault)), where, row.violations, row.point.command
    for compared in data.compared:
        if compared.violations:
            own = compared.executor == TRIO
            yield (
                0 if own else 2,
                compared.scenario if own else compared.executor,
                compared.violations,
                compared.command,
            )


def chosen_runs(rows: Sequence[Row], most: int) -> list[tuple[str, Row]]:
    """Return runs worth looking at, each with why: what broke something, what took longest, what was in the middle."""
    struck = sorted((row for row in rows if row.latency_s is not None), key=lambda row: row.latency_s or 0.0)
    wanted = [("it broke something", row) for row in rows if row.violations][:1]
    if struck:
        wanted.append(("it took longest to stop", struck[-1]))
        wanted.append(("half of all runs stopped sooner", struck[len(struck) // 2]))
    wanted += [("nobody stopped it", row) for row in rows if row.point.step is None][:1]
    seen, chosen = set(), []
    for why, row in wanted:
        if row.point not in seen:
            seen.add(row.point)
            chosen.append((why, row))
    return chosen[:most]
