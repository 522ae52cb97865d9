"""Running trio reproducibly, by the lab's own means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from novacode.lab.schedule import Schedule, run_scheduled

__all__ = ["run_seeded"]


def run_seeded(
    main: Callable[[], Awaitable[Any]],
    seed: int,
    step: int | None = None,
    act: Callable[[], None] = lambda: None,
) -> int:
    """Run `main` on a virtual clock in the order `seed` gives, call `act` before scheduling step `step`.

    Returns how many steps there were.
    """
    return run_scheduled(main, Schedule(seed=seed), {} if step is None else {step: act}).steps
