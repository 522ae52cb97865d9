"""The schedules: reproducible, different, and without a trace afterwards."""

from __future__ import annotations

import pytest
import trio
from trio._core import _run

from novacode.lab.schedule import HORIZON, Kind, Schedule, run_scheduled


def order(schedule: Schedule, tasks: int = 6, rounds: int = 3) -> list[int]:
    """Return in which order tasks that are always ready took their steps."""
    taken: list[int] = []

    async def work(number: int) -> None:
        for _ in range(rounds):
            taken.append(number)
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(work, number)

    run_scheduled(main, schedule)
    return taken


@pytest.mark.parametrize("kind", Kind)
def test_canary_one_seed_gives_one_order(kind: Kind) -> None:
    """Fails loudly where trio has renamed what the lab relies on: the switch, the generator, the age of a task."""
    orders = [order(Schedule(kind, seed)) for seed in range(8) for _ in range(3)]
    assert all(orders[at] == orders[at + 1] == orders[at + 2] for at in range(0, 24, 3))
    assert len({tuple(taken) for taken in orders}) > 4


def test_priorities_last_and_shuffles_do_not() -> None:
    """Under priorities tasks keep their order from round to round, but for the few that lose it; a shuffle forgets."""

    def kept(kind: Kind) -> int:
        same = 0
        for seed in range(20):
            taken = order(Schedule(kind, seed), tasks=6, rounds=4)
            rounds = [tuple(taken[at : at + 6]) for at in range(0, 24, 6)]
            same += sum(rounds[at] == rounds[at + 1] for at in range(3))
        return same

    assert kept(Kind.PCT) > 30 > 5 > kept(Kind.UNIFORM)


def test_every_order_of_a_batch_is_to_be_had() -> None:
    """Of three tasks each of the six orders comes up, under both kinds."""
    for kind in Kind:
        assert len({tuple(order(Schedule(kind, seed), tasks=3, rounds=1)) for seed in range(80)}) == 6


def test_trio_is_afterwards_as_it_was() -> None:
    before = (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r)

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_scheduled(fail, Schedule())
    assert (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r) == before


def test_acts_come_before_their_steps() -> None:
    seen: list[str] = []

    async def main() -> None:
        for number in range(3):
            seen.append(f"step {number}")
            await trio.lowlevel.checkpoint()

    steps = run_scheduled(main, Schedule()).steps
    seen.clear()
    ran = run_scheduled(main, Schedule(), {step: lambda: seen.append("act") for step in (1, steps)})
    assert ran.steps == steps
    assert seen[0] == seen[-1] == "act"
    assert seen.count("act") == 2


def test_what_comes_to_no_end_is_ended() -> None:
    """Waiting for ever, and going round in circles without time passing."""

    async def waits() -> None:
        await trio.sleep_forever()

    async def turns() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    assert run_scheduled(waits, Schedule()).hung
    assert run_scheduled(turns, Schedule()).hung

    async def long() -> None:
        await trio.sleep(HORIZON - 1)

    assert not run_scheduled(long, Schedule()).hung
