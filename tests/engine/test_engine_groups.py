"""At the border of a run a group of exceptions becomes one error."""

from __future__ import annotations

import pytest

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


def test_nothing_is_nothing() -> None:
    with one_failure():
        pass


def test_leaves() -> None:
    a, b = ValueError("a"), ValueError("b")
    assert list(leaves_of(ExceptionGroup("g", [ExceptionGroup("h", [a]), b]))) == [a, b]
