"""A bound on the time of a stretch of code that cannot be cancelled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["CpuTimeOver", "cpu_limit"]


class CpuTimeOver(Exception):
    """The stretch took more processor time than it was given."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `CpuTimeOver` in the body once it has used `seconds` of processor time. No `await` in the body.

    For regular expressions: some take exponential time, and a match cannot be cancelled, but `re` looks for signals
    while it works. The timer of virtual time is used, since others use that of real time. Handlers run in the main
    thread alone: in another the body runs without a limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _over)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _over(_number: int, _frame: FrameType | None) -> None:
    raise CpuTimeOver
