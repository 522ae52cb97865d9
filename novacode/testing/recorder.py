"""Keeping what a bus says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs

from novacode.engine.bus import Bus
from novacode.values.events import Stamped

__all__ = ["EventRecorder"]

E = TypeVar("E")


@attrs.define(eq=False)
class EventRecorder:
    """Every event of the buses it watches, in the order it came: `recorder.watch(app.bus)`."""

    stamped: list[Stamped] = attrs.field(factory=list)

    def watch(self, bus: Bus) -> Callable[[], None]:
        """Begin to keep what `bus` says; what is returned ends it."""
        sink = self.stamped.append
        bus.subscribe(sink)
        return lambda: bus.unsubscribe(sink)

    @property
    def events(self) -> list[object]:
        """The events, without when and where they were."""
        return [stamped.event for stamped in self.stamped]

    @property
    def names(self) -> list[str]:
        """Their classes' names, for a short look: `["RunBegan", "TurnBegan", …]`."""
        return [type(event).__name__ for event in self.events]

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class, in order."""
        return [event for event in self.events if isinstance(event, kind)]
