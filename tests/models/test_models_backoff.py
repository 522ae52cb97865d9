"""Waiting before the next attempt: pure, so every case is a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.models.backoff import RetryLimits, delay
from novacode.values.failure import Failure, FailureKind

BUSY = Failure(FailureKind.OVERLOADED, "busy", retryable=True)
LIMITS = RetryLimits(attempts=6, base=1.0, ceiling=8.0, longest=60.0)


def told(seconds):
    return Failure(FailureKind.RATE_LIMIT, "slow down", retryable=True, retry_after=seconds)


@pytest.mark.parametrize(
    ("attempt", "jitter", "seconds"),
    [(1, 0.0, 0.5), (1, 1.0, 1.0), (2, 1.0, 2.0), (3, 0.5, 3.0), (4, 1.0, 8.0), (5, 1.0, 8.0), (6, 1.0, None)],
)
def test_waits_double_up_to_a_ceiling_and_end_with_the_attempts(attempt, jitter, seconds):
    assert delay(attempt, BUSY, jitter, LIMITS) == seconds


@pytest.mark.parametrize("attempt", [1, 2, 5])
@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0, 60.0])
def test_br_094_the_time_the_provider_names_rules(attempt, seconds):
    """Never earlier than told, whatever the attempt, and later by a tenth at most."""
    assert delay(attempt, told(seconds), 0.0, LIMITS) == seconds
    assert delay(attempt, told(seconds), 1.0, LIMITS) == pytest.approx(seconds * 1.1)


def test_a_wait_longer_than_anybody_would_accept_is_giving_up():
    assert delay(1, told(60.1), 0.0, LIMITS) is None


def test_being_told_to_come_back_at_once_is_not_being_told():
    assert delay(1, told(0.0), 1.0, LIMITS) == 1.0


def test_what_a_retry_cannot_mend_is_not_retried():
    assert delay(1, Failure(FailureKind.AUTHENTICATION, "no", retryable=False, retry_after=1.0), 0.5, LIMITS) is None


def test_one_attempt_means_no_retry():
    assert delay(1, BUSY, 0.5, RetryLimits(attempts=1)) is None


@given(attempt=st.integers(1, 10_000), jitter=st.floats(0, 1), after=st.none() | st.floats(0, 1e6))
def test_a_wait_is_always_within_its_bounds(attempt, jitter, after):
    limits = RetryLimits(attempts=10_001)
    seconds = delay(attempt, told(after), jitter, limits)
    if after is not None and after > limits.longest:
        assert seconds is None
    elif after:
        assert after <= seconds <= after * 1.1 + 1e-9
    else:
        assert limits.base / 2 <= seconds <= limits.ceiling


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"base": -1.0}, {"ceiling": -1.0}, {"longest": -1.0}])
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryLimits(**wrong)
