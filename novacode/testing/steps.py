"""Running a test's scenario once for each of its scheduling steps, stopped there."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import attrs
import trio

from novacode.lab.explore import explore_block
from novacode.lab.plan import Plan, blocks_of
from novacode.lab.point import How, Row
from novacode.lab.schedule import Kind, Schedule, run_scheduled
from novacode.testing.scripts import ScriptedModel

__all__ = ["Made", "every_step"]

_MOST_SHOWN = 5

Made = tuple[Callable[[], Awaitable[object]], Callable[[], object]]
"""A scenario of one's own: an async function to run, and a function that checks what is left, whatever happened."""


@attrs.frozen
class _Failure:
    seed: int
    step: int | None
    error: BaseException

    def __str__(self) -> str:
        where = "nobody stopping it" if self.step is None else f"cancelled before step {self.step}"
        return f"seed {self.seed}, {where}: {type(self.error).__name__}: {self.error}"


def every_step(
    scenario: ScriptedModel | str | Callable[[], Made],
    *,
    folder: Path,
    seeds: int = 1,
    hows: Sequence[str] = ("run", "outside", "call"),
    schedule: str = "uniform",
) -> Sequence[Row]:
    """Run `scenario`, and once more for each of its scheduling steps, stopped there; fail where anything is broken.

    A scripted model (or the name of a packaged scenario, or of a file) is played on NovaCode itself with simulated
    tools, and every invariant of the lab is checked; `hows` are the ways of stopping it. Returns the lab's rows.

    A function is called once for each run, and returns a fresh `(run, check)`: `run` is awaited on a virtual clock in
    the order a seed gives, inside a cancel scope that is cancelled before one step; `check` is called afterwards, and
    fails if something is wrong. There must be no real processes, threads or network in it. Returns no rows.
    """
    __tracebackhide__ = True
    if callable(scenario):
        _own(scenario, seeds, Kind(schedule))
        return ()
    plan = Plan((_name(scenario, folder),), tuple(range(seeds)), (Kind(schedule),), tuple(map(How, hows)))
    rows = [row for block in blocks_of(plan) for row in explore_block(block)]
    broken = [row for row in rows if row.violations]
    if broken:
        shown = [f"  {row.violations[0].kind}: {row.violations[0].text}\n    {row.point.command}" for row in broken]
        raise AssertionError(_message(len(broken), len(rows), shown))
    return rows


def _name(scenario: ScriptedModel | str, folder: Path) -> str:
    if isinstance(scenario, str):
        return scenario
    digest = hashlib.blake2b(scenario.text.encode(), digest_size=4).hexdigest()
    path = folder / f"scenario-{digest}.toml"
    path.write_text(scenario.text, encoding="utf-8")
    return str(path)


def _own(make: Callable[[], Made], seeds: int, kind: Kind) -> None:
    __tracebackhide__ = True
    failures: list[_Failure] = []
    runs = 0
    for seed in range(seeds):
        steps, error = _once(make, Schedule(kind, seed), None)
        runs += 1
        if error is not None:
            failures.append(_Failure(seed, None, error))
        for step in range(1, steps + 1):
            _, error = _once(make, Schedule(kind, seed), step)
            runs += 1
            if error is not None:
                failures.append(_Failure(seed, step, error))
    if failures:
        shown = [f"  {failure}" for failure in failures]
        raise AssertionError(_message(len(failures), runs, shown)) from failures[0].error


def _once(make: Callable[[], Made], schedule: Schedule, step: int | None) -> tuple[int, BaseException | None]:
    """Return how many steps it took, and what was wrong."""
    run, check = make()
    scope = trio.CancelScope()

    async def main() -> None:
        with scope:
            await run()

    steps = 0
    try:
        ran = run_scheduled(main, schedule, {} if step is None else {step: scope.cancel})
        steps = ran.steps
        if ran.hung:
            return steps, AssertionError("it came to no end")
        check()
    except (Exception, trio.TrioInternalError) as error:  # noqa: BLE001 - whatever was wrong is told with its step
        return steps, error
    return steps, None


def _message(broken: int, runs: int, shown: Sequence[str]) -> str:
    more = len(shown) - _MOST_SHOWN
    lines = [f"{broken} of {runs} runs broke something:", *shown[:_MOST_SHOWN]]
    return "\n".join([*lines, f"  … and {more} more"] if more > 0 else lines)
