"""The only shields, each with a name and a deadline.

Clean-up that has to await runs inside `cleanup(seconds)`: protected from cancellation, and bounded. The limits run
side by side, so the time from a cancel to quiet is bounded by the largest of them, not by their sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import trio

__all__ = ["DEFAULT", "Grace", "cleanup"]


@attrs.frozen
class Grace:
    """Seconds each kind of clean-up may take. `term` is how long a process has after SIGTERM, `kill` after SIGKILL.

    `hooks` is what hooks have for the end of a session, `files` what finding out has that a cancelled call changed.
    """

    term: float = 2.0
    kill: float = 1.0
    pipes: float = 0.2
    journal: float = 2.0
    wire: float = 1.0
    files: float = 1.0
    hooks: float = 5.0


DEFAULT = Grace()


@contextmanager
def cleanup(seconds: float) -> Iterator[trio.CancelScope]:
    """Shield the body from cancellation for at most `seconds`.

    After that the body is cancelled; the scope that is yielded then has `cancelled_caught` set, and whoever opened it
    says what was left undone. A cancellation from outside is delivered at the next checkpoint after the body.
    """
    with trio.move_on_after(seconds, shield=True) as scope:
        yield scope
