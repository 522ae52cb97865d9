"""Exception groups end here: at the border of a run a group becomes one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from novacode.errors import NovaError

__all__ = ["RunBroken", "broke_a_cancellation", "leaves_of", "one_failure"]


class RunBroken(NovaError):
    """A run ended by a bug of ours. The text names every exception that was in flight; the cause holds them whole."""


@contextmanager
def one_failure() -> Iterator[None]:
    """Turn any group of ordinary exceptions into one error.

    An error of ours that is alone in its group keeps its class, since that says what to do about it; everything else
    becomes a `RunBroken`. Where a cancellation from outside is on its way up beside it, both go on in a group, and
    whoever cancelled gets the error in a group of its own. `KeyboardInterrupt` and `SystemExit` go through as they are.
    """
    try:
        yield
    except ExceptionGroup as group:
        raise _one(group) from group
    except BaseExceptionGroup as group:
        cancelled, rest = group.split(trio.Cancelled)
        if cancelled is None or not isinstance(rest, ExceptionGroup):
            raise
        error = _one(rest)
        error.__cause__ = rest
        raise BaseExceptionGroup(group.message, (cancelled, error)) from None


def _one(group: ExceptionGroup[Exception]) -> NovaError:
    leaves = tuple(leaves_of(group))
    if len(leaves) == 1 and isinstance(leaves[0], NovaError):
        return leaves[0]
    found = "; ".join(f"{type(error).__name__}: {error}" for error in leaves)
    return RunBroken(f"the run was ended by a bug: {found}")


def leaves_of(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    """Yield the exceptions of `group` that are not groups themselves."""
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from leaves_of(error)
        else:
            yield error


def broke_a_cancellation(error: BaseException) -> bool:
    """Whether `error` was raised while a `Cancelled` was on its way up, and so took its place."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        if isinstance(one, trio.Cancelled):
            return True
        seen.add(id(one))
        waiting += (one.__context__, one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return False
