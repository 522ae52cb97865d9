"""From what is wanted to blocks of points that a worker can do by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import attrs

from novacode.lab.mishaps import NO_MISHAP, Mishap, MishapKind
from novacode.lab.point import How, Point
from novacode.lab.scenario import find_scenario
from novacode.lab.schedule import Kind
from novacode.lab.trial import carry_out

__all__ = ["ALL_MISHAPS", "Block", "Plan", "blocks_of", "mishaps_of"]

ALL_MISHAPS = "all"


@attrs.frozen
class Plan:
    """What is to be explored: the product of all of these. `step` is one step alone, 0 for the run nobody stops."""

    scenarios: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    schedules: tuple[Kind, ...] = (Kind.UNIFORM,)
    hows: tuple[How, ...] = tuple(How)
    step: int | None = None
    call: str = ""
    mishap: str = ""
    fault: str = ""
    invariants: tuple[str, ...] = ()


@attrs.frozen
class Block:
    """All steps of one scenario under one schedule, stopped in one way: what one worker does at a time.

    `whole` is whether the run nobody stops belongs to it, `skip` are the steps that are done already.
    """

    point: Point
    step: int | None = None
    whole: bool = False
    skip: frozenset[int] = frozenset()
    invariants: tuple[str, ...] = ()


def blocks_of(plan: Plan, done: frozenset[Point] = frozenset()) -> Iterator[Block]:
    """Yield the blocks of `plan`, without the points that are `done`. Raises what `find_scenario` does."""
    finished: dict[Point, set[int]] = {}
    for point in done:
        finished.setdefault(attrs.evolve(point, step=None), set()).add(point.step or 0)
    for scenario in plan.scenarios:
        mishaps = mishaps_of(scenario) if plan.mishap == ALL_MISHAPS else (plan.mishap,)
        for mishap, schedule, seed, how in itertools.product(mishaps, plan.schedules, plan.seeds, plan.hows):
            point = Point(scenario, seed, schedule, how, None, plan.call, mishap, plan.fault)
            alone = attrs.evolve(point, how=How.RUN, call="")
            whole = how is plan.hows[0] and plan.step in (None, 0) and 0 not in finished.get(alone, ())
            yield Block(point, plan.step, whole, frozenset(finished.get(point, ())), plan.invariants)


def mishaps_of(scenario: str) -> Sequence[str]:
    """Return every mishap that a run of `scenario` can meet, and none first; a scenario in Python has none."""
    found = find_scenario(scenario)
    if found.blueprint is None:
        return ("",)
    trial = carry_out(found, Point(scenario))
    chunks = getattr(trial.stage, "chunks", 0)
    hooks = sum(entry.startswith("pre ") for entry in trial.log)
    counts = {
        MishapKind.TOOL_RAISES: len(trial.stage.ran),
        MishapKind.HOOK_CRASH: hooks,
        MishapKind.CUT: chunks,
        MishapKind.CLOCK_JUMP: chunks,
    }
    counted = [Mishap(kind, at) for kind, count in counts.items() for at in range(1, count + 1)]
    return tuple(mishap.name for mishap in (NO_MISHAP, Mishap(MishapKind.SLOW_CLEANUP), *counted))
