"""Exploring: no violation in the runtime, nothing lost, and the same whoever does it."""

from __future__ import annotations

import io
import json
from importlib import resources
from pathlib import Path

import attrs
import pytest

from novacode.errors import InputError, UsageError
from novacode.lab.explore import WorkerLost, explore, explore_block
from novacode.lab.invariants import judge, load_invariant
from novacode.lab.perform import row_of
from novacode.lab.plan import Block, Plan, blocks_of
from novacode.lab.point import How, Point, Row, Violation
from novacode.lab.rows import RowFile, as_csv, read_rows
from novacode.lab.scenario import find_scenario, packaged
from novacode.lab.schedule import Kind
from novacode.lab.trial import Trial, carry_out

SMALL = ("br-018-stopped-while-asking", "br-070-cut-write")


def explored(plan: Plan, jobs: int = 1) -> list[Row]:
    rows: list[Row] = []
    explore(list(blocks_of(plan)), rows.extend, jobs)
    return rows


@pytest.mark.parametrize("name", ["asking", "parallel", "refused", "max-seconds"])
@pytest.mark.timeout(120)
def test_no_step_is_a_bad_one_to_stop_at(name: str) -> None:
    """In five ways, at every step: the run, from outside, one call, a call and then the run, a crash."""
    rows = explored(Plan((name,)))
    assert [row for row in rows if row.violations] == []
    assert {row.point.how for row in rows} == set(How)


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged())
@pytest.mark.timeout(3600)
def test_no_step_under_twenty_schedules(name: str, record_property: pytest.FixtureRequest) -> None:
    """All together these are well over a hundred thousand cancelled runs."""
    rows = explored(Plan((name,), tuple(range(20))), jobs=2)
    record_property("runs", len(rows))  # type: ignore[operator]
    print(f"\n{name}: {len(rows)} runs")
    assert [row for row in rows if row.violations] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged())
@pytest.mark.timeout(3600)
def test_no_step_with_any_mishap(name: str) -> None:
    rows = explored(Plan((name,), hows=(How.RUN, How.CRASH), mishap="all"), jobs=2)
    assert [row for row in rows if row.violations] == []


@pytest.mark.parametrize("how", [How.OUTSIDE, How.CRASH])
def test_a_hook_that_breaks_while_the_run_is_cancelled_from_outside(how: How) -> None:
    """What comes out beside the cancellation is one error that names the bug, and no group."""
    rows = explored(Plan(("br-001-interrupted-shell",), hows=(how,), mishap="hook-crash@1"))
    assert [row for row in rows if row.violations] == []


def test_a_script_that_is_not_given_what_it_expects_is_a_violation(tmp_path: Path) -> None:
    """Told of the run that nobody stops, and of that alone."""
    right = resources.files("novacode.lab") / "scenarios" / "br-095-lost-after-an-effect.toml"
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(right.read_text().replace('result = "made"', 'result = "never"'))
    rows = explored(Plan((str(wrong),), hows=(How.RUN,)))
    (broken,) = (row for row in rows if row.violations)
    assert broken.point.step is None
    (violation,) = broken.violations
    assert violation.kind == "expected"
    assert "expects 'never' in the results it is given; it found " in violation.text


def test_a_pool_gives_the_same_rows() -> None:
    plan = Plan(SMALL[:1], (0,), tuple(Kind), (How.RUN,))
    alone, together = explored(plan), explored(plan, jobs=2)
    assert len(alone) == len(together) > 80
    assert {row.point: row for row in alone} == {row.point: row for row in together}


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    """Half of it, and half a line: the rest is done, and the file is as if it had never been interrupted."""
    plan, path = Plan(SMALL[:1], hows=(How.RUN, How.CRASH)), tmp_path / "rows.jsonl"
    whole = explored(plan)
    file = RowFile(path)
    file.add(whole[:50])
    file.close()
    path.write_bytes(path.read_bytes() + b'{"scenario": "half a li')
    file = RowFile(path)
    assert file.rows == whole[:50]
    explore(list(blocks_of(plan, frozenset(row.point for row in file.rows))), file.add)
    file.close()
    rows, _ = read_rows(path)
    assert len(rows) == len(whole)
    assert {row.point: row for row in rows} == {row.point: row for row in whole}


def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(InputError, match="line 1 is no row"):
        RowFile(path)
    assert path.read_text() == "my notes\n"


def test_rows_survive_json_and_csv() -> None:
    row = explored(Plan(SMALL[:1], hows=(How.CALL,), step=20))[-1]
    broken = attrs.evolve(row, violations=(Violation("alive", 'something, "quoted"'), Violation("gate", "x")))
    assert Row.load(json.loads(json.dumps(broken.dump()))) == broken
    text = io.StringIO()
    as_csv([row, broken], text)
    header, first, second = text.getvalue().splitlines()
    assert header.startswith("scenario,seed,schedule,how,step,")
    assert "alive gate" in second
    assert "alive gate" not in first


def test_an_invariant_of_ones_own_is_judged_too() -> None:
    trial = carry_out(find_scenario("parallel"), Point("parallel"))
    own = load_invariant("test_lab_explore:no_shell")
    assert judge(trial, [own]) == (Violation("no_shell", "call_s1_7 ran a shell"),)
    rows = explored(Plan(("parallel",), step=0, hows=(How.RUN,), invariants=("test_lab_explore:no_shell",)))
    assert [violation.kind for row in rows for violation in row.violations] == ["no_shell"]
    for name in ("no_module", "test_lab_explore:nothing", "test_lab_explore:SMALL"):
        with pytest.raises(UsageError):
            load_invariant(name)


def no_shell(trial: Trial):
    """The invariant of the example in docs/lab.md."""
    for call in trial.stage.ran.values():
        if call.name == "shell":
            yield f"{call.id} ran a shell"


def test_what_is_not_the_same_twice_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab that cannot repeat itself says so: here every trial is given a trace of its own."""
    count = iter(range(10**6))

    def unsteady(trial: Trial, violations: tuple[Violation, ...] = ()) -> Row:
        return attrs.evolve(row_of(trial, violations), trace=str(next(count)))

    monkeypatch.setattr("novacode.lab.perform.row_of", unsteady)
    rows = explore_block(Block(Point(SMALL[0]), step=5, whole=True))
    assert {violation.kind for row in rows for violation in row.violations} == {"nondeterminism"}


def test_a_worker_that_dies_loses_nothing_that_was_done() -> None:
    plan = Plan((*SMALL, "test_lab_explore:deadly"), hows=(How.RUN,))
    rows: list[Row] = []
    with pytest.raises(WorkerLost):
        explore(list(blocks_of(plan)), rows.extend, 2)
    assert all(row.point.scenario in SMALL for row in rows)


def deadly():
    """A scenario that takes its process with it."""
    import os

    os._exit(3)
