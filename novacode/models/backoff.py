"""How long to wait before asking again, and when to stop. Pure: chance is a number that is handed in."""

from __future__ import annotations

import enum

import attrs

from novacode.values.failure import Failure

__all__ = ["GiveUp", "RetryLimits", "Stage", "Wait", "decide"]


class Stage(enum.StrEnum):
    """How far an attempt had come when it was lost.

    The two have budgets of their own. A request that is turned away has cost the provider nothing and mostly means that
    it is busy; a reply that breaks off has cost its tokens each time, and one that always does will go on doing so.
    """

    REQUEST = "request"
    STREAM = "stream"


@attrs.frozen
class RetryLimits:
    """How patient a run is with its model.

    `requests` and `streams` are how often in a row it asks again after each kind of loss. Waits grow from `base` by
    doubling and stop growing at `ceiling`; `longest` is the longest wait a provider may ask for (seconds, all three).
    """

    requests: int = attrs.field(default=8, validator=attrs.validators.ge(0))
    streams: int = attrs.field(default=5, validator=attrs.validators.ge(0))
    base: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    ceiling: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    longest: float = attrs.field(default=120.0, validator=attrs.validators.ge(0))

    def budget(self, stage: Stage) -> int:
        """Return how often an attempt that was lost at `stage` is made again."""
        return self.requests if stage is Stage.REQUEST else self.streams


@attrs.frozen
class Wait:
    """Ask again after so many seconds."""

    seconds: float


@attrs.frozen
class GiveUp:
    """Do not ask again. `why` is for people, and empty where the failure itself says that asking again is pointless."""

    why: str = ""


def decide(stage: Stage, times: int, failure: Failure, jitter: float, limits: RetryLimits) -> Wait | GiveUp:
    """Return what to do about the attempt that failed with `failure`, the `times`-th in a row lost at `stage`.

    `jitter` is between 0 and 1 and spreads clients that fail together: an own wait is between half of it and all of
    it. Where the provider names a time, that time rules: the wait is never shorter, and longer by a tenth at most. One
    that asks for more than `limits.longest` means giving up, and the answer says for how long it would have been.
    """
    if not failure.retryable:
        return GiveUp()
    told = failure.retry_after or 0.0
    if told > limits.longest:
        return GiveUp(f"it asks to wait {told:.0f} s; the longest wait is {limits.longest:g} s")
    if times > limits.budget(stage):
        return GiveUp(f"given up after {times} attempts" if times > 1 else "")
    if told > 0:
        return Wait(told * (1 + jitter / 10))
    doublings = min(times - 1, 32)  # 2.0**1024 does not exist, and the ceiling is reached long before
    return Wait(min(limits.ceiling, limits.base * 2.0**doublings) * (0.5 + jitter / 2))
