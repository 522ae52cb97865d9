"""How long to wait before asking again, and when to stop. Pure: chance is a number that is handed in."""

from __future__ import annotations

import attrs

from novacode.values.failure import Failure

__all__ = ["RetryLimits", "delay"]


@attrs.frozen
class RetryLimits:
    """How patient a run is with its model.

    `attempts` counts all of them, the first included. Waits grow from `base` by doubling and stop growing at `ceiling`;
    `longest` is the longest wait a provider may ask for (seconds, all three).
    """

    attempts: int = attrs.field(default=5, validator=attrs.validators.ge(1))
    base: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    ceiling: float = attrs.field(default=30.0, validator=attrs.validators.ge(0))
    longest: float = attrs.field(default=120.0, validator=attrs.validators.ge(0))


DEFAULT = RetryLimits()


def delay(attempt: int, failure: Failure, jitter: float, limits: RetryLimits = DEFAULT) -> float | None:
    """Return the seconds to wait after `attempt` (1 is the first) failed with `failure`; `None` to give up.

    `jitter` is between 0 and 1 and spreads clients that fail together: an own wait is between half of it and all of
    it. Where the provider names a time, that time rules: the wait is never shorter, and longer by a tenth at most. One
    that asks for more than `limits.longest` means give up, and the caller says for how long it would have been.
    """
    if not failure.retryable or attempt >= limits.attempts:
        return None
    told = failure.retry_after or 0.0
    if told > limits.longest:
        return None
    if told > 0:
        return told * (1 + jitter / 10)
    doublings = min(attempt - 1, 32)  # 2.0**1024 does not exist, and the ceiling is reached long before
    return min(limits.ceiling, limits.base * 2.0**doublings) * (0.5 + jitter / 2)
