"""The engine, cancelled at every scheduling step. The promise of the project is checked here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from doubles.attack import SCENARIOS, Attack, attacks, perform
from doubles.schedule import run_seeded
from doubles.world import World

from novacode.lab.faults import planted

_FAULTS = (
    "retry-after-a-call",
    "commit-outside-finally",
    "stream-error-in-the-nursery",
    "call-never-settled",
    "completion-order",
    "gate-ignored",
    "denied-goes-on",
    "cleanup-unshielded",
    "questions-kept",
    "answers-not-bound",
    "cancelled-becomes-a-result",
    "ended-before-reaping",
)
"""Those of the lab's catalogue that show in an engine on doubles; `tests/lab` looks for all of them."""


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.timeout(120)
def test_no_step_is_a_bad_one_to_cancel_at(scenario: str, seed: int) -> None:
    """Whole run, from outside, one call, a call and the run, a crash: nothing is left, every call has one result."""
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


@pytest.mark.parametrize("fault", _FAULTS)
@pytest.mark.timeout(120)
def test_faults_of_the_engine_are_found(fault: str) -> None:
    """The attack is only worth something if it finds a broken runtime: each of these must be caught by it."""
    with planted(fault):
        assert any(perform(attack) for attack in _attacks_that_find())


def _attacks_that_find() -> Iterator[Attack]:
    """The runs that nobody stops, then every point of one seed; lazily, since most faults show at once."""
    yield from map(Attack, SCENARIOS)
    for scenario in SCENARIOS:
        yield from attacks(scenario, 0)
