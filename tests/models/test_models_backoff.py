"""Waiting before the next attempt: pure, so every case is a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.models.backoff import GiveUp, RetryLimits, Stage, Wait, decide
from novacode.values.failure import Failure, FailureKind

BUSY = Failure(FailureKind.OVERLOADED, "busy", retryable=True)
LIMITS = RetryLimits(requests=5, streams=2, base=1.0, ceiling=8.0, longest=60.0)
REQUEST, STREAM = Stage.REQUEST, Stage.STREAM


def told(seconds):
    return Failure(FailureKind.RATE_LIMIT, "slow down", retryable=True, retry_after=seconds)


@pytest.mark.parametrize(
    ("times", "jitter", "seconds"),
    [(1, 0.0, 0.5), (1, 1.0, 1.0), (2, 1.0, 2.0), (3, 0.5, 3.0), (4, 1.0, 8.0), (5, 1.0, 8.0)],
)
def test_waits_double_up_to_a_ceiling(times, jitter, seconds):
    assert decide(REQUEST, times, BUSY, jitter, LIMITS) == Wait(seconds)


def test_requests_and_streams_have_budgets_of_their_own():
    assert decide(REQUEST, 5, BUSY, 1.0, LIMITS) == Wait(8.0)
    assert decide(REQUEST, 6, BUSY, 1.0, LIMITS) == GiveUp("given up after 6 attempts")
    assert decide(STREAM, 2, BUSY, 1.0, LIMITS) == Wait(2.0)
    assert decide(STREAM, 3, BUSY, 1.0, LIMITS) == GiveUp("given up after 3 attempts")


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0, 60.0])
def test_br_094_the_time_the_provider_names_rules(stage, times, seconds):
    """Never earlier than told, whatever the attempt, and later by a tenth at most."""
    assert decide(stage, times, told(seconds), 0.0, LIMITS) == Wait(seconds)
    late = decide(stage, times, told(seconds), 1.0, LIMITS)
    assert isinstance(late, Wait)
    assert late.seconds == pytest.approx(seconds * 1.1)


def test_a_wait_longer_than_anybody_would_accept_is_giving_up_and_says_how_long():
    assert decide(REQUEST, 1, told(300.0), 0.0, LIMITS) == GiveUp("it asks to wait 300 s; the longest wait is 60 s")


def test_being_told_to_come_back_at_once_is_not_being_told():
    assert decide(REQUEST, 1, told(0.0), 1.0, LIMITS) == Wait(1.0)


def test_what_a_retry_cannot_mend_is_not_retried():
    failure = Failure(FailureKind.AUTHENTICATION, "no", retryable=False, retry_after=1.0)
    assert decide(REQUEST, 1, failure, 0.5, LIMITS) == GiveUp()


@pytest.mark.parametrize("stage", Stage)
def test_no_budget_means_no_retry_and_nothing_to_explain(stage):
    assert decide(stage, 1, BUSY, 0.5, RetryLimits(requests=0, streams=0)) == GiveUp()


@given(
    stage=st.sampled_from(Stage),
    times=st.integers(1, 10_000),
    jitter=st.floats(0, 1),
    after=st.none() | st.floats(0, 1e6),
)
def test_a_wait_is_always_within_its_bounds(stage, times, jitter, after):
    limits = RetryLimits(requests=10_000, streams=10_000)
    answer = decide(stage, times, told(after), jitter, limits)
    if after is not None and after > limits.longest:
        assert isinstance(answer, GiveUp)
        return
    assert isinstance(answer, Wait)
    if after:
        assert after <= answer.seconds <= after * 1.1 + 1e-9
    else:
        assert limits.base / 2 <= answer.seconds <= limits.ceiling


@pytest.mark.parametrize(
    "wrong", [{"requests": -1}, {"streams": -1}, {"base": -1.0}, {"ceiling": -1.0}, {"longest": -1.0}]
)
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryLimits(**wrong)
