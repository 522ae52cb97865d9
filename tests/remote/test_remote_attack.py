"""The remote attached to an agent that is stopped at every scheduling step: wrong answers never release a call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from remote.remote_stage import RemoteWorld, asking_world

from novacode.lab.faults import planted
from novacode.lab.invariants import judge
from novacode.lab.point import How, Point
from novacode.lab.scenario import python_scenario
from novacode.lab.trial import carry_out

_RESPONSES = ("allow", "deny")


def _attacked(response: str, seed: int) -> Iterator[tuple[Point, list[str]]]:
    """Yield every point of a run under `seed`, with what it broke."""
    yield _carried_out(response, Point(response, seed))
    steps = carry_out(python_scenario(response, lambda: asking_world(response)), Point(response, seed)).steps
    for how in How:
        for step in range(1, steps + 1):
            yield _carried_out(response, Point(response, seed, how=how, step=step))


def _carried_out(response: str, point: Point) -> tuple[Point, list[str]]:
    trial = carry_out(python_scenario(response, lambda: asking_world(response)), point)
    world = trial.stage
    assert isinstance(world, RemoteWorld)
    broken = [f"{violation.kind}: {violation.text}" for violation in judge(trial)]
    allowed = {sent.id for sent in world.sent if sent.reply.get("decision") == "allow"}
    asked = {event.approval_id: event.call.id for event in world.events_asked}
    released = {asked[id] for id in allowed}
    broken += [f"{call} ran and was not allowed" for call in world.released - released]
    return point, [*broken, *world.wrongs]


@pytest.mark.parametrize("response", _RESPONSES)
@pytest.mark.timeout(180)
def test_no_step_is_a_bad_one_to_stop_at_with_the_remote_attached(response: str) -> None:
    """Stopped by Ctrl-C, from outside, call by call, and by a crash; then the next run, with the old answers."""
    found = {point: broken for point, broken in _attacked(response, 0) if broken}
    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("response", _RESPONSES)
@pytest.mark.timeout(900)
def test_the_same_under_ten_schedules(response: str, record_property: pytest.RecordProperty) -> None:
    """The same; prints how many runs that were."""
    runs, found = 0, {}
    for seed in range(10):
        for point, broken in _attacked(response, seed):
            runs += 1
            if broken:
                found[point] = broken
    record_property("runs", runs)
    print(f"\n{response or 'nobody'}: {runs} runs")
    assert found == {}


@pytest.mark.parametrize("fault", ["questions-kept", "answers-not-bound"])
@pytest.mark.timeout(120)
def test_a_broken_desk_is_found(fault: str) -> None:
    """Answers that are bound to nothing, and questions that outlive their run, show in this attack."""
    with planted(fault):
        assert any(broken for _, broken in _attacked("allow", 0))
