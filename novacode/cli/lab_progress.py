"""How far a long exploration is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TextIO

__all__ = ["Meter"]


class Meter:
    """Shows `advance`s of `total` on `file`, where that is a terminal."""

    def __init__(self, total: int, file: TextIO | None) -> None:
        self._bar: Any = None
        if file is not None and file.isatty() and total > 1:
            # rich takes longer to import than many an exploration takes to run.
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(file=file), transient=True)
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, points: int, violations: int) -> None:
        """One more is done; `points` and `violations` are the sums so far."""
        if self._bar is not None:
            found = f", [bold red]{violations} violations" if violations else ""
            self._bar.update(self._task, advance=1, description=f"{points} runs{found}")
