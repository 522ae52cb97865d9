"""The decisions after a turn, apart from any run."""

from __future__ import annotations

import pytest

from novacode.engine.limits import Ending, Limits, Progress, Step
from novacode.engine.reply import Lost
from novacode.engine.turn import TurnOutcome
from novacode.values.events import Finished, RunStatus
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, Text, ToolCall
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome, ToolResult

TEXT = Exchange(Assistant((Text("x"),)))
CALL = ToolCall(CallId("a"), 0, "work", {})
WORK = Exchange(Assistant((CALL,)), (ToolResult.of(CALL, Outcome.OK, "done", began=True),))
LOST = Failure(FailureKind.NETWORK, "lost", retryable=True)


def outcome(exchange: Exchange | None, stop: StopReason | None, detail: str = "") -> TurnOutcome:
    return TurnOutcome(exchange, Finished(stop, "raw", detail) if stop else None, None)


def progress(limits: Limits | None = None) -> Progress:
    return Progress(limits or Limits(), lambda usage: None)


@pytest.mark.parametrize(
    ("exchange", "stop", "step"),
    [
        (TEXT, StopReason.END, Ending(RunStatus.COMPLETED, "completed")),
        (WORK, StopReason.TOOL_USE, Step()),
        (WORK, StopReason.END, Step()),
        (WORK, StopReason.PAUSED, Step()),
        (WORK, StopReason.REFUSAL, Ending(RunStatus.REFUSED, "refusal", "the model refused to answer")),
        (TEXT, StopReason.TOOL_USE, Ending(RunStatus.COMPLETED, "completed")),
        (TEXT, StopReason.UNKNOWN, Ending(RunStatus.COMPLETED, "unknown_stop", "the provider stopped for 'raw'")),
        (TEXT, None, Ending(RunStatus.COMPLETED, "completed")),
        (None, StopReason.END, Step()),
        (None, StopReason.UNKNOWN, Step()),
        (None, None, Step()),
        (None, StopReason.REFUSAL, Ending(RunStatus.REFUSED, "refusal", "the model refused to answer")),
    ],
)
def test_what_follows_a_turn(exchange: Exchange | None, stop: StopReason | None, step: object) -> None:
    assert progress().after(outcome(exchange, stop)) == step


def test_a_refusal_says_what_the_provider_explained() -> None:
    step = progress().after(outcome(TEXT, StopReason.REFUSAL, "it is about weapons"))
    assert step == Ending(RunStatus.REFUSED, "refusal", "it is about weapons")


def test_empties_without_a_stop_are_bounded_too() -> None:
    many = progress(Limits(empties=0))
    assert many.after(outcome(None, None)) == Ending(
        RunStatus.FAILED, "empty_reply", "the model said nothing 1 times (stop: None)"
    )


def test_a_wait_of_no_time_is_still_a_broken_response() -> None:
    """Told apart from a plain next turn, so that the person hears of it."""
    step = progress().after(TurnOutcome(WORK, None, Lost(LOST, 0.0)))
    assert step == Step(delay=0.0, why="lost") != Step()


def test_a_broken_response_without_a_call_ends_the_run() -> None:
    assert progress().after(TurnOutcome(TEXT, None, Lost(LOST))) == Ending(RunStatus.FAILED, "network", "lost", LOST)


def test_cost_is_unknown_only_where_all_of_it_is() -> None:
    known = Progress(Limits(max_budget_usd=1), lambda usage: None if usage.input == 1 else 0.5)
    known.add([Usage(1, 1)])
    assert (known.cost_usd, known.reached()) == (None, None)
    known.add([Usage(2, 1), Usage()])
    assert (known.cost_usd, known.turns, known.usage) == (0.5, 2, Usage(3, 2, 0, 0, 0))
    known.add([Usage(2, 1)])
    assert known.reached() == Ending(RunStatus.LIMIT, "max_budget_usd", "the limit of 1 US dollars is reached (1 used)")


def test_output_left_never_asks_for_nothing() -> None:
    assert progress().output_left is None
    short = progress(Limits(max_output_tokens=10))
    assert short.output_left == 10
    short.add([Usage(0, 25)])
    assert short.output_left == 1
