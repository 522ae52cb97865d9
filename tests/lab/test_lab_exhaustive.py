"""Every outcome and every way out of a run, stopped thousands of times: not one invariant is broken."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from novacode.lab.explore import explore
from novacode.lab.perform import perform
from novacode.lab.plan import Plan, blocks_of
from novacode.lab.point import How, Point, Row
from novacode.lab.rows import RowFile
from novacode.lab.schedule import Kind

SCENARIOS = (
    "asking",
    "br-074-refusal",
    "br-079-empty-replies",
    "br-080-unknown-stop",
    "failing-tools",
    "given-up",
    "max-seconds",
    "max-turns",
    "not-json",
    "output-limit",
    "parallel",
    "refused",
    "timeout",
    "turned-away",
)
SEEDS = 20
MORE_SEEDS = 30
STOPS = (How.RUN, How.OUTSIDE, How.CALL, How.BOTH)
SURELY_STOPPED = 6.5
"""Of the fifteen runs for each step of a scenario: others are over, or have no call to stop, when the strike comes."""


def _stopped(rows: Sequence[Row]) -> int:
    return sum(row.struck_at is not None and row.point.how is not How.CRASH for row in rows)


def test_they_show_every_way_out_and_every_outcome_a_run_can_have_that_nobody_stops() -> None:
    rows = [perform(Point(name)) for name in SCENARIOS]
    assert len(rows) >= 12
    assert {f"{row.status}/{row.reason}" for row in rows} == {
        "completed/completed",
        "completed/unknown_stop",
        "refused/refusal",
        "failed/authentication",
        "failed/empty_reply",
        "failed/server",
        "limit/max_seconds",
        "limit/max_turns",
        "limit/output_limit",
    }
    assert {outcome for row in rows for outcome in row.outcomes} == {
        "broken",
        "cancelled",
        "denied",
        "disabled",
        "error",
        "hook_denied",
        "invalid",
        "ok",
        "skipped",
        "timeout",
        "unknown_tool",
    }
    # With the floor of the test below: five thousand of its runs at least are stopped.
    assert sum(row.steps for row in rows) * SURELY_STOPPED >= 5_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SCENARIOS)
def test_twenty_schedules_stopped_at_their_steps(name: str) -> None:
    """Each way to stop has five of the twenty schedules: a run is stopped at each step, its calls at every other."""
    rows: list[Row] = []
    for seed in range(SEEDS):
        whole = Point(name, seed, how=STOPS[seed % 4])
        steps = perform(attrs.evolve(whole, how=How.RUN)).steps
        first, stride = (1, 1) if whole.how in (How.RUN, How.OUTSIDE) else (1 + seed // 4 % 2, 2)
        rows += (perform(attrs.evolve(whole, step=step)) for step in range(first, steps + 1, stride))
    assert [row for row in rows if row.violations] == []
    assert _stopped(rows) >= SURELY_STOPPED * perform(Point(name)).steps


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_stopped_runs(tmp_path: Path) -> None:
    """At every step, under thirty schedules of both kinds, in every way, crashes beside them.

    `NOVACODE_LAB_ROWS` names a file that keeps the rows; with it an interrupted job goes on where it was.
    """
    plan = Plan(SCENARIOS, tuple(range(MORE_SEEDS)), tuple(Kind))
    file = RowFile(Path(os.environ.get("NOVACODE_LAB_ROWS", tmp_path / "rows.jsonl")))
    stopped, broken = 0, []

    def count(rows: Sequence[Row]) -> None:
        nonlocal stopped
        stopped += _stopped(rows)
        broken.extend(row for row in rows if row.violations)

    def take(rows: Sequence[Row]) -> None:
        file.add(rows)
        count(rows)

    count(file.rows)
    try:
        explore(list(blocks_of(plan, frozenset(row.point for row in file.rows))), take, jobs=2)
    finally:
        file.close()
    print(f"\n{stopped} stopped runs, {len(broken)} with a violation")
    assert broken == []
    assert stopped >= 100_000
