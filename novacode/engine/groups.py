"""Exception groups end here: at the border of a run a group becomes one failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from novacode.errors import NovaError

__all__ = ["RunBroken", "one_failure"]


class RunBroken(NovaError):
    """A run ended by a bug of ours. The text names every exception that was in flight; the cause holds them whole."""


@contextmanager
def one_failure() -> Iterator[None]:
    """Turn any group of ordinary exceptions into one `RunBroken`.

    Groups with `Cancelled`, `KeyboardInterrupt` or `SystemExit` in them go through as they are.
    """
    try:
        yield
    except ExceptionGroup as group:
        found = "; ".join(f"{type(error).__name__}: {error}" for error in _leaves(group))
        raise RunBroken(f"the run was ended by a bug: {found}") from group


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
