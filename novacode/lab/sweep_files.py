"""Rows of sweeps on disk: JSON lines that can be gone on with, CSV, and Parquet where pyarrow is there."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from novacode.errors import InputError, UsageError
from novacode.lab.experiment import SweepPoint, Swept

__all__ = ["SweepFile", "as_csv", "as_parquet"]


class SweepFile:
    """A file that rows are added to. `done` are those it holds already; half a line at its end is cut off."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        whole = data[: data.rfind(b"\n") + 1]
        self.done = list(_read(whole, path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            self._file.truncate(len(whole))
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from error

    def left(self, points: Sequence[SweepPoint]) -> list[SweepPoint]:
        """Return those of `points` that are still to be done.

        Raises `InputError` where the file holds others, so that two sweeps are never mixed.
        """
        wanted = set(points)
        strange = next((swept.point for swept in self.done if swept.point not in wanted), None)
        if strange is not None:
            raise InputError(
                f"{self._path} holds rows of another sweep, of {strange.name} with seed {strange.seed}: name another"
                " file, or sweep what it holds. Nothing was changed."
            )
        done = {swept.point for swept in self.done}
        return [point for point in points if point not in done]

    def add(self, rows: Sequence[Swept]) -> None:
        """Write `rows`; when this returns they are in the file."""
        self._file.write(b"".join(json.dumps(row.dump(), ensure_ascii=False).encode() + b"\n" for row in rows))
        self._file.flush()

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()


def _read(data: bytes, path: Path) -> Iterator[Swept]:
    for number, line in enumerate(data.splitlines(), 1):
        try:
            yield Swept.load(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number} is no row of a sweep: {error!r}. Nothing was changed.") from error


def _flat(swept: Swept) -> dict[str, Any]:
    """Return a row without lists and tables in it: violations as their kinds, outcomes as `ok=2 cancelled=1`."""
    row = swept.row
    return swept.dump() | {
        "violations": " ".join(violation.kind for violation in row.violations),
        "outcomes": " ".join(f"{outcome}={count}" for outcome, count in row.outcomes.items()),
        "command": row.point.command if row.violations else "",
    }


def as_csv(rows: Sequence[Swept], path: Path) -> None:
    """Write `rows` as CSV, with a header. Raises `InputError` where that cannot be done."""
    flat = [_flat(row) for row in rows]
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(flat[0]) if flat else [])
            writer.writeheader()
            writer.writerows(flat)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def as_parquet(rows: Sequence[Swept], path: Path) -> None:
    """Write the same as Parquet. Raises `UsageError` where pyarrow is not installed."""
    try:
        # Hardly any sweep wants it, and it takes half a second.
        pyarrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError("--parquet needs pyarrow, which is not installed: pip install pyarrow") from None
    table = pyarrow.Table.from_pylist([_flat(row) for row in rows])
    try:
        parquet.write_table(table, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
