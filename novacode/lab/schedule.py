"""Running trio reproducibly on a virtual clock, and doing something at a chosen scheduling step."""

from __future__ import annotations

import enum
import math
import random  # noqa: TID251 - the type of what orders the tasks
from collections.abc import Awaitable, Callable
from typing import Any, assert_never

import attrs
import trio
import trio.testing

from novacode.app.scheduling import Priorities, Uniform, scheduled_by

__all__ = ["HORIZON", "Kind", "Ran", "Schedule", "run_scheduled"]

HORIZON = 1e7
"""Seconds of virtual time after which a run counts as hung. Nothing in a scenario takes as long."""

_MOST_STEPS = 100_000  # a run that takes more goes round in circles; the longest of our scenarios take some hundred


class Kind(enum.StrEnum):
    """How the order of ready tasks is drawn."""

    UNIFORM = "uniform"
    PCT = "pct"


@attrs.frozen
class Schedule:
    """One order of everything: a kind and a seed."""

    kind: Kind = Kind.UNIFORM
    seed: int = 0

    def chooser(self) -> random.Random:
        """Return a new generator that gives this order."""
        match self.kind:
            case Kind.UNIFORM:
                return Uniform(self.seed)
            case Kind.PCT:
                return Priorities(self.seed)
            case _:
                assert_never(self.kind)


@attrs.frozen
class Ran:
    """How it went: how many scheduling steps, and whether it had to be ended because it came to no end."""

    steps: int
    hung: bool


class _Steps(trio.abc.Instrument):
    """Counts steps, acts before one of them, and ends what goes round in circles."""

    def __init__(self, acts: dict[int, Callable[[], object]], guard: trio.CancelScope) -> None:
        self.count = 0
        self._acts = acts
        self._guard = guard

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1
        if self.count in self._acts:
            self._acts[self.count]()
        elif self.count == _MOST_STEPS:
            self._guard.cancel()


def run_scheduled(
    main: Callable[[], Awaitable[Any]], schedule: Schedule, acts: dict[int, Callable[[], object]] | None = None
) -> Ran:
    """Run `main` on a virtual clock in the order of `schedule`; `acts` are called before the steps they stand for.

    Steps count from 1. What raises is raised; trio's scheduling is afterwards as it was. What an act raises is lost
    to trio's log, so an act must not raise. Real time must not matter to `main`: no processes, no threads, no network.
    """
    guard = trio.CancelScope(deadline=math.inf)
    steps = _Steps(acts or {}, guard)

    async def guarded() -> None:
        guard.deadline = trio.current_time() + HORIZON
        with guard:
            await main()

    with scheduled_by(schedule.chooser()):
        trio.run(guarded, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[steps])
    return Ran(steps.count, guard.cancelled_caught)
