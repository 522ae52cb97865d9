"""A word to the person where this system cannot promise that a stop leaves nothing running."""

from __future__ import annotations

from collections.abc import Callable

from novacode.engine.bus import Sink
from novacode.values.events import CallSettled, Stamped
from novacode.workspace.base import Processes
from novacode.workspace.processes import RealProcesses

__all__ = ["tell_weakness"]


def tell_weakness(processes: Processes, say: Callable[[str], None]) -> Sink:
    """Return a sink that says it once, when a first call has ended: after a command it is known.

    It is no event: what a run's output holds must not depend on the machine.
    """
    told = False

    def sink(stamped: Stamped) -> None:
        nonlocal told
        if told or not isinstance(stamped.event, CallSettled) or not isinstance(processes, RealProcesses):
            return
        if processes.weakness:
            told = True
            say(f"stopping may be incomplete here: {processes.weakness}")

    return sink
