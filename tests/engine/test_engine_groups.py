"""At the border of a run a group of exceptions becomes one error."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from novacode.engine.groups import RunBroken, leaves_of, one_failure
from novacode.errors import CredentialsError, UsageError


def caught(error: BaseException) -> BaseException:
    with pytest.raises(type(error) if not isinstance(error, ExceptionGroup) else Exception) as info, one_failure():
        raise error
    return info.value


def test_a_group_becomes_one_error_that_names_them_all() -> None:
    group = ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [KeyError("b"), UsageError("c")])])
    error = caught(group)
    assert type(error) is RunBroken
    assert str(error) == "the run was ended by a bug: ValueError: a; KeyError: 'b'; UsageError: c"
    assert error.__cause__ is group


def test_an_error_of_ours_that_is_alone_keeps_its_class() -> None:
    alone = CredentialsError("no key")
    assert caught(ExceptionGroup("g", [ExceptionGroup("h", [alone])])) is alone


@pytest.mark.parametrize("error", [ValueError("x"), BaseExceptionGroup("g", [KeyboardInterrupt(), ValueError("x")])])
def test_everything_else_goes_through_as_it_is(error: BaseException) -> None:
    assert caught(error) is error


async def test_a_bug_beside_a_cancellation_from_outside_is_one_error_and_the_cancellation_goes_on() -> None:
    """Whoever cancelled gets the error alone in a group: that is trio's way to tell what came beside it."""
    outside = trio.CancelScope()
    with pytest.raises(ExceptionGroup) as info:
        await _cancelled_by(outside)
    assert outside.cancelled_caught
    (error,) = info.value.exceptions
    assert type(error) is RunBroken
    assert str(error) == "the run was ended by a bug: ValueError: while it was stopped"
    assert isinstance(error.__cause__, ExceptionGroup)


async def _cancelled_by(outside: trio.CancelScope) -> None:
    with outside, one_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_break_when_cancelled)
            nursery.start_soon(trio.sleep_forever)
            await trio.testing.wait_all_tasks_blocked()
            outside.cancel()


async def _break_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("while it was stopped")


def test_nothing_is_nothing() -> None:
    with one_failure():
        pass


def test_leaves() -> None:
    a, b = ValueError("a"), ValueError("b")
    assert list(leaves_of(ExceptionGroup("g", [ExceptionGroup("h", [a]), b]))) == [a, b]
