"""Signals while nobody receives them: before the run's own receiver stands, and after it has gone.

A run answers to signals from its first instruction to its last. Until the event loop runs, one raises `Interrupted`
where the program is, which ends it like Ctrl-C would. While the loop runs without a receiver, one is noted: raised
there, it would tear the loop apart. Whoever starts to receive asks for what came before (`taken`). The handlers that
stand here come back when a receiver goes. At the very end signals are held back, so that a program that has said how
it ended ends that way.

It answers for the process, of which there is one, and imports next to nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

__all__ = ["HERE", "Early", "Interrupted"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 3  # so many signals without a receiver, and the program ends where it is


class Interrupted(BaseException):
    """A signal came before anything had begun. Not an `Exception`: nothing may take it for a failure and go on."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Early:
    """What signals do meanwhile. `act` is called with each that is noted, at once, between any two instructions.

    `last` is called with the one that ends the program where it is, before it does.
    """

    def __init__(self) -> None:
        self.act: Callable[[int], None] = lambda _: None
        self.last: Callable[[int], None] = lambda _: None
        self._raising = False
        self._noted: list[int] = []

    def watch(self) -> None:
        """Take over from the system, except where a signal was ignored when we started (`nohup`)."""
        self._raising = True
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    def note(self) -> None:
        """From now on signals are noted and raise nothing."""
        self._raising = False

    def taken(self) -> tuple[int, ...]:
        """Return what was noted, once."""
        noted, self._noted = tuple(self._noted), []
        return noted

    def hold_back(self) -> None:
        """Let no signal in any more: all that is left to do is to end."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._raising:
            self._raising = False
            raise Interrupted(number)
        self._noted.append(number)
        if len(self._noted) >= _PATIENCE:
            self.last(number)
            os._exit(128 + number)
        self.act(number)


HERE = Early()
"""Of this process."""
