"""How far a run may go, and what its next step is after a turn. Decisions only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from novacode.engine.reply import Lost
from novacode.engine.turn import TurnOutcome
from novacode.values.events import RunStatus
from novacode.values.failure import Failure
from novacode.values.parts import BrokenCall
from novacode.values.request import StopReason, Usage

__all__ = ["Ending", "Limits", "NextStep", "Progress", "Step"]


@attrs.frozen
class Limits:
    """`None` means no limit. `max_seconds` is wall time from the prompt on, waiting for people included.

    `continuations`, `pauses` and `empties` bound how often in a row a run goes on after a cut answer, a paused one
    and an empty one, `stop_hooks` how often because a hook wants it to, so that nothing can keep it going for ever.
    """

    max_turns: int | None = None
    max_seconds: float | None = None
    max_output_tokens: int | None = None
    max_budget_usd: float | None = None
    continuations: int = 3
    pauses: int = 10
    empties: int = 2
    stop_hooks: int = 8


@attrs.frozen
class Ending:
    """How a run ends. `reason` is one word of a documented list, `text` a sentence for people."""

    status: RunStatus
    reason: str
    text: str = ""
    failure: Failure | None = None


@attrs.frozen
class Step:
    """Go on, having said `nudge` to the model where there is something to say.

    `delay` are the seconds to wait after a response that broke off, `None` where none did; `why` it did.
    """

    delay: float | None = None
    nudge: str = ""
    why: str = ""


NextStep = Ending | Step

_CUT = "Your answer was cut off by the output limit. Go on exactly where it stopped."
_CUT_CALL = "Your call was cut off by the output limit. Work in smaller pieces."


class Progress:
    """What a run has used up so far, and what follows from it."""

    def __init__(self, limits: Limits, cost: Callable[[Usage], float | None]) -> None:
        self.limits = limits
        self.turns = 0
        self.usage = Usage(0, 0, 0, 0, 0)
        self.cost_usd: float | None = None
        self._cost = cost
        self._cuts = self._pauses = self._empties = 0

    @property
    def output_left(self) -> int | None:
        """Tokens the next response may have, where they are limited."""
        if self.limits.max_output_tokens is None:
            return None
        return max(1, self.limits.max_output_tokens - self.usage.completion)

    def add(self, costs: Iterable[Usage]) -> None:
        """Count a turn and what its attempts used."""
        self.turns += 1
        self.spend(costs)

    def spend(self, costs: Iterable[Usage]) -> None:
        """Count what requests used. A cost that is not known leaves the sum unknown only if all are."""
        for usage in costs:
            self.usage = Usage(
                self.usage.prompt + usage.prompt,
                self.usage.completion + usage.completion,
                (self.usage.cache_read or 0) + (usage.cache_read or 0),
                (self.usage.cache_write or 0) + (usage.cache_write or 0),
                (self.usage.reasoning or 0) + (usage.reasoning or 0),
            )
            cost = None if usage == Usage() else self._cost(usage)
            if cost is not None:
                self.cost_usd = (self.cost_usd or 0.0) + cost

    def reached(self) -> Ending | None:
        """Return the limit that forbids another model call, if any has been reached."""
        limits = self.limits
        checks = (
            ("max_turns", limits.max_turns, self.turns, "turns"),
            ("max_output_tokens", limits.max_output_tokens, self.usage.completion, "output tokens"),
            ("max_budget_usd", limits.max_budget_usd, self.cost_usd or 0.0, "US dollars"),
        )
        for reason, limit, used, unit in checks:
            if limit is not None and used >= limit:
                return Ending(RunStatus.LIMIT, reason, f"the limit of {limit:g} {unit} is reached ({used:g} used)")
        return None

    def after(self, outcome: TurnOutcome) -> NextStep:
        """Return what follows a turn; the one place where a run's next step is decided."""
        if outcome.lost is not None:
            return _broken(outcome.lost)
        has_calls = outcome.exchange is not None and bool(outcome.exchange.results)
        stop = outcome.finish.stop if outcome.finish else StopReason.UNKNOWN
        match stop:
            case StopReason.REFUSAL:
                why = outcome.finish.detail if outcome.finish else ""
                return Ending(RunStatus.REFUSED, "refusal", why or "the model refused to answer")
            case StopReason.OUTPUT_LIMIT:
                return self._cut(outcome)
            case StopReason.PAUSED:
                return self._paused()
            case _ if has_calls:
                self._cuts = self._pauses = self._empties = 0
                return Step()
            case _ if outcome.exchange is None:
                return self._empty(outcome)
            case StopReason.UNKNOWN if outcome.finish and outcome.finish.raw:
                return Ending(RunStatus.COMPLETED, "unknown_stop", f"the provider stopped for {outcome.finish.raw!r}")
            case _:
                return Ending(RunStatus.COMPLETED, "completed")

    def _cut(self, outcome: TurnOutcome) -> NextStep:
        self._cuts += 1
        calls = outcome.exchange.message.calls if outcome.exchange else ()
        if self._cuts > self.limits.continuations:
            text = f"the model's answer was cut off by its output limit {self._cuts} times in a row"
            return Ending(RunStatus.LIMIT, "output_limit", text)
        return Step(nudge=_CUT_CALL if any(isinstance(call, BrokenCall) for call in calls) else _CUT)

    def _paused(self) -> NextStep:
        self._pauses += 1
        if self._pauses > self.limits.pauses:
            return Ending(RunStatus.LIMIT, "paused", f"the provider paused its turn {self._pauses} times in a row")
        return Step()

    def _empty(self, outcome: TurnOutcome) -> NextStep:
        self._empties += 1
        if self._empties > self.limits.empties:
            raw = outcome.finish.raw if outcome.finish else None
            return Ending(
                RunStatus.FAILED, "empty_reply", f"the model said nothing {self._empties} times (stop: {raw})"
            )
        return Step()


def _broken(lost: Lost) -> NextStep:
    # Nothing is asked for twice after a call: the run goes on from what came, or ends.
    if lost.delay is None:
        return Ending(RunStatus.FAILED, lost.failure.kind.value, lost.failure.message, lost.failure)
    return Step(lost.delay, why=lost.failure.message)
