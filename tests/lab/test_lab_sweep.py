"""Sweeps: the same rows wherever they are made, and nothing lost whatever dies."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from click.testing import CliRunner

from novacode.cli.lab_sweep_cmd import command
from novacode.errors import InputError, UsageError
from novacode.lab.executors import cluster, process_pool
from novacode.lab.experiment import ANY, NONE, Experiment, SweepPoint, Swept, points_of
from novacode.lab.report import report_page
from novacode.lab.report_data import read_data
from novacode.lab.sweep import WorkersLost, do_batch, sweep
from novacode.lab.sweep_files import SweepFile
from novacode.lab.variants import Variant

SMALL = Experiment(("fan-out", "slow-cleanup"), 15, (1, 3), ("exp(2)",), ("uniform(0,2)",), (0.5, 5.0), ("running",))


class Here(Executor):
    """Has everything done at once. From its `dies_at`-th batch on it is a pool whose worker has died.

    What is known from the fixture `rows` is not carried out again.
    """

    def __init__(self, dies_at: int | None = None, gives_up: Exception | None = None) -> None:
        self.dies_at = 2 if gives_up else dies_at
        self.death = gives_up or BrokenProcessPool("a worker died")
        self.batches = 0

    def submit(self, function, /, *arguments, **more):  # type: ignore[no-untyped-def]
        future: Future = Future()
        self.batches += 1
        if self.dies_at is not None and self.batches >= self.dies_at:
            future.set_exception(self.death)
        else:
            known = all(point in RESULTS for point in arguments[0])
            future.set_result(_known(arguments[0]) if known else function(*arguments, **more))
        return future


def run(points: Sequence[SweepPoint], *executors: Executor) -> list[Swept]:
    rows: list[Swept] = []
    left = list(executors)
    sweep(points, rows.extend, lambda: contextlib.nullcontext(left.pop(0)))
    return rows


@pytest.fixture(scope="module")
def points() -> list[SweepPoint]:
    return points_of(SMALL)


@pytest.fixture(scope="module")
def rows(points: list[SweepPoint]) -> list[Swept]:
    return do_batch(points)


def test_points_are_the_product_in_one_order(points: list[SweepPoint]) -> None:
    assert len(points) == len(set(points)) == 2 * 15 * 2 * 2
    assert [point.seed for point in points[:15]] == list(range(15))


def test_rows_come_in_the_order_of_the_points(points: list[SweepPoint], rows: list[Swept]) -> None:
    assert run(points, Here()) == rows
    assert [row.point for row in rows] == points


def test_a_run_is_struck_at_the_wanted_phase(rows: list[Swept]) -> None:
    assert {row.row.phase for row in rows} == {"running"}
    assert all(row.row.latency_s is not None and row.row.violations == () for row in rows)


def test_grace_bounds_how_long_a_stop_takes(rows: list[Swept]) -> None:
    most = {
        grace: max(row.row.latency_s or 0 for row in rows if row.point.variant.grace == grace) for grace in (0.5, 5)
    }
    assert most[0.5] == 1.0  # the grace, and half a second of reaping
    assert most[5] > 2.0


@pytest.mark.parametrize("phase", [ANY, NONE, "streaming", "asking"])
def test_phases(phase: str) -> None:
    swept = do_batch(points_of(Experiment(("fan-out",), 5, phases=(phase,))))
    struck = {ANY: 5, NONE: 0, "streaming": 5, "asking": 0}[phase]  # nobody is asked there
    assert sum(row.row.struck_at is not None for row in swept) == struck


def test_what_a_dead_worker_had_is_done_again(points: list[SweepPoint], rows: list[Swept]) -> None:
    executors = [Here(dies_at=2), Here(dies_at=1), Here(dies_at=3), Here()]
    assert run(points, *executors) == rows


def test_workers_that_always_die_are_given_up_on_and_what_was_done_is_kept(points: list[SweepPoint]) -> None:
    done: list[Swept] = []
    executors = [Here(dies_at=2), *(Here(dies_at=1) for _ in range(3))]
    with pytest.raises(
        WorkersLost, match=r"workers died 3 times without finishing anything; next were seeds 10 and on"
    ):
        sweep(points, done.extend, lambda: contextlib.nullcontext(executors.pop(0)))
    assert [row.point for row in done] == points[:25]


def test_a_cluster_that_gives_a_run_up_has_it_done_again(
    monkeypatch: pytest.MonkeyPatch, points: list[SweepPoint], rows: list[Swept]
) -> None:
    """dask tries a few times itself, and then has an error of its own."""
    distributed = pytest.importorskip("distributed", reason="needs dask")
    killed = distributed.KilledWorker("a run", types.SimpleNamespace(address="tcp://a-worker"), 3)
    executors = [Here(gives_up=killed), Here()]

    class Client(contextlib.nullcontext):  # type: ignore[type-arg]
        def get_executor(self, *, pure: bool) -> Executor:
            return executors.pop(0)

    monkeypatch.setattr(distributed, "Client", lambda address, timeout: Client())
    done: list[Swept] = []
    sweep(points, done.extend, lambda: cluster("tcp://somewhere"))
    assert (done, executors) == (rows, [])


def test_a_bug_of_a_scenario_is_not_taken_for_a_dead_worker() -> None:
    with pytest.raises(InputError, match="is no scenario"):
        run(points_of(Experiment(("gone.toml",))), Here())


def test_batches_that_come_early_are_handed_over_in_their_turn(points: list[SweepPoint], rows: list[Swept]) -> None:
    """The first batch comes last of all."""
    others = threading.Semaphore(0)

    class Late(ThreadPoolExecutor):
        def submit(self, function, /, *arguments, **more):  # type: ignore[no-untyped-def]
            return super().submit(_late if arguments[0][0] == points[0] else _early, others, *arguments, **more)

    with Late(5) as executor:
        assert run(points, executor) == rows


def _late(others: threading.Semaphore, batch: Sequence[SweepPoint]) -> list[Swept]:
    for _ in range(4):
        others.acquire()
    return _known(batch)


def _early(others: threading.Semaphore, batch: Sequence[SweepPoint]) -> list[Swept]:
    others.release()
    return _known(batch)


def _known(batch: Sequence[SweepPoint]) -> list[Swept]:
    return [Swept(point, RESULTS[point]) for point in batch]


RESULTS: dict = {}


@pytest.fixture(autouse=True)
def _results(rows: list[Swept]) -> None:
    RESULTS.update({row.point: row.row for row in rows})


def test_rows_come_back_from_their_file(tmp_path: Path, points: list[SweepPoint], rows: list[Swept]) -> None:
    file = SweepFile(tmp_path / "rows.jsonl")
    file.add(rows)
    file.close()
    again = SweepFile(tmp_path / "rows.jsonl")
    assert (again.done, again.left(points)) == (rows, [])
    again.close()


def test_a_torn_line_is_cut_off_and_its_run_done_again(
    tmp_path: Path, points: list[SweepPoint], rows: list[Swept]
) -> None:
    path = tmp_path / "rows.jsonl"
    whole = "".join(json.dumps(row.dump()) + "\n" for row in rows)
    path.write_text(whole[: whole.index("\n", len(whole) // 2) + 200])
    file = SweepFile(path)
    left = file.left(points)
    file.add(run(left, Here()))
    file.close()
    assert path.read_text() == whole
    assert 0 < len(left) < len(points)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"scenario": "plain"}\n', r"line 1 is no row of a sweep: .* Nothing was changed"),
        ("", ""),
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    if words:
        with pytest.raises(InputError, match=words):
            SweepFile(path)
    else:
        SweepFile(path).close()
    assert path.read_text() == text


def test_two_sweeps_are_not_mixed(tmp_path: Path, rows: list[Swept]) -> None:
    file = SweepFile(tmp_path / "rows.jsonl")
    file.add(rows)
    file.close()
    again = SweepFile(tmp_path / "rows.jsonl")
    with contextlib.closing(again), pytest.raises(InputError, match="holds rows of another sweep"):
        again.left(points_of(Experiment(("plain",))))


ARGUMENTS = ["fan-out", "--calls", "1,2", "--takes", "exp(2)", "--phase", "running", "--seeds", "13", "--jobs", "2"]


def test_the_command_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Two processes, a file with half of it, and the three forms of it in the end."""
    out, table = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    invoke = CliRunner().invoke
    first = invoke(command, [*ARGUMENTS, "--out", str(out), "--csv", str(table)], standalone_mode=False)
    assert first.return_value == 0, first.output
    whole = out.read_bytes()
    out.write_bytes(whole[: len(whole) // 2])
    second = invoke(command, [*ARGUMENTS, "--out", str(out)], standalone_mode=False)
    assert (second.return_value, out.read_bytes()) == (0, whole)
    assert "of them done before" in second.output
    with table.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 26
    assert "<h2>From the request to quiet</h2>" in report_page(read_data([out]))


def test_parquet_holds_the_same(tmp_path: Path, rows: list[Swept]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    from novacode.lab.sweep_files import as_parquet

    as_parquet(rows, tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [line["trace"] for line in table] == [row.row.trace for row in rows]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fan-out", "--calls", "1,x"], "is not a list of numbers"),
        (["fan-out", "--takes", "soon"], "is no distribution"),
        (["fan-out?calls=2"], "has parameters already"),
        (["gone.toml"], "is no scenario"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(tmp_path: Path, arguments: list[str], words: str) -> None:
    out = tmp_path / "rows.jsonl"
    result = CliRunner().invoke(command, [*arguments, "--out", str(out)])
    assert words in f"{result.output} {result.exception}"
    assert not out.exists()


def test_no_cluster_at_an_address_is_said() -> None:
    pytest.importorskip("distributed", reason="needs dask")
    with pytest.raises(UsageError, match="no dask scheduler answers"), cluster("nonsense://nowhere"):
        pass


EARLY = 139
"""A seed that draws a strike soon after the commands have begun: a tenth of a second into a minute."""


def test_real_processes_are_stopped_and_nothing_of_them_is_left() -> None:
    """A command that obeys, one that is killed when its grace is over, and one that nobody stops."""
    obeying, stubborn, alone = (
        Variant(2, takes, cleanup, grace, 1)
        for takes, cleanup, grace in (("60", "0", 5.0), ("60", "30", 0.1), ("0.05", "0", None))
    )
    wanted = [(obeying, "running"), (stubborn, "running"), (alone, NONE)]
    rows = [swept.row for swept in do_batch([SweepPoint("fan-out", EARLY, *one, real=True) for one in wanted])]
    assert [(row.status, row.phase, row.outcomes, row.violations, row.alive) for row in rows] == [
        ("cancelled", "running", {"cancelled": 2}, (), 0),
        ("cancelled", "running", {"cancelled": 2}, (), 0),
        ("completed", "", {"ok": 2}, (), 0),
    ]


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks for processes in /proc")
def test_ctrl_c_ends_a_real_sweep_at_once_and_leaves_no_process(tmp_path: Path) -> None:
    """The signal comes while commands of a minute run in two workers; the file can be gone on with."""
    out = tmp_path / "rows.jsonl"
    words = ["lab", "sweep", "fan-out", "--real", "--takes", "60", "--phase", "running", "--seeds", "9", "--jobs", "2"]
    sweeping = subprocess.Popen(
        [sys.executable, "-m", "novacode", *words, "--out", str(out)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while len(_sleeping_in(tmp_path)) < 4:  # two workers with two commands each; the test's limit ends the wait
            assert sweeping.poll() is None
            time.sleep(0.05)
        sweeping.send_signal(signal.SIGINT)
        _, said = sweeping.communicate(timeout=50)
    finally:
        sweeping.kill()
    assert (sweeping.returncode, said.splitlines()[-1]) == (130, "Interrupted. The same command goes on from here.")
    assert _sleeping_in(tmp_path) == []
    with contextlib.closing(SweepFile(out)) as file:
        assert out.read_bytes().count(b"\n") == len(file.done) < 9


def _sleeping_in(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            inside = str((process / "cwd").readlink()).startswith(str(folder))
            if inside and (process / "cmdline").read_bytes().startswith(b"sleep\0"):
                found.append(int(process.name))
    return found


def test_what_cannot_be_seen_in_real_time_is_refused() -> None:
    result = CliRunner().invoke(command, ["fan-out", "--real", "--phase", "asking"])
    assert "--real cannot stop at 'asking'" in str(result.exception)


LARGE = Experiment(
    ("fan-out", "slow-cleanup", "parallel", "asking", "timeout"),
    125,
    (1, 4),
    ("exp(2)", "2"),
    ("uniform(0,2)",),
    (0.5, 5.0),
    ("running", "streaming"),
)


@pytest.fixture
def local_cluster() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="needs dask")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        yield made.scheduler_address


def _hash(rows: Sequence[Swept]) -> str:
    return hashlib.sha256("".join(json.dumps(row.dump()) for row in rows).encode()).hexdigest()


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_runs_are_the_same_in_processes_with_one_killed_and_on_a_cluster(local_cluster: str) -> None:
    """The rows of a pool of which a worker is killed in the middle, and those of a dask cluster, byte for byte."""
    points = points_of(LARGE)
    assert len(points) == 10_000
    in_processes: list[Swept] = []
    killed: list[int] = []
    pools: list = []

    @contextlib.contextmanager
    def pool() -> Iterator[Executor]:
        with process_pool(2) as executor:
            pools.append(executor)
            yield executor

    def take(rows: Sequence[Swept]) -> None:
        in_processes.extend(rows)
        if len(in_processes) > 5_000 and not killed:
            killed.append(next(iter(pools[-1]._processes)))
            os.kill(killed[0], signal.SIGKILL)

    sweep(points, take, pool)
    on_a_cluster: list[Swept] = []
    sweep(points, on_a_cluster.extend, lambda: cluster(local_cluster))
    assert (len(killed), len(pools)) == (1, 2)
    assert [row.point for row in in_processes] == points
    assert _hash(in_processes) == _hash(on_a_cluster)
    assert [row.row.violations for row in in_processes if row.row.violations] == []
