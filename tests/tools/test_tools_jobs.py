"""Background jobs: they outlive their call and never their run, and what they say is bounded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from doubles.fake_processes import FakeProcesses, Program
from doubles.fake_tool import Bench
from doubles.os_processes import alive, unique

from novacode.errors import ToolFailed
from novacode.grace import Grace
from novacode.tools.jobs import JobOutputTool, JobStopTool
from novacode.tools.shell import ShellTool
from novacode.tools.simulated import simulated_tools
from novacode.workspace.base import Exit
from novacode.workspace.processes import RealProcesses
from novacode.workspace.simulated import ScriptedTool, SimulatedWorld, Simulation

SHELL, OUTPUT, STOP = ShellTool(), JobOutputTool(), JobStopTool()

PROGRAMS = {
    "serve": Program((b"listening\n", b"request\n"), 20),
    "for ever": Program((b"up\n",), 1e9, cleanup=0.25),
    "deaf": Program((b"up\n",), 1e9, cleanup=1e9),
    "quick": Program((b"built\n",), 0.1),
    "broken": Program((b"no such port\n",), 0.1, code=3),
}


@pytest.fixture
def fake(bench: Bench) -> Bench:
    bench.processes = FakeProcesses(PROGRAMS)
    return bench


def processes(bench: Bench) -> FakeProcesses:
    assert isinstance(bench.processes, FakeProcesses)
    return bench.processes


async def test_a_job_outlives_its_call_and_is_read_later(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """The call returns at once with the job's name; each look gives what is new, and at the end how it ended."""
    async with fake.jobs.open():
        said = await fake.run(SHELL, command="serve", background=True)
        assert said == "listening\n[job_1: running]\nIt goes on in the background and is stopped when the run ends."
        assert trio.current_time() == 0.5
        assert await fake.run(OUTPUT, job="job_1") == "(no new output)\n[job_1: running]"
        assert await fake.run(OUTPUT, job="job_1", wait=60) == "request\n[job_1: running]"
        assert trio.current_time() == 10
        assert await fake.run(OUTPUT, job="job_1", wait=60) == "(no new output)\n[job_1: ended with exit code 0]"
        assert trio.current_time() == 20
        assert await fake.run(OUTPUT, job="job_1", wait=60) == "(no new output)\n[job_1: ended with exit code 0]"


async def test_a_wait_for_a_silent_job_is_bounded(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """By what the model asked for."""
    async with fake.jobs.open():
        await fake.run(SHELL, command="for ever", background=True)
        began = trio.current_time()
        assert await fake.run(OUTPUT, job="job_1", wait=7) == "(no new output)\n[job_1: running]"
        assert trio.current_time() - began == 7


async def test_a_job_is_stopped_and_waited_for(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """TERM, the grace, then KILL, like any command; stopping it again is harmless."""
    async with fake.jobs.open():
        for number, (command, takes) in enumerate((("for ever", 0.25), ("deaf", 2.0)), 1):
            await fake.run(SHELL, command=command, background=True)
            began = trio.current_time()
            assert await fake.run(STOP, job=f"job_{number}") == f"(no new output)\n[job_{number}: stopped]"
            assert trio.current_time() - began == takes
            assert await fake.run(STOP, job=f"job_{number}") == f"(no new output)\n[job_{number}: stopped]"
        assert processes(fake).alive == {}


async def test_the_end_of_the_run_is_the_end_of_its_jobs(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """All at the same time: the graces do not add up. Those that had ended, or were stopped before, are not named."""
    async with fake.jobs.open():
        for command in ("deaf", "for ever", "deaf", "quick", "for ever"):
            await fake.run(SHELL, command=command, background=True)
        await fake.run(STOP, job="job_5")
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(2.0)
    assert processes(fake).alive == {}
    assert [job.name for job in fake.jobs.cut_off] == ["job_1", "job_2", "job_3"]


@pytest.mark.parametrize("how", ["cancelled", "raised"])
async def test_no_way_out_leaves_a_job(how: str, fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """A cancellation and a bug, too."""
    with suppress(BaseExceptionGroup), trio.CancelScope() as scope:
        async with fake.jobs.open():
            await fake.run(SHELL, command="for ever", background=True)
            if how == "raised":
                raise KeyError("a bug")
            scope.cancel()
            await trio.sleep_forever()
    assert processes(fake).alive == {}
    assert [job.name for job in fake.jobs.cut_off] == ["job_1"]


@pytest.mark.parametrize(
    ("command", "said"),
    [("quick", "built\n[job_1: ended with exit code 0]"), ("broken", "no such port\n[job_1: ended with exit code 3]")],
)
async def test_what_ends_at_once_is_told_at_once(
    command: str, said: str, fake: Bench, autojump_clock: trio.abc.Clock
) -> None:
    """With its code, so that a server that cannot start is no success."""
    async with fake.jobs.open():
        output = await fake.output(SHELL, command=command, background=True)
    assert output.content[0].text == said  # type: ignore[union-attr]
    assert output.exit_code == PROGRAMS[command].code


async def test_what_cannot_be_started_is_a_failed_call(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """In the words of whoever could not start it."""
    async with fake.jobs.open():
        with pytest.raises(ToolFailed, match="no such program"):
            await fake.run(SHELL, command="nobody knows", background=True)


async def test_a_call_that_is_cancelled_takes_its_job_along(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """Nobody has been told the name of that job."""
    async with fake.jobs.open():
        with trio.move_on_after(0.2) as scope:
            await fake.run(SHELL, command="for ever", background=True)
        assert scope.cancelled_caught
        assert processes(fake).alive == {}
        assert processes(fake).cancelled == ["for ever"]


async def test_a_job_nobody_knows_is_named_with_those_there_are(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """Names are of this run."""
    async with fake.jobs.open():
        with pytest.raises(ToolFailed, match="no background job 'job_9'; this run has none"):
            await fake.run(OUTPUT, job="job_9")
        await fake.run(SHELL, command="quick", background=True)
        with pytest.raises(ToolFailed, match="those of this run are job_1"):
            await fake.run(STOP, job="job_9")


async def test_the_number_of_jobs_is_bounded(fake: Bench, autojump_clock: trio.abc.Clock) -> None:
    """Twenty at a time; one that has ended makes room."""
    async with fake.jobs.open():
        for _ in range(20):
            await fake.run(SHELL, command="for ever", background=True)
        with pytest.raises(ToolFailed, match="20 background jobs"):
            await fake.run(SHELL, command="for ever", background=True)
        await fake.run(STOP, job="job_3")
        assert "[job_21: running]" in await fake.run(SHELL, command="for ever", background=True)


async def test_output_without_end_is_bounded_and_kept_in_a_file(bench: Bench) -> None:
    """Head and tail of what is new, with where the whole is; bytes are counted, lines are not."""

    async def chatter(take: Callable[[bytes], None]) -> Exit:
        for number in range(100):
            take(f"{number:03}".encode() + b"x" * 9_997)
        take(b"the end")
        return Exit(0)

    async with bench.jobs.open():
        job = bench.jobs.start("chatter", chatter, bench.spill)
        await job.ended.wait()
        said = await bench.run(OUTPUT, job="job_1")
        assert said.startswith("000xxx")
        assert said.endswith("the end\n[job_1: ended with exit code 0]")
        assert "left out" in said
        assert len(said) < 31_000
        assert str(bench.spill / "job_1.txt") in said
        assert (bench.spill / "job_1.txt").stat().st_size == 1_000_007
        assert await bench.run(OUTPUT, job="job_1") == "(no new output)\n[job_1: ended with exit code 0]"


async def test_a_job_that_fails_with_a_bug_ends_neither_run_nor_others(bench: Bench) -> None:
    """The bug is its state."""

    async def broken(take: Callable[[bytes], None]) -> Exit:
        await trio.lowlevel.checkpoint()
        raise KeyError("missing")

    async with bench.jobs.open():
        job = bench.jobs.start("broken", broken, bench.spill)
        await job.ended.wait()
        assert await bench.run(OUTPUT, job="job_1") == "(no new output)\n[job_1: failed: KeyError: 'missing']"


async def test_real_jobs_leave_nothing_behind(bench: Bench) -> None:
    """A server with a daemon of its own, and one that ignores TERM: gone when the run is."""
    token = unique()
    bench.processes = RealProcesses(Grace(term=0.3, kill=3))
    with trio.fail_after(20):
        async with bench.jobs.open():
            first = f"setsid sleep {token} & echo up; sleep {token}"
            assert "up\n[job_1: running]" in await bench.run(SHELL, command=first, background=True)
            await bench.run(SHELL, command=f"trap '' TERM; sleep {token}; sleep {token}", background=True)
            assert len([line for line in alive(token) if line.startswith("sleep")]) == 3
        assert alive(token) == []
    assert bench.processes.reaped.survivors == ()


async def test_a_job_works_in_a_simulation_too(tmp_path: Path, bench: Bench, autojump_clock: trio.abc.Clock) -> None:
    """It plays its entry of the table; nothing real is run."""
    server = ScriptedTool("shell", "serve*", "bye\n", takes=9, prints="up\n", cleanup=0.5)
    tools = {tool.spec.name: tool for tool in simulated_tools(SimulatedWorld(tmp_path, Simulation({}, (server,))), _no)}

    async def run(name: str, **arguments: Any) -> str:
        return await bench.run(tools[name], **arguments)

    async with bench.jobs.open():
        assert (await run("shell", command="serve 80", background=True)).startswith("up\n[job_1: running]")
        assert await run("job_output", job="job_1", wait=60) == "bye\n[job_1: ended with exit code 0]"
        await run("shell", command="serve 81", background=True)
        began = trio.current_time()
        assert await run("job_stop", job="job_2") == "(no new output)\n[job_2: stopped]"
        assert trio.current_time() - began == 0.5


def _no(_: str) -> bool:
    return False
