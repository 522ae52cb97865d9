"""Which lines of a session could not be taken as they are, and what a person is told about them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

__all__ = ["BadLines"]

_MOST_NAMED = 10


@attrs.define(eq=False, repr=False)
class BadLines:
    """Lines by what is wrong with them."""

    good: int = 0
    broken: list[int] = attrs.field(factory=list)
    altered: list[int] = attrs.field(factory=list)
    unknown: list[int] = attrs.field(factory=list)
    torn: bool = False

    def notices(self) -> Iterator[str]:
        """Yield what a person should know."""
        if self.torn:
            yield "its last record was cut off by a crash and is lost"
        if self.broken:
            yield f"{_lines(self.broken)} could not be read and {_were(self.broken)} skipped"
        if self.altered:
            yield f"{_lines(self.altered)} {_were(self.altered)} changed after writing, and used as far as possible"
        if self.unknown:
            yield f"{_lines(self.unknown)} {_were(self.unknown)} skipped: written by a newer NovaCode"


def _lines(numbers: list[int]) -> str:
    named = ", ".join(str(number) for number in numbers[:_MOST_NAMED])
    more = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
    return f"{len(numbers)} line{'s' * (len(numbers) > 1)} ({named}{more})"


def _were(numbers: list[int]) -> str:
    return "were" if len(numbers) > 1 else "was"
