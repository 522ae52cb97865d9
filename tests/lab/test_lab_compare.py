"""The trio runtime beside asyncio executors: the right one shows nothing that is not real, each broken one is found."""

from __future__ import annotations

import asyncio  # the executors that trio is compared with
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from novacode.cli.lab_compare_cmd import command
from novacode.errors import InputError
from novacode.lab.asyncio_loop import VirtualLoop
from novacode.lab.asyncio_variants import RIGHT, VARIANTS
from novacode.lab.compare import EXECUTORS, TRIO, Compared, compare, read_compared, summaries
from novacode.lab.perform import perform
from novacode.lab.point import How, Point, Row
from novacode.lab.rows import read_rows
from novacode.lab.scenario import packaged

SCENARIOS = ("parallel", "broken-call", "max-seconds", "failing-tools", "slow-cleanup")


def rows_of(executor: str, names: Iterable[str] = SCENARIOS, **more: bool) -> list[Compared]:
    return [row for name in names for row in compare(name, executor, **more)]


def kinds_of(rows: Iterable[Compared]) -> set[str]:
    return {violation.kind for each in rows for violation in each.row.violations}


def test_the_runtime_breaks_nothing() -> None:
    """Stopped from outside at each step, and no effect lands after that."""
    (summary,) = summaries(rows_of(TRIO, ("parallel",)))
    assert (summary.kinds, summary.orphans, summary.late_effects, summary.never_quiet) == ({}, 0, 0, 0)


def test_of_the_right_executor_only_what_asyncio_cannot_do_is_told() -> None:
    """A request to stop reaches a call's task only when the run's task has been woken: what is ready goes on first."""
    rows = rows_of("asyncio", packaged())
    (summary,) = summaries(rows)
    assert set(summary.kinds) == {"went-on"}
    assert (summary.orphans, summary.never_quiet) == (0, 0)
    told = [violation.text for each in rows for violation in each.row.violations]
    assert all(text.startswith("a tool was entered after the cancel: ['begin ") for text in told)


def test_what_is_told_of_the_right_executor_is_real() -> None:
    """One that looks, before it enters a tool, whether the run has been asked to stop breaks nothing."""
    (plain,), (checked,) = (summaries(rows_of(name)) for name in ("asyncio", "asyncio-checked"))
    assert plain.kinds.keys() == {"went-on"}
    assert (checked.kinds, checked.orphans, checked.never_quiet) == ({}, 0, 0)
    assert checked.latencies


FOUND = {
    "no-wait": {("alive", "running"), ("executed", "running")},
    "no-cancel": {("alive", "running"), ("effect", "running"), ("executed", "running")},
    "impatient": {("alive", "running")},
    "shielded": {("alive", "running"), ("effect", "running")},
    "swallowing": {("swallowed", "running"), ("went-on", "running")},
    "limit-without-gather": {("alive", "cleanup"), ("executed", "its own end")},
    "first-error-wins": {("crash", "its own end"), ("alive", "running"), ("effect", "running")},
    "completion-order": {("order", "running"), ("order", "its own end")},
    "commit-afterwards": {("pairing", "running"), ("pairing", "queued")},
    "own-result": {("pairing", "running")},
}


@pytest.mark.parametrize("executor", FOUND)
def test_each_broken_executor_is_found_and_where(executor: str) -> None:
    (summary,) = summaries(rows_of(executor))
    assert set(summary.phases) >= FOUND[executor]


def test_every_variant_is_judged_or_known_to_be_right() -> None:
    assert set(VARIANTS) == {*RIGHT, *FOUND}
    assert all(VARIANTS[name].breaks for name in VARIANTS if name != "asyncio")


def test_waiting_for_one_call_after_the_other_is_slower() -> None:
    """Two calls that take long to stop: side by side as long as one, one by one as long as both."""

    def most(executor: str) -> float | None:
        (summary,) = summaries(rows_of(executor, ("max-seconds", "slow-cleanup")))
        return summary.latency(1.0)

    assert most("asyncio") == most(TRIO)
    assert (most("one-by-one") or 0) >= (most("asyncio") or 0)


def test_a_second_request_leaves_calls_behind_that_are_waited_for_one_by_one() -> None:
    assert "alive" in kinds_of(rows_of("one-by-one", ("asking",), twice=True))
    assert "alive" not in kinds_of(rows_of("asyncio", ("asking",), twice=True))


@pytest.mark.parametrize("executor", ["asyncio", "shielded", TRIO])
def test_a_run_is_the_same_each_time(executor: str) -> None:
    assert rows_of(executor, ("slow-cleanup",)) == rows_of(executor, ("slow-cleanup",))


def test_a_run_can_be_had_again_from_its_command() -> None:
    found = next(each for each in rows_of("no-cancel", ("parallel",)) if each.row.violations and each.row.point.step)
    row, arguments = found.row, found.command.split()[3:]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert result.return_value == 0
    assert f"{row.violations[0].kind}: {row.violations[0].text}" in result.output


def test_a_step_that_is_named_shows_all_that_it_broke() -> None:
    """Two violations of one kind too."""
    (row,) = compare("br-059-two-questions", "swallowing", step=7)
    result = CliRunner().invoke(command, row.command.split()[3:], standalone_mode=False)
    told = [f"{violation.kind}: {violation.text}" for violation in row.row.violations]
    assert len(told) == 3
    assert [text for text in told if text not in result.output] == []


def test_rows_come_back_from_their_file(tmp_path: Path) -> None:
    out, table = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    arguments = ["plain", "--executor", "no-wait", "--executor", TRIO, "--out", str(out), "--csv", str(table)]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert result.return_value == 0, result.output
    wanted = rows_of(TRIO, ("plain",)) + rows_of("no-wait", ("plain",))
    assert read_compared(out.read_text(), "rows.jsonl") == wanted
    assert len(table.read_text().splitlines()) == len(wanted) + 1


def test_rows_are_rows_of_the_lab_and_more() -> None:
    """A tool that reads what `explore` writes reads these too; only exploring does not go on with them."""
    compared = next(each for each in compare("parallel", TRIO, step=30))
    explored = perform(Point("parallel", how=How.OUTSIDE, step=30))
    data = compared.dump()
    assert Row.load(data) == explored
    assert data == explored.dump() | {"executor": TRIO, "twice": False, "orphans": 0, "late_effects": 0}


def test_an_exploration_does_not_go_on_with_rows_of_a_comparison(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(next(compare("plain", "asyncio")).dump()) + "\n")
    with pytest.raises(InputError, match=r"line 1 is no row of the lab: .*`lab compare`"):
        read_rows(file)


def test_where_in_a_run_it_broke_is_counted() -> None:
    rows = rows_of("no-cancel", ("parallel",))
    (summary,) = summaries(rows)
    struck = [each.row for each in rows if each.row.struck_at is not None]
    assert sum(at for at, _ in summary.points) == len(struck)
    assert sum(broken for _, broken in summary.points) == sum(bool(row.violations) for row in struck) > 0


def test_what_is_no_row_is_named() -> None:
    good = json.dumps(next(compare("plain", "asyncio")).dump())
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2 is no row of a comparison"):
        read_compared(f"{good}\n{{}}\n", "rows.jsonl")


def test_a_violation_of_the_runtime_is_an_exit_code() -> None:
    """The table of executors ends with 1 only where trio's own row is not clean."""
    result = CliRunner().invoke(command, ["plain", "--executor", TRIO], standalone_mode=False)
    assert (result.return_value, "nothing broken" in result.output) == (0, True)


def test_a_scenario_in_python_is_refused() -> None:
    with pytest.raises(InputError, match="only scripts can be played on other executors"):
        list(compare(f"{__name__}:stage_in_python", "asyncio"))


def stage_in_python() -> None:
    """Named as a scenario above; never called."""


def test_the_order_of_executors_is_that_of_the_table() -> None:
    assert EXECUTORS[:2] == (TRIO, "asyncio")


class TestVirtualLoop:
    def test_time_passes_only_where_nothing_is_ready(self) -> None:
        loop, seen = VirtualLoop(), []

        async def main() -> None:
            await asyncio.sleep(0)
            seen.append(loop.time())
            await asyncio.sleep(3600)
            seen.append(loop.time())

        task = loop.create_task(main())
        loop.play(task.done)
        assert seen == [0.0, 3600.0]

    def test_timeouts_and_gather_work_on_it(self) -> None:
        loop = VirtualLoop()

        async def main() -> list[str]:
            async def late() -> str:
                try:
                    async with asyncio.timeout(1):
                        await asyncio.sleep(2)
                except TimeoutError:
                    return f"timed out at {loop.time():g}"
                return "no"

            return list(await asyncio.gather(late(), asyncio.sleep(3, "slept")))

        task = loop.create_task(main())
        loop.play(task.done)
        assert (task.result(), loop.time()) == (["timed out at 1", "slept"], 3.0)

    def test_what_waits_for_nothing_is_left_over(self) -> None:
        loop = VirtualLoop()
        task = loop.create_task(_forever())
        loop.play(task.done)
        assert (loop.unfinished, loop.hung) == ([task], False)
        loop.put_away()
        assert task.cancelled()

    def test_what_goes_round_in_circles_is_ended(self) -> None:
        loop = VirtualLoop()

        async def circles() -> None:
            while True:  # noqa: ASYNC110 - this is what must not hang
                await asyncio.sleep(0)

        task = loop.create_task(circles())
        loop.play(task.done)
        assert loop.hung
        loop.hung = False
        loop.put_away()


async def _forever() -> None:
    await asyncio.get_running_loop().create_future()
