"""`novacode lab sweep`: many runs over many parameters."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from novacode.cli.lab_progress import Meter
from novacode.errors import InputError, UsageError
from novacode.lab.executors import cluster, process_pool
from novacode.lab.experiment import ANY, NONE, Experiment, SweepPoint, Swept, points_of
from novacode.lab.phases import PHASES
from novacode.lab.point import How
from novacode.lab.real import REAL_PHASES
from novacode.lab.scenario import find_scenario, packaged
from novacode.lab.schedule import Kind
from novacode.lab.sweep import sweep
from novacode.lab.sweep_files import SweepFile, as_csv, as_parquet

__all__ = ["command"]

T = TypeVar("T")

_FILE = click.Path(dir_okay=False, path_type=Path)
_MOST_LINES = 40


def _list_of(read: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str | None], tuple[T, ...] | None]:
    """Return what reads a list with commas; `None` where nothing was given."""

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[T, ...] | None:
        if value is None:
            return None
        try:
            return tuple(read(part) for part in value.split(","))
        except ValueError:
            raise click.BadParameter(f"{value!r} is not a list of numbers such as 1,2,4", ctx, param) from None

    return callback


@click.command("sweep", short_help="Many runs over many parameters.")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option("--seeds", type=click.IntRange(min=1), default=100, show_default=True, help="How many, from 0 on.")
@click.option("--calls", callback=_list_of(int), metavar="N,N", help="How many calls the first turn makes.")
@click.option(
    "--takes", multiple=True, metavar="DIST", help="How long tools take: 2, exp(2), uniform(1,3). Repeatable."
)
@click.option("--cleanup", multiple=True, metavar="DIST", help="How long they take to stop, once asked. Repeatable.")
@click.option("--grace", callback=_list_of(float), metavar="S,S", help="After which they are killed.")
@click.option(
    "--phase",
    "phases",
    type=click.Choice((*PHASES, ANY, NONE)),
    multiple=True,
    help="What a run is at when it is stopped. Repeatable. Default: any.",
)
@click.option("--how", type=click.Choice([how.value for how in How]), default=How.RUN.value, show_default=True)
@click.option(
    "--schedule", type=click.Choice([kind.value for kind in Kind]), default=Kind.UNIFORM.value, show_default=True
)
@click.option("--real", is_flag=True, help="In real time: calls are real processes, and take as long as they say.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes to use. Default: one for each core.")
@click.option("--cluster", "address", metavar="ADDRESS", help="A dask scheduler, instead of processes here.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write rows here as JSON lines, and go on from there.")
@click.option("--csv", "csv_file", type=_FILE, metavar="FILE", help="And as CSV.")
@click.option("--parquet", "parquet_file", type=_FILE, metavar="FILE", help="And as Parquet, with pyarrow.")
def command(scenarios: Sequence[str], **options: Any) -> int:
    """Run each SCENARIO under every combination of the parameters, with every seed.

    Time is simulated, but for --real.

    A seed orders the tasks, draws how long each call takes, and draws at which step of the wanted phase the run is
    stopped. Rows come in the order of the parameters, wherever they were made. The exit code is 1 where an invariant
    was broken.
    """
    points = points_of(_experiment(scenarios, options))
    for name in dict.fromkeys(point.name for point in points if point.seed == 0):
        find_scenario(name)  # what is wrong with it is told before anything is run
    file = SweepFile(options["out"]) if options["out"] else None
    swept = list(file.done) if file else []
    began, before = time.monotonic(), len(swept)
    with contextlib.closing(file) if file else contextlib.nullcontext():
        interrupted = _run(file.left(points) if file else points, file, swept, options)
    rate = (len(swept) - before) / max(1e-9, time.monotonic() - began)
    for write, path in ((as_csv, options["csv_file"]), (as_parquet, options["parquet_file"])):
        if path is not None:
            write(swept, path)
    known = f" ({before} of them done before)" if before else ""
    click.echo(f"{len(swept)} of {len(points)} runs{known}, {rate:.0f} a second\n")
    for line in _table(swept):
        click.echo(line)
    if interrupted:
        click.echo("Interrupted." + (" The same command goes on from here." if file else ""), err=True)
        return 130
    return _violations(swept)


def _experiment(scenarios: Sequence[str], options: dict[str, Any]) -> Experiment:
    names = [name for given in scenarios for name in (packaged() if given == "all" else (given,))]
    if mixed := next((name for name in names if "?" in name), None):
        raise InputError(f"{mixed!r} has parameters already; give them as options, so that they can be varied")
    if options["real"] and (strange := [phase for phase in options["phases"] if phase not in REAL_PHASES]):
        raise UsageError(f"--real cannot stop at {strange[0]!r}: what can be seen is {', '.join(REAL_PHASES)}")
    if options["real"] and options["how"] != How.RUN.value:
        raise UsageError(f"--real stops a run as Ctrl-C does; leave --how {options['how']} out")
    return Experiment(
        tuple(dict.fromkeys(names)),
        options["seeds"],
        options["calls"] or (None,),
        options["takes"] or ("",),
        options["cleanup"] or ("",),
        options["grace"] or (None,),
        options["phases"] or (ANY,),
        How(options["how"]),
        Kind(options["schedule"]),
        options["real"],
    )


def _run(points: Sequence[SweepPoint], file: SweepFile | None, swept: list[Swept], options: dict[str, Any]) -> bool:
    """Do `points`; whether a person interrupted it."""
    jobs = options["jobs"] or os.cpu_count() or 1
    make = (
        functools.partial(cluster, options["address"]) if options["address"] else functools.partial(process_pool, jobs)
    )
    with Meter(len(points), sys.stderr) as meter:

        def take(rows: Sequence[Swept]) -> None:
            if file is not None:
                file.add(rows)
            swept.extend(rows)
            for row in rows:
                meter.advance(len(swept), len(row.row.violations))

        try:
            sweep(points, take, make)
        except KeyboardInterrupt:
            return True
    return False


def _table(swept: Sequence[Swept]) -> Iterator[str]:
    """Yield a line for each combination of parameters: how many runs, and how long they took to stop."""
    groups: defaultdict[tuple[str, str], list[Swept]] = defaultdict(list)
    for one in swept:
        groups[one.point.name.partition("&draw=")[0], one.point.phase].append(one)
    width = max((len(name) for name, _ in groups), default=0)
    yield f"{'':<{width}}  {'stopped at':<10}  {'runs':>6}  {'struck':>6}  {'median':>7}  {'99 %':>7}  {'most':>7} s"
    for (name, phase), rows in list(groups.items())[:_MOST_LINES]:
        latencies = sorted(one.row.latency_s for one in rows if one.row.latency_s is not None)
        at = (f"{latencies[int(share * (len(latencies) - 1))]:>7.3g}" for share in (0.5, 0.99, 1.0))
        shown = "  ".join(at) if latencies else ""
        yield f"{name:<{width}}  {phase:<10}  {len(rows):>6}  {len(latencies):>6}  {shown}".rstrip()
    if len(groups) > _MOST_LINES:
        yield f"… and {len(groups) - _MOST_LINES} more; --out FILE keeps all rows"


def _violations(swept: Sequence[Swept]) -> int:
    broken = [one.row for one in swept if one.row.violations]
    click.echo(f"\n{len(broken)} runs broke an invariant")
    for row in broken[:10]:
        click.echo(f"\n{row.violations[0].kind}: {row.violations[0].text}\n  {row.point.command}")
    return int(bool(broken))
