"""What a point costs, as a ratio: to the plain simulated run, and of two processes to one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest
import trio
import trio.testing

from novacode.lab.explore import explore
from novacode.lab.mishaps import NO_MISHAP
from novacode.lab.perform import perform
from novacode.lab.plan import Plan, blocks_of
from novacode.lab.point import How, Point
from novacode.lab.scenario import find_scenario

NAMES = ("parallel", "asking", "refused", "read-then-edit", "lost-before-a-call", "timeout")


def plain(name: str) -> None:
    """The scenario alone under `trio.run`: no schedule, no strike, no next run, no judgement."""
    stage = find_scenario(name).stage(NO_MISHAP)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.person)
            await stage.agent.run(stage.prompt)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def seconds(what: Callable[[], object]) -> float:
    began = time.process_time()
    what()
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_stopped_run_costs_at_most_half_more_than_a_plain_one() -> None:
    """Over every step of six scenarios, by the time of this process alone; the two are taken in turn."""
    pairs: list[tuple[float, float]] = []
    for name in NAMES:
        steps = perform(Point(name)).steps
        for step in range(1, steps + 1, 3):
            cost = statistics.median(seconds(lambda name=name: plain(name)) for _ in range(3))  # type: ignore[misc]
            point = Point(name, how=How.RUN, step=step)
            pairs.append((cost, seconds(lambda point=point: perform(point))))  # type: ignore[misc]
    ratio = sum(stopped for _, stopped in pairs) / sum(cost for cost, _ in pairs)
    print(f"\na stopped run costs {ratio:.2f} of a plain one; {1 / statistics.mean(s for _, s in pairs):.0f} a second")
    assert ratio <= 1.5


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_processes_do_nearly_twice_as_much() -> None:
    """On a machine with two free cores; the best of three pairs, since others may be using them."""
    blocks = list(blocks_of(Plan(NAMES, (0, 1, 2), hows=(How.RUN, How.OUTSIDE))))

    def took(jobs: int) -> float:
        began = time.monotonic()
        explore(blocks, lambda rows: None, jobs)
        return time.monotonic() - began

    best = max(took(1) / took(2) for _ in range(3))
    print(f"\ntwo processes are {best:.2f} times as fast as one")
    assert best >= 1.8
