"""`novacode lab faults`: the mutation score of the lab itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click

from novacode.errors import InputError
from novacode.lab.faults import FAULTS, Fault
from novacode.lab.hunt import hunt
from novacode.lab.perform import perform
from novacode.lab.point import Point, Row
from novacode.lab.scenario import packaged

__all__ = ["command"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("faults", short_help="Break the runtime on purpose: does the lab notice?")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "only_list", is_flag=True, help="Say what there is, and try nothing.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes to use. Default: one for each core.")
@click.option("--out", type=_FILE, metavar="FILE", help="A row for each fault, for `lab report`.")
def command(names: Sequence[str], only_list: bool, jobs: int | None, out: Path | None) -> int:
    """Plant each fault of the catalogue (or those named) in the runtime, and look for it in the packaged scenarios.

    Prints where each is found and the share that is: a fault that survives is a missing invariant, and the exit code
    is then 1.
    """
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        raise click.UsageError(f"there is no planted fault {unknown[0]!r}; --list shows them")
    wanted = [FAULTS[name] for name in names] or list(FAULTS.values())
    width = max(len(fault.name) for fault in wanted)
    if only_list:
        for fault in wanted:
            click.echo(f"{fault.name:<{width}}  {fault.breaks}")
        return 0
    found, rows = 0, []
    for fault, row in _hunted(wanted, jobs or os.cpu_count() or 1):
        found += row is not None
        # Of one that survives there is nothing but runs in which all is well; one of them stands for it.
        rows.append(row or perform(Point(packaged()[0], fault=fault.name)))
        click.echo(f"{fault.name:<{width}}  {'SURVIVED' if row is None else _where(row)}")
    _keep(rows, out)
    click.echo(f"\n{found} of {len(wanted)} found: mutation score {found / len(wanted):.0%}")
    return 0 if found == len(wanted) else 1


def _hunted(faults: Sequence[Fault], jobs: int) -> Iterator[tuple[Fault, Row | None]]:
    scenarios = packaged()
    if jobs == 1 or len(faults) == 1:
        for fault in faults:
            yield fault, hunt(fault.name, scenarios)
        return
    with ProcessPoolExecutor(min(jobs, len(faults)), get_context("spawn")) as pool:
        futures = [pool.submit(hunt, fault.name, scenarios) for fault in faults]
        for fault, future in zip(faults, futures, strict=True):
            yield fault, future.result()


def _keep(rows: Sequence[Row], out: Path | None) -> None:
    if out is None:
        return
    try:
        out.write_text("".join(json.dumps(row.dump(), ensure_ascii=False) + "\n" for row in rows), "utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}") from error


def _where(row: Row) -> str:
    point = row.point
    at = "nobody stopping it" if point.step is None else f"{point.how} at step {point.step}"
    return f"{row.violations[0].kind:<12} in {point.scenario}, {at}"
