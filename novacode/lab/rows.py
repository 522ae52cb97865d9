"""Rows on disk: JSON lines that can be gone on with, and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from novacode.errors import InputError
from novacode.lab.point import Row

__all__ = ["RowFile", "as_csv", "read_rows"]


def read_rows(path: Path) -> tuple[list[Row], int]:
    """Return the rows in the file, and how many bytes of it hold them: a last line that was cut off does not count.

    A file that is not there holds none. Raises `InputError` for a file that holds something else.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    whole = data[: data.rfind(b"\n") + 1]
    rows = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            rows.append(_row(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number} is no row of the lab: {error!r}. Nothing was changed.") from error
    return rows, len(whole)


def _row(data: Mapping[str, Any]) -> Row:
    if "executor" in data:
        # It has all that a row has; taken for one, a run of another executor would count as done.
        raise ValueError("it is a row of `lab compare`")
    return Row.load(data)


class RowFile:
    """A file that rows are added to. What it holds already is in `rows`; half a line at its end is cut off."""

    def __init__(self, path: Path) -> None:
        self.rows, size = read_rows(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            self._file.truncate(size)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from error

    def add(self, rows: Sequence[Row]) -> None:
        """Write `rows`; when this returns they are in the file."""
        self._file.write(b"".join(json.dumps(row.dump(), ensure_ascii=False).encode() + b"\n" for row in rows))
        self._file.flush()

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()


def as_csv(rows: Iterable[Row], file: TextIO) -> None:
    """Write `rows` as CSV, with a header, flat: violations as their kinds, outcomes as `ok=2 cancelled=1`."""
    writer = None
    for row in rows:
        flat = row.dump()
        flat["violations"] = " ".join(violation.kind for violation in row.violations)
        flat["outcomes"] = " ".join(f"{outcome}={count}" for outcome, count in row.outcomes.items())
        flat["command"] = row.point.command if row.violations else ""
        if writer is None:
            writer = csv.DictWriter(file, list(flat))
            writer.writeheader()
        writer.writerow(flat)
