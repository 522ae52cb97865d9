"""Breaking the runtime on purpose, for as long as a `with` block lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

__all__ = ["Fault", "Patch"]

_MISSING = object()


class Patch:
    """Replaces attributes, and puts back what was there."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, target: Any, name: str, value: Any) -> None:
        """Replace the attribute `name` of a module or class."""
        self._before.append((target, name, vars(target).get(name, _MISSING)))
        setattr(target, name, value)

    def undo(self) -> None:
        """Put everything back, last first."""
        while self._before:
            target, name, value = self._before.pop()
            if value is _MISSING:
                delattr(target, name)
            else:
                setattr(target, name, value)


@attrs.frozen
class Fault:
    """A way to break the runtime. `breaks` says in a sentence which promise it breaks."""

    name: str
    breaks: str
    plant: Callable[[Patch], None]
