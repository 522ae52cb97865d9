"""Background jobs through the pipeline: permission first, one result a call, and nothing of them after the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from doubles.fake_model import Pause, call, say
from doubles.fake_processes import FakeProcesses, Program
from doubles.records import DONE, TOOL_USE, results
from doubles.world import World

from novacode.authority.commands import analyse
from novacode.authority.modes import Mode
from novacode.authority.permissions import Permissions
from novacode.authority.policy import Policy
from novacode.authority.rules import Decision, parse_rule
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.events import Level, Notice, RunEnded, RunStatus
from novacode.values.results import Outcome
from novacode.workspace.paths import Workspace

START = call("start", "shell", 1, command="serve", background=True)


def world_of(tmp_path: Path, *replies: Any, somebody: bool = True, rules: tuple[str, ...] = ("shell",)) -> World:
    allowed = tuple(parse_rule(rule, Decision.ALLOW, "the test") for rule in rules)
    fake = FakeProcesses({"serve": Program((b"up\n",), 1e9, cleanup=0.25)})
    world = World(
        replies,
        somebody=somebody,
        services={
            "tools": Toolset(builtin_tools(lambda line: False)),
            "processes": fake,
            "workspace": Workspace.at(tmp_path),
            "spill": tmp_path / "spill",
            "permissions": Permissions(Policy(Mode.DEFAULT, allowed, analyse), lambda *_: None),
        },
    )
    world.fake = fake  # type: ignore[attr-defined]
    return world


async def test_a_job_lives_from_turn_to_turn_and_ends_with_its_run(
    tmp_path: Path, autojump_clock: trio.abc.Clock
) -> None:
    """Named in a notice and in the end of the run; the process is counted among those that were stopped."""
    look = [call("look", "job_output", 1, job="job_1_1"), TOOL_USE]
    world = world_of(tmp_path, [START, TOOL_USE], look, DONE)
    ended = await world.agent.run("go")
    assert results(world)["look"].text == "(no new output)\n[job_1_1: running]"
    assert (ended.status, ended.jobs, ended.reaped.processes) == (RunStatus.COMPLETED, ("job_1_1",), 1)
    assert world.fake.alive == {}  # type: ignore[attr-defined]
    told = Notice(Level.INFO, "job_1_1 was still running and was stopped with the run: serve")
    assert told in world.of(Notice)
    assert world.events[-1].event == ended


async def test_names_are_never_used_twice_in_a_session(tmp_path: Path, autojump_clock: trio.abc.Clock) -> None:
    """A job of an earlier run is gone, and asking for it says so."""
    old = [call("old", "job_output", 1, job="job_1_1"), call("new", "shell", 2, command="serve", background=True)]
    world = world_of(tmp_path, [START, TOOL_USE], DONE, [*old, TOOL_USE], DONE)
    await world.agent.run("go")
    ended = await world.agent.run("again")
    assert results(world)["old"].outcome is Outcome.ERROR
    assert "no background job 'job_1_1'" in results(world)["old"].text
    assert ended.jobs == ("job_2_1",)


async def test_a_cancelled_run_stops_its_jobs_and_the_next_one_works(
    tmp_path: Path, autojump_clock: trio.abc.Clock
) -> None:
    """Jobs and calls at the same time: the graces do not add up."""
    world = world_of(tmp_path, [START, TOOL_USE], [call("long", "shell", 1, command="serve"), Pause(99), TOOL_USE])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(5)
        world.agent.cancel("SIGINT")
    [ended] = world.of(RunEnded)
    assert (ended.status, ended.jobs, ended.reaped.ms) == (RunStatus.CANCELLED, ("job_1_1",), 250)
    assert (ended.reaped.processes, ended.reaped.tasks) == (2, 1)
    assert world.fake.alive == {}  # type: ignore[attr-defined]
    assert (await world.agent.run("again")).status is RunStatus.COMPLETED


async def test_the_person_can_stop_a_job(tmp_path: Path, autojump_clock: trio.abc.Clock) -> None:
    """The run goes on, the model finds out at its next look, and the end of the run has nothing to name."""
    world = world_of(
        tmp_path, [START, TOOL_USE], [say("x"), Pause(9), call("look", "job_output", 1, job="job_1_1"), TOOL_USE], DONE
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(5)
        assert world.agent.active is not None
        assert [(job.name, job.title) for job in world.agent.active.jobs] == [("job_1_1", "serve")]
        assert not world.agent.stop_job("job_1_2")
        assert world.agent.stop_job("job_1_1")
        await trio.sleep(1)
        assert not world.agent.stop_job("job_1_1")
    [ended] = world.of(RunEnded)
    assert (ended.status, ended.jobs) == (RunStatus.COMPLETED, ())
    assert results(world)["look"].text == "(no new output)\n[job_1_1: stopped]"
    assert not world.agent.stop_job("job_1_1")


@pytest.mark.parametrize("background", [False, True])
async def test_a_job_needs_the_same_permission_as_a_command(
    background: bool, tmp_path: Path, autojump_clock: trio.abc.Clock
) -> None:
    """Nobody to ask: denied, and nothing is started. Looking at jobs and stopping them needs none."""
    asked = call("a", "shell", 1, command="serve", background=background)
    look = (call("b", "job_output", 2, job="job_1_1"), call("c", "job_stop", 3, job="job_1_1"))
    world = world_of(tmp_path, [asked, *look, TOOL_USE], DONE, somebody=False, rules=())
    await world.agent.run("go")
    assert {key: result.outcome for key, result in results(world).items()} == {
        "a": Outcome.DENIED,
        "b": Outcome.ERROR,
        "c": Outcome.ERROR,
    }
    assert world.fake.started == []  # type: ignore[attr-defined]


async def test_what_goes_wrong_in_arguments_is_told_as_for_any_tool(
    tmp_path: Path, autojump_clock: trio.abc.Clock
) -> None:
    """Each with what was expected; nothing is executed."""
    wrong = (call("a", "job_output", 1, job="", wait=-1), call("b", "shell", 2, command="serve", background="yes"))
    world = world_of(tmp_path, [*wrong, TOOL_USE], DONE)
    await world.agent.run("go")
    assert [result.outcome for result in results(world).values()] == [Outcome.INVALID] * 2
    assert "`wait`" in results(world)["a"].text
    assert world.fake.started == []  # type: ignore[attr-defined]
