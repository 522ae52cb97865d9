"""Trio's private switch for deterministic scheduling: the one module that touches it.

Trio shuffles each batch of tasks that are ready. With the switch it sorts them first, by age, and shuffles with its
own generator, so that one seed gives one order. The names are private; a test fails loudly where they have gone.
"""

from __future__ import annotations

import random  # noqa: TID251 - a chooser is a generator that is handed its seed
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from typing import Any

from trio._core import _run

__all__ = ["Priorities", "Uniform", "scheduled_by", "seed_scheduler"]

_SWITCH = "_ALLOW_DETERMINISTIC_SCHEDULING"
_CHOOSER = "_r"


def seed_scheduler(seed: int) -> None:
    """Make every later `trio.run` of this process schedule in the order that `seed` gives."""
    vars(_run)[_SWITCH] = True
    _run._r.seed(seed)


@contextmanager
def scheduled_by(chooser: random.Random) -> Iterator[None]:
    """Let `chooser` order every batch of ready tasks in the body; afterwards everything is as it was.

    Its `shuffle` is handed each batch, oldest task first; the task that it puts last runs first.
    """
    names = vars(_run)
    before = {name: names[name] for name in (_SWITCH, _CHOOSER)}
    names.update({_SWITCH: True, _CHOOSER: chooser})
    try:
        yield
    finally:
        names.update(before)


class Uniform(random.Random):
    """Every order of a batch is as likely as any other, each time anew."""


class Priorities(random.Random):
    """Each task has a priority for as long as it lives, and a few times the one about to run loses its own.

    After PCT (Burckhardt et al., ASPLOS 2010): what needs one task to be late all along shows under one schedule in
    as many as there are tasks, where fair shuffling would need luck at every step. Only the order within a batch is
    chosen, so every schedule is one that trio itself may give. How long a run will be is not known beforehand: the
    `changes` steps are drawn evenly over its orders of magnitude, up to a thousand.
    """

    def __init__(self, seed: int, changes: int = 3) -> None:
        super().__init__(seed)
        self._priority: dict[int, float] = {}
        self._steps = 0
        self._lowest = 0.0
        self._changes = sorted(int(2 ** self.uniform(0, 10)) for _ in range(changes))

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Order the batch `x`, the highest priority last."""
        ages = [task._counter for task in x]
        for age in ages:
            if age not in self._priority:
                self._priority[age] = self.random()
        self._steps += len(ages)
        while self._changes and self._changes[0] <= self._steps:
            self._changes.pop(0)
            self._lowest -= 1.0
            self._priority[max(ages, key=self._priority.__getitem__)] = self._lowest
        ordered = sorted(x, key=lambda task: self._priority[task._counter])
        x[:] = ordered
