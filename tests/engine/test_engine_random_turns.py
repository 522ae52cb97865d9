"""Turns nobody has thought of, under schedules nobody has chosen, attacked at any step: the promise holds.

The scenarios of `test_engine_attack.py` are cancelled at every step; here the scenarios are made up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from doubles.fake_model import Break, Pause, broken, call, end, say
from doubles.records import DONE, Hook
from doubles.schedule import run_seeded
from doubles.world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novacode.engine.gate import Overlap, conflict
from novacode.engine.limits import Limits
from novacode.lab.invariants import judge
from novacode.lab.point import How, Point
from novacode.lab.scenario import python_scenario
from novacode.lab.trial import carry_out
from novacode.values.events import CallReady, RunEnded
from novacode.values.request import StopReason

_paths = st.lists(st.sampled_from(["x", "y", "d", "d/x"]), max_size=2, unique=True)
_kinds = st.sampled_from(["work", "work", "work", "asks", "denied", "off", "nothing", "slow"])
_works = st.fixed_dictionaries(
    {},
    optional={
        "takes": st.sampled_from([0, 0, 1, 2, 3]) | st.just("long"),
        "cleanup": st.sampled_from([0, 1, 4]),
        "fails": st.sampled_from(["", "tool", "bug", "exit", "swallow", "group"]),
        "reads": _paths,
        "writes": _paths,
        "prints": st.just("some output"),
    },
)
_steps = st.one_of(
    st.tuples(_kinds, _works),
    st.tuples(_kinds, _works),
    st.just("broken"),
    st.sampled_from([Pause(1), Pause(2)]),
    st.just("text"),
)
_ends = st.one_of(
    st.sampled_from([StopReason.TOOL_USE, StopReason.TOOL_USE, StopReason.END, StopReason.OUTPUT_LIMIT]),
    st.just(Break()),
)
_turns = st.lists(st.tuples(st.lists(_steps, max_size=5), _ends), min_size=1, max_size=3)
_options = st.fixed_dictionaries(
    {"overlap": st.sampled_from(Overlap)},
    optional={
        "limits": st.builds(Limits, max_turns=st.just(2), max_seconds=st.sampled_from([None, 2.5, 4.0])),
        "timeout": st.just(2.0),
    },
)
_answers = st.sampled_from([None, True, False])


_REWRITE = {"takes": 1, "writes": ["x"]}
_REWRITTEN = ("t0c0", "t0c2")


def _reply(turn: int, steps: list[Any], ending: Any) -> list[Any]:
    reply: list[Any] = []
    for index, step in enumerate(steps):
        match step:
            case "broken":
                reply.append(broken(f"t{turn}c{index}", "work", index))
            case "text":
                reply.append(say("text", index))
            case Pause():
                reply.append(step)
            case (kind, arguments):
                reply.append(call(f"t{turn}c{index}", kind, index, **arguments))
    reply.append(ending if isinstance(ending, Break) else end(ending))
    return reply


def _scenario(turns: list[Any], options: dict[str, Any], answers: bool | None, rewriting: bool) -> Callable[[], World]:
    def make() -> World:
        replies = [_reply(number, steps, ending) for number, (steps, ending) in enumerate(turns)]
        limits = options.get("limits", Limits()) if answers is not None else Limits(max_seconds=9.0)
        world = World([*replies, DONE], **{**options, "limits": limits})
        if answers is not None:
            world.answer_all(allowed=answers)
        if rewriting:
            hook = Hook(world.log, rewrite=_REWRITE, seconds=1, only=_REWRITTEN)
            world.agent.services = attrs.evolve(world.services, hooks=hook)
        return world

    return make


def _overlaps(world: World, options: dict[str, Any], rewriting: bool) -> list[str]:
    """Return the calls that ran beside each other, or in the wrong order, and must not have."""
    if options["overlap"] is Overlap.ALL:
        return []
    ready = {event.call.id: event.call.arguments for event in world.of(CallReady)}
    rewritten = {call_id for call_id in _REWRITTEN if rewriting and call_id in ready}
    claims = {
        call_id: world.tools[0].claims(_REWRITE if call_id in rewritten else arguments, world.services.workspace)
        for call_id, arguments in ready.items()
    }
    spans = {
        call_id: (world.log.index(f"begin {call_id}"), world.log.index(f"end {call_id}"))
        for call_id in ready
        if f"begin {call_id}" in world.log
    }
    found = []
    for one, other in itertools.combinations(spans, 2):
        if one[:2] != other[:2] or not (options["overlap"] is Overlap.NONE or conflict(claims[one], claims[other])):
            continue
        apart = spans[one][1] < spans[other][0]
        if not apart and not ({one, other} & rewritten and spans[other][1] < spans[one][0]):
            found.append(f"{other} began before {one} had ended")
    return found


def _scenario_and_order(
    turns: list[Any], options: dict[str, Any], answers: bool | None, rewriting: bool
) -> tuple[Callable[[], World], Callable[[World], list[str]]]:
    return _scenario(turns, options, answers, rewriting), lambda world: _overlaps(world, options, rewriting)


_scenarios = st.builds(_scenario_and_order, _turns, _options, _answers, st.booleans())
_seeds = st.integers(0, 2**16)


def _attack(scenario: Any, seed: int, where: float, how: str) -> None:
    make, overlaps = scenario
    worlds: list[World] = []

    def noted() -> World:
        worlds.append(make())
        return worlds[-1]

    made = python_scenario("random", noted)
    steps = carry_out(made, Point("random", seed)).steps
    step = 1 + int(where * (steps - 1)) if how else None
    trial = carry_out(made, Point("random", seed, how=How(how or "run"), step=step))
    assert [*judge(trial), *overlaps(worlds[-1])] == []


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(_scenarios, _seeds, st.floats(0, 1), st.sampled_from(["", *How]))
def test_any_turn_under_any_schedule_stopped_anywhere(scenario: Any, seed: int, where: float, how: str) -> None:
    _attack(scenario, seed, where, how)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(_scenarios, _seeds, st.floats(0, 1), st.sampled_from(["", *How]))
def test_many_turns_under_any_schedule_stopped_anywhere(scenario: Any, seed: int, where: float, how: str) -> None:
    _attack(scenario, seed, where, how)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(_turns, st.lists(_seeds, min_size=2, max_size=2, unique=True))
def test_the_history_does_not_depend_on_the_schedule(turns: list[Any], seeds: list[int]) -> None:
    """Whatever runs first: the same messages with the same results in the same order."""
    histories = []
    for seed in seeds:
        worlds: list[World] = []

        async def main(worlds: list[World] = worlds) -> None:
            worlds.append(_scenario(turns, {"overlap": Overlap.DECLARED}, True, False)())
            await worlds[0].agent.run("go")

        run_seeded(main, seed)
        assert len(worlds[0].of(RunEnded)) == 1
        histories.append(worlds[0].talk.history)
    assert histories[0] == histories[1]
