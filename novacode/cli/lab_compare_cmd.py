"""`novacode lab compare`: the trio runtime beside asyncio executors."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from novacode.cli.lab_progress import Meter
from novacode.errors import InputError
from novacode.lab.asyncio_variants import VARIANTS
from novacode.lab.compare import EXECUTORS, TRIO, Compared, Summary, compare, summaries
from novacode.lab.scenario import packaged

__all__ = ["command"]


@click.command("compare", short_help="The trio runtime beside asyncio executors, right and broken.")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO...]")
@click.option(
    "--executor", "executors", type=click.Choice(EXECUTORS), multiple=True, help="Repeatable. Default: every one."
)
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="How many orders of trio's tasks. Default: 1.")
@click.option("--seed", type=int, default=None, help="This one alone.")
@click.option("--step", type=click.IntRange(min=0), default=None, help="This step alone; 0 stops nothing.")
@click.option("--twice", is_flag=True, help="Ask to stop a second time, two steps after the first.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Every run as JSON lines.")
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="And as CSV.")
@click.option("-v", "--verbose", is_flag=True, help="Show an example of each kind of violation.")
def command(scenarios: Sequence[str], executors: Sequence[str], **given: Any) -> int:
    """Stop each scenario (default: every packaged one) at each of its steps, on each executor.

    Exit code 1 where the trio runtime breaks anything, else 0: that broken executors are found to be broken is what
    this is for.
    """
    names = packaged() if not scenarios or "all" in scenarios else scenarios
    chosen = [name for name in EXECUTORS if name in executors or not executors]
    orders = range(given["seeds"]) if given["seed"] is None else (given["seed"],)
    rows: list[Compared] = []
    with Meter(len(names) * len(chosen), sys.stderr) as meter:
        for executor in chosen:
            for name in names:
                rows += compare(name, executor, orders, given["step"], twice=given["twice"])
                meter.advance(len(rows), 0)
    _keep(rows, given["out"], given["csv_file"])
    found = summaries(rows)
    _show(found, sys.stdout)
    if given["step"] is not None:
        _all(rows, sys.stdout)
    elif given["verbose"]:
        _examples(rows, sys.stdout)
    return int(any(summary.violating for summary in found if summary.executor == TRIO))


def _keep(rows: Sequence[Compared], out: Path | None, csv_file: Path | None) -> None:
    try:
        if out is not None:
            out.write_text("".join(json.dumps(row.dump(), ensure_ascii=False) + "\n" for row in rows), "utf-8")
        if csv_file is not None:
            with csv_file.open("w", encoding="utf-8", newline="") as file:
                _as_csv(rows, file)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be written: {error.strerror or error}") from error


def _as_csv(rows: Sequence[Compared], file: TextIO) -> None:
    """Write the columns of the lab's other tables, and then those that only a comparison has."""
    writer = None
    for row in rows:
        flat = row.dump() | {"command": row.command if row.row.violations else ""}
        flat["violations"] = " ".join(violation.kind for violation in row.row.violations)
        flat["outcomes"] = " ".join(f"{outcome}={count}" for outcome, count in row.row.outcomes.items())
        writer = writer or _started(file, list(flat))
        writer.writerow(flat)


def _started(file: TextIO, columns: list[str]) -> csv.DictWriter[str]:
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    return writer


def _show(found: Sequence[Summary], file: TextIO) -> None:
    """Write the table, and below it where each executor is wrong."""
    width = max(len(summary.executor) for summary in found)
    file.write(f"{'':<{width}}  {'runs':>6}  {'broken':>6}  {'orphans':>7}  {'late':>5}  stopped after, s\n")
    file.writelines(
        f"{summary.executor:<{width}}  {summary.runs:>6}  {summary.violating:>6}  {summary.orphans:>7}"
        f"  {summary.late_effects:>5}  {_latencies(summary)}\n"
        for summary in found
    )
    file.write("\n")
    for summary in found:
        what = VARIANTS[summary.executor].breaks if summary.executor in VARIANTS else ""
        title = f"{summary.executor}: {what}" if what else summary.executor
        file.write(f"{title}\n" if summary.kinds else f"{title}\n  nothing broken\n")
        for kind, count in summary.kinds.items():
            at = {phase: number for (of, phase), number in summary.phases.items() if of == kind}
            where = ", ".join(f"{phase} {number}" for phase, number in at.items())
            file.write(f"  {kind:<10} {count:>6}  at {where}\n")


def _latencies(summary: Summary) -> str:
    if not summary.latencies:
        return f"never: {summary.never_quiet}" if summary.never_quiet else ""
    shown = f"median {summary.latency(0.5):g}, 99 % {summary.latency(0.99):g}, most {summary.latency(1.0):g}"
    return f"{shown}; {summary.never_quiet} never" if summary.never_quiet else shown


def _examples(rows: Sequence[Compared], file: TextIO) -> None:
    shown: set[tuple[str, str]] = set()
    for row in rows:
        for violation in row.row.violations:
            if (row.executor, violation.kind) not in shown:
                shown.add((row.executor, violation.kind))
                file.write(f"\n{row.executor} {violation.kind}: {violation.text}\n  {row.command}\n")


def _all(rows: Sequence[Compared], file: TextIO) -> None:
    """Write everything that was broken: who names a step wants to see what happens there."""
    for row in rows:
        head, foot = f"\n{row.executor} ", f"\n  {row.command}\n"
        file.writelines(f"{head}{violation.kind}: {violation.text}{foot}" for violation in row.row.violations)
