"""A person wants the conversation shorter: a run without a prompt, which does that and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from doubles.fake_model import Pause, call, end, say
from doubles.reader import Reader
from doubles.records import DONE, TOOL_USE
from doubles.rules import violations
from doubles.spoken import PROTOCOLS
from doubles.world import World

from novacode.authority.hooks import NoHooks
from novacode.errors import UsageError
from novacode.protocols.summary import codec_for
from novacode.values.compaction import compacted
from novacode.values.events import Compacted, Level, Notice, RunBegan, RunEnded, RunStatus
from novacode.values.history import History
from novacode.values.parts import User
from novacode.values.request import ModelRequest


def working(turns: int) -> list[Sequence[Any]]:
    replies = [[say("x" * 500), call(f"c{turn}", "work", 1, gives=2_000), TOOL_USE] for turn in range(turns)]
    return [*replies, DONE]


def world_of(model: Reader, window: int | None = None, **services: Any) -> World:
    world = World(services={"model": model} | services, window=window)
    world.model = model
    return world


def refused(history: History) -> list[str]:
    bodies = ((name, codec_for(name).encode(ModelRequest("m", "", history)).body) for name in PROTOCOLS)
    return [problem for name, body in bodies for problem in violations(name, body)]


@pytest.mark.parametrize("window", [None, 200_000], ids=["window not known", "far from full"])
async def test_it_is_shortened_whatever_the_window(window: int | None, autojump_clock: Any) -> None:
    """What the person said stays, in every protocol it can be sent, and the next run works on it."""
    world = world_of(Reader(working(6)), window)
    await world.agent.run("go, but never touch setup.py")
    ended = await world.agent.compact("the names of all tests")
    [asked] = world.model.asked_for_summaries
    assert (ended.status, ended.reason, ended.text, ended.turns) == (RunStatus.COMPLETED, "compacted", "", 0)
    assert "for this in it: the names of all tests" in asked.history.items[0].text
    assert asked.tools == ()
    [event] = world.of(Compacted)
    assert event.after_tokens < event.before_tokens / 2
    said, summary, *_ = world.talk.history.items
    assert said == User.said("go, but never touch setup.py")
    assert isinstance(summary, User)
    assert "The task is to go. Work was done." in summary.text
    assert refused(world.talk.history) == []
    assert (await world.agent.run("go on")).text == "done"
    assert refused(world.model.requests[-1].history) == []


async def test_it_is_a_run_of_its_own_without_a_prompt(autojump_clock: Any) -> None:
    """It has an id and an end, is paid for, and adds nothing to what was said."""
    world = world_of(Reader(working(6)))
    first = await world.agent.run("go")
    said = len(world.events)
    ended = await world.agent.compact()
    assert {stamped.run_id for stamped in world.events[said:]} == {"s-r2"}
    assert isinstance(world.events[-1].event, RunEnded)
    assert len(world.of(RunBegan)) == 1
    assert (ended.usage.completion, first.usage.completion) == (5, 35)


async def test_a_short_conversation_stays_as_it_is_and_costs_nothing(autojump_clock: Any) -> None:
    """No model is asked, and what is shortened by itself later still is."""
    world = world_of(Reader([[say("hello"), end()]]))
    for _ in range(2):
        before = world.talk.history
        ended = await world.agent.compact()
        assert (ended.status, ended.reason) == (RunStatus.COMPLETED, "not_compacted")
        assert world.talk.history is before
        await world.agent.run("hi")
    assert world.model.asked_for_summaries == []
    warned = [notice.text for notice in world.of(Notice) if notice.level is Level.WARNING]
    assert len(warned) == 2
    assert all("it stays as it is" in text for text in warned)


@pytest.mark.parametrize("bad", [[end()], [say("half"), call("c99", "work"), TOOL_USE]], ids=["empty", "a call"])
async def test_without_a_usable_summary_outputs_alone_are_shortened(bad: Any, autojump_clock: Any) -> None:
    """Three tries, nothing is executed, and the automatic kind is not given up for it."""
    model = Reader(working(6), summaries=[bad] * 3)
    world = world_of(model, 4_500)
    world.agent._compactor.window = None  # so that nothing happens by itself before
    await world.agent.run("go")
    world.agent._compactor.window = 4_500
    await world.agent.compact()
    assert len(model.asked_for_summaries) == 3
    assert "begin c99" not in world.log
    assert [event.summary for event in world.of(Compacted)] == [""]
    assert not world.agent._compactor.off


async def test_hooks_hear_who_wants_it(autojump_clock: Any) -> None:
    heard: list[tuple[str, str]] = []

    class Hooks(NoHooks):
        async def pre_compact(self, trigger: str, instructions: str = "") -> None:
            heard.append((trigger, instructions))

    world = world_of(Reader(working(6)), hooks=Hooks())
    await world.agent.run("go")
    await world.agent.compact("the ports")
    assert heard == [("manual", "the ports")]


async def test_cancelled_it_changes_nothing_and_the_next_run_works(autojump_clock: Any) -> None:
    """And while it is under way no other run begins."""
    model = Reader(working(6), summaries=[[say("The task"), Pause(1_000), end()]])
    world = world_of(model)
    await world.agent.run("go")
    before, ended = world.talk.history, []

    async def shorten() -> None:
        ended.append(await world.agent.compact())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(shorten)
        await model.asked_for_one.wait()
        await trio.sleep(1)
        with pytest.raises(UsageError, match="still under way"):
            await world.agent.run("meanwhile")
        world.agent.cancel("SIGINT")
    assert (ended[0].status, ended[0].reason, world.talk.history) == (RunStatus.CANCELLED, "SIGINT", before)
    assert (await world.agent.run("again")).text == "done"


async def test_what_a_resume_reads_is_what_the_run_had(autojump_clock: Any) -> None:
    world = world_of(Reader(working(6)))
    await world.agent.run("go")
    before = world.talk.history
    await world.agent.compact()
    [event] = world.of(Compacted)
    assert compacted(before, event) == world.talk.history
