"""The interrupt ladder: what the first, the second and the third signal do.

First: the run is cancelled, and everybody is told what it waits for. Second: graces are skipped, SIGKILL at once.
Third: the program ends without waiting any longer. SIGTERM and SIGHUP are first presses too.

Commands run in sessions of their own, so the terminal's Ctrl-C reaches NovaCode alone and nothing behind its back.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

import attrs
import trio

__all__ = ["Ladder", "exit_code_of"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.define(eq=False, repr=False)
class Ladder:
    """What to do at each step. All three are synchronous. `first` is told the signal's name.

    `each` is told it at every press, before the step: whoever goes on after a stop has to know what was asked for last.
    `asked` is the first since the last `reset`. `missed` gives the signals that came before somebody listened.
    """

    first: Callable[[str], None]
    second: Callable[[], None]
    third: Callable[[int], None] = os._exit
    presses: int = 0
    each: Callable[[str], None] = lambda _: None
    asked: str = ""
    missed: Callable[[], Sequence[int]] = tuple

    async def listen(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive signals until cancelled; started once the receiver is in place.

        A SIGHUP that was ignored when we started stays ignored: that is what `nohup` is for.
        """
        wanted = [one for one in _SIGNALS if one is not signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
        with trio.open_signal_receiver(*wanted) as received:
            for number in self.missed():
                self.press(number)
            task_status.started()
            async for number in received:
                self.press(number)

    def press(self, number: int) -> None:
        """Climb one step for signal `number`."""
        self.presses += 1
        self.asked = self.asked or signal.Signals(number).name
        self.each(signal.Signals(number).name)
        match self.presses:
            case 1:
                self.first(signal.Signals(number).name)
            case 2:
                self.second()
            case _:
                self.third(exit_code_of(number))

    def reset(self) -> None:
        """Start again from the first step: the run that was stopped is over."""
        self.presses, self.asked = 0, ""


def exit_code_of(number: int) -> int:
    """Return the exit code of a program that was ended by signal `number`."""
    return 128 + number
