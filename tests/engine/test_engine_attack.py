"""The engine, cancelled at every scheduling step. The promise of the project is checked here."""

from __future__ import annotations

import pytest
from doubles.attack import SCENARIOS, attacks, perform
from doubles.schedule import run_seeded
from doubles.world import World


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.timeout(120)
def test_no_step_is_a_bad_one_to_cancel_at(scenario: str, seed: int) -> None:
    """Whole run, from outside, and one call: nothing is left, nothing runs twice, every call has one result."""
    found = {attack: broken for attack in attacks(scenario, seed) if (broken := perform(attack))}
    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.timeout(600)
def test_no_step_under_ten_schedules(scenario: str, record_property) -> None:
    """The same under ten schedules; prints how many runs that were."""
    runs = 0
    found = {}
    for seed in range(10):
        for attack in attacks(scenario, seed):
            runs += 1
            if broken := perform(attack):
                found[attack] = broken
    record_property("runs", runs)
    print(f"\n{scenario}: {runs} cancelled runs")
    assert found == {}


def test_one_seed_gives_one_schedule() -> None:
    """The canary of trio's private switch: the same seed gives the same steps and events, other seeds other ones."""

    def trace(seed: int) -> list[str]:
        worlds: list[World] = []

        async def main() -> None:
            worlds.append(SCENARIOS["parallel"]())
            await worlds[0].agent.run("go")

        run_seeded(main, seed)
        return [f"{stamped.at} {stamped.event}" for stamped in worlds[0].events]

    assert trace(7) == trace(7)
    assert len({tuple(trace(seed)) for seed in range(6)}) > 1
