"""`novacode lab explore`: scenarios, stopped at every step."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from novacode.cli.lab_progress import Meter
from novacode.lab.explore import explore
from novacode.lab.faults import FAULTS
from novacode.lab.invariants import load_invariant
from novacode.lab.mishaps import parse_mishap
from novacode.lab.plan import ALL_MISHAPS, Block, Plan, blocks_of
from novacode.lab.point import How, Row
from novacode.lab.rows import RowFile, as_csv
from novacode.lab.scenario import find_scenario, packaged
from novacode.lab.schedule import Kind
from novacode.lab.shrink import shrink

__all__ = ["command"]

_SHOWN = 10  # different violations that are shrunk and shown; the rows have them all


@attrs.define
class _Tally:
    """What came of it so far."""

    points: int = 0
    traces: set[str] = attrs.field(factory=set)
    violations: Counter[str] = attrs.field(factory=Counter)
    first: dict[tuple[str, str, str], Row] = attrs.field(factory=dict)

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.points += 1
            self.traces.add(row.trace)
            for violation in row.violations:
                self.violations[violation.kind] += 1
                self.first.setdefault((row.point.scenario, violation.kind, row.point.fault), row)


@click.command("explore", short_help="Stop scenarios at every step, and judge what is left.")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="How many seeds, from 0 on. Default: 1.")
@click.option("--seed", type=int, default=None, help="This seed alone.")
@click.option(
    "--schedule",
    type=click.Choice([*(kind.value for kind in Kind), "all"]),
    default=Kind.UNIFORM.value,
    show_default=True,
)
@click.option(
    "--how",
    "hows",
    type=click.Choice([*(how.value for how in How), "all"]),
    multiple=True,
    help="Repeatable. Default: all.",
)
@click.option("--step", type=click.IntRange(min=0), default=None, help="This step alone; 0 stops nothing.")
@click.option("--call", default="", metavar="ID", help="Stop this call, with --how call or both.")
@click.option(
    "--mishap", default="", metavar="NAME", help="What goes wrong in the world: cut@3, slow-cleanup, … or all."
)
@click.option("--fault", default="", metavar="NAME", help="What is broken in the runtime on purpose.")
@click.option(
    "--invariant", "invariants", multiple=True, metavar="MODULE:FUNCTION", help="One of your own. Repeatable."
)
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes to use. Default: one for each core.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write rows here, and go on from there.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows as CSV, too.")
@click.option("--shrink/--no-shrink", "shrinking", default=True, help="Make violations small before they are shown.")
def command(**options: Any) -> int:
    """Run each SCENARIO once per scheduling step, stopped there, and check what must be true of every run.

    SCENARIO is a packaged one (`novacode lab scenarios`), a script file with a [simulate] table, or module:function;
    `all` is every packaged one. The exit code is 1 where anything was violated; each violation is shown with the
    command that does exactly it again.
    """
    plan = _plan(options)
    rows = RowFile(options["out"]) if options["out"] else None
    kept = rows.rows if rows else []
    blocks = list(blocks_of(plan, frozenset(row.point for row in kept)))
    tally, collected = _Tally(), list(kept)
    began = time.monotonic()

    def take(done: Sequence[Row]) -> None:
        if rows:
            rows.add(done)
        if options["csv_file"]:
            collected.extend(done)
        tally.add(done)

    with contextlib.closing(rows) if rows else contextlib.nullcontext():
        interrupted = _run(blocks, take, tally, options["jobs"] or os.cpu_count() or 1)
    if options["csv_file"]:
        with options["csv_file"].open("w", encoding="utf-8", newline="") as file:
            as_csv(collected, file)
    tally.add(kept)
    _tell(plan, tally, len(kept), time.monotonic() - began)
    if interrupted:
        click.echo("Interrupted." + (" The same command goes on from here." if rows else ""), err=True)
        return 130
    for line in _violations(tally, plan, options):
        click.echo(line)
    return 1 if tally.violations else 0


def _plan(options: dict[str, Any]) -> Plan:
    names = [name for given in options["scenarios"] for name in (packaged() if given == "all" else (given,))]
    for name in names:
        find_scenario(name)  # what is wrong with it is told before anything is run
    if options["fault"] and options["fault"] not in FAULTS:
        raise click.UsageError(f"there is no planted fault {options['fault']!r}; `novacode lab faults --list` has them")
    if options["mishap"] != ALL_MISHAPS:
        parse_mishap(options["mishap"])
    for name in options["invariants"]:
        load_invariant(name)
    hows = tuple(How) if not options["hows"] or "all" in options["hows"] else tuple(map(How, options["hows"]))
    if options["step"] == 0:
        hows = (How.RUN,)
    return Plan(
        tuple(dict.fromkeys(names)),
        tuple(range(options["seeds"])) if options["seed"] is None else (options["seed"],),
        tuple(Kind) if options["schedule"] == "all" else (Kind(options["schedule"]),),
        hows,
        options["step"],
        options["call"],
        options["mishap"],
        options["fault"],
        tuple(options["invariants"]),
    )


def _run(blocks: Sequence[Block], take: Any, tally: _Tally, jobs: int) -> bool:
    """Do the blocks; whether a person interrupted it."""
    with Meter(len(blocks), sys.stderr) as meter:

        def took(rows: Sequence[Row]) -> None:
            take(rows)
            meter.advance(tally.points, sum(tally.violations.values()))

        try:
            explore(blocks, took, jobs)
        except KeyboardInterrupt:
            return True
    return False


def _tell(plan: Plan, tally: _Tally, kept: int, seconds: float) -> None:
    done = tally.points - kept
    before = f" ({kept} of them done before)" if kept else ""
    rate = f", {done / seconds:.0f} a second" if done and seconds > 0 else ""
    counted = f"{len(plan.scenarios)} scenarios, {tally.points} runs{before}, {len(tally.traces)} of them different"
    click.echo(f"{counted}, {seconds:.1f} s{rate}")
    kinds = ", ".join(f"{kind}: {count}" for kind, count in tally.violations.most_common())
    click.echo(f"{tally.violations.total()} violations{f' ({kinds})' if kinds else ''}")


def _violations(tally: _Tally, plan: Plan, options: dict[str, Any]) -> Iterator[str]:
    """Yield each kind of violation in each scenario once, small, with its command."""
    own = "".join(f" --invariant {shlex.quote(name)}" for name in plan.invariants)
    folder = _folder(options["out"]) if tally.first and options["shrinking"] else None
    for number, ((_, kind, _), row) in enumerate(tally.first.items()):
        if number == _SHOWN:
            yield f"\n… and {len(tally.first) - _SHOWN} more; --out FILE keeps them all"
            return
        small = row
        # One's own invariants and a missing determinism are not searched for: only the row has them.
        if folder is not None and kind != "nondeterminism" and not plan.invariants:
            ordered = sorted(row.violations, key=lambda violation: violation.kind != kind)
            small = shrink(attrs.evolve(row, violations=tuple(ordered))).stored(folder)
        text = next((violation.text for violation in small.violations if violation.kind == kind), "")
        yield f"\n{kind}: {text}\n  {small.point.command}{own}"


def _folder(out: Path | None) -> Path:
    """Return where small scenarios go: beside the rows, else into a new temporary folder, which stays."""
    if out is not None:
        return out.with_suffix(".violations")
    return Path(tempfile.mkdtemp(prefix="novacode-lab-"))
