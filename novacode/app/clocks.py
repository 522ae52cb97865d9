"""What time it is: for stamps, durations and limits of a run."""

from __future__ import annotations

import time

import trio

__all__ = ["ScriptClock", "WallClock"]


class WallClock:
    """Seconds since 1970, anchored once: later steps of the system clock do not show in durations."""

    def __init__(self) -> None:
        self._anchor: float | None = None

    def __call__(self) -> float:
        """Return the time. Only inside `trio.run`."""
        now = trio.current_time()
        if self._anchor is None:
            self._anchor = time.time() - now  # noqa: TID251 - the one place that asks the system
        return self._anchor + now


class ScriptClock:
    """The time of a script: the sum of its pauses so far. The same in every run, on every machine."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def set(self, now: float) -> None:
        """Take the time from the script."""
        self.now = now
