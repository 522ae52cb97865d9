"""How much more a run puts up with from its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from novacode.models.backoff import GiveUp, Stage, Wait
from novacode.values.failure import Failure

__all__ = ["Patience", "Retry"]

Retry: TypeAlias = Callable[[Stage, int, Failure], Wait | GiveUp]
"""(how far the attempt had come, how many in a row were lost there, why) -> what to do."""


class Patience:
    """Counts, for one run, the attempts that were lost in a row: requests and streams apart.

    Only a whole reply renews it. So a server that accepts every request and breaks off every reply is given up on as
    surely as one that turns every request away, and turns that go on after a broken reply count like the others.
    """

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._lost: Counter[Stage] = Counter()

    def lost(self, failure: Failure, stage: Stage) -> Wait | GiveUp:
        """Count an attempt that came to nothing, and return what to do."""
        self._lost[stage] += 1
        return self._retry(stage, self._lost[stage], failure)

    def renew(self) -> None:
        """A whole reply has come."""
        self._lost.clear()
