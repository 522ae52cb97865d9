"""How much a run puts up with: requests and streams have budgets of their own, and only a whole reply renews them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from doubles.fake_model import Break, FakeModel, call, end, say
from doubles.records import DONE, TOOL_USE
from doubles.world import World

from novacode.engine.patience import Patience
from novacode.errors import ModelFailed
from novacode.models.backoff import GiveUp, RetryLimits, Stage, Wait, decide
from novacode.values.events import AttemptDropped, RunEnded, RunStatus
from novacode.values.failure import Failure, FailureKind
from novacode.values.request import ModelRequest

BUSY = Failure(FailureKind.OVERLOADED, "busy", retryable=True)
LIMITS = RetryLimits(requests=3, streams=2, longest=60)

Reply = Sequence[Any] | Failure


class Turning(FakeModel):
    """Where a reply is a failure, the request is turned away with it."""

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        if isinstance(self.replies[0], Failure):
            self.requests.append(request)
            await trio.lowlevel.checkpoint()
            raise ModelFailed(self.replies.pop(0))
        async with super().stream(request) as stream:
            yield stream


def world_of(*replies: Reply, seed: int = 1) -> World:
    chance = random.Random(seed)
    model = Turning([], [])
    model.replies = [reply if isinstance(reply, Failure) else list(reply) for reply in replies]
    retry = lambda stage, times, failure: decide(stage, times, failure, chance.random(), LIMITS)  # noqa: E731
    return World(services={"model": model, "retry": retry})


def asked(world: World) -> int:
    return len(world.services.model.requests)  # type: ignore[attr-defined]


BROKEN = [say("part"), Break()]


async def test_a_request_that_is_turned_away_uses_up_no_stream_budget(autojump_clock: Any) -> None:
    world = world_of(BUSY, BROKEN, BUSY, BROKEN, BUSY, [say("whole"), end()])
    ended = await world.agent.run("go")
    assert (ended.status, ended.text, asked(world)) == (RunStatus.COMPLETED, "whole", 6)


@pytest.mark.parametrize(("reply", "requests"), [(BUSY, 4), (BROKEN, 3)], ids=["requests", "streams"])
async def test_each_budget_is_bounded_and_its_end_is_told(reply: Reply, requests: int, autojump_clock: Any) -> None:
    world = world_of(*[reply] * 9)
    ended = await world.agent.run("go")
    assert (ended.status, asked(world)) == (RunStatus.FAILED, requests)
    assert ended.failure is not None
    assert ended.failure.message.endswith(f"(given up after {requests} attempts)")


async def test_a_whole_reply_renews_both(autojump_clock: Any) -> None:
    worst = [BUSY, BUSY, BUSY, BROKEN, BROKEN]
    world = world_of(*worst, [call("a", "work", 1), TOOL_USE], *worst, DONE)
    assert (await world.agent.run("go")).status is RunStatus.COMPLETED


async def test_replies_that_break_before_and_after_a_call_share_a_budget(autojump_clock: Any) -> None:
    """Else a server could keep a run going for the product of the two."""
    world = world_of(BROKEN, [call("a", "work", 1), Break()], BROKEN, DONE)
    ended = await world.agent.run("go")
    assert (ended.status, asked(world)) == (RunStatus.FAILED, 3)


async def test_br_094_a_wait_that_is_too_long_is_told_with_its_figure(autojump_clock: Any) -> None:
    world = world_of(Failure(FailureKind.RATE_LIMIT, "slow down", retryable=True, retry_after=3600.0), DONE)
    ended = await world.agent.run("go")
    assert (ended.reason, asked(world), trio.current_time() < 60) == ("rate_limit", 1, True)
    assert ended.failure is not None
    assert ended.failure.message == "slow down (it asks to wait 3600 s; the longest wait is 60 s)"


async def test_br_094_the_wait_is_shown_and_kept(autojump_clock: Any) -> None:
    world = world_of(Failure(FailureKind.RATE_LIMIT, "slow down", retryable=True, retry_after=3.0), DONE)
    await world.agent.run("go")
    [dropped] = [stamped for stamped in world.events if isinstance(stamped.event, AttemptDropped)]
    assert 3.0 <= dropped.event.delay <= 3.3
    assert world.events[-1].at >= dropped.at + dropped.event.delay


async def test_br_094_a_wait_is_cancelled_at_once(autojump_clock: Any) -> None:
    world = world_of(Failure(FailureKind.RATE_LIMIT, "slow down", retryable=True, retry_after=50.0), DONE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(5)
        world.agent.cancel("enough")
    assert (world.of(RunEnded)[0].reason, asked(world)) == ("enough", 1)
    assert world.events[-1].at == 5.5  # the sweep of the world takes half a second


async def test_the_same_seed_waits_the_same(autojump_clock: Any) -> None:
    async def delays(seed: int) -> list[float]:
        world = world_of(BUSY, BUSY, BROKEN, DONE, seed=seed)
        await world.agent.run("go")
        return [dropped.delay for dropped in world.of(AttemptDropped)]

    assert await delays(7) == await delays(7) != await delays(8)


def test_patience_counts_each_stage_by_itself() -> None:
    seen: list[tuple[Stage, int]] = []

    def retry(stage: Stage, times: int, failure: Failure) -> Wait | GiveUp:
        seen.append((stage, times))
        return Wait(0)

    patience = Patience(retry)
    for stage in (Stage.REQUEST, Stage.STREAM, Stage.REQUEST):
        patience.lost(BUSY, stage)
    patience.renew()
    patience.lost(BUSY, Stage.REQUEST)
    assert seen == [(Stage.REQUEST, 1), (Stage.STREAM, 1), (Stage.REQUEST, 2), (Stage.REQUEST, 1)]
