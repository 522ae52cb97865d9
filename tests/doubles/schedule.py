"""Running trio reproducibly, and stopping it at a chosen scheduling step.

Touches trio's private switch for deterministic scheduling; `test_engine_attack.py` has a canary that fails loudly if
trio renames it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing
from trio._core import _run

__all__ = ["run_seeded"]


class _AtStep(trio.abc.Instrument):
    def __init__(self, step: int | None, act: Callable[[], None]) -> None:
        self.count = 0
        self._step = step
        self._act = act

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1
        if self.count == self._step:
            self._act()


def run_seeded(
    main: Callable[[], Awaitable[Any]],
    seed: int,
    step: int | None = None,
    act: Callable[[], None] = lambda: None,
) -> int:
    """Run `main` on a virtual clock in the order `seed` gives, call `act` before scheduling step `step`.

    Returns how many steps there were.
    """
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True
    _run._r.seed(seed)
    at_step = _AtStep(step, act)
    try:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[at_step])
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = before
    return at_step.count
