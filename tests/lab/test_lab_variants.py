"""Scenarios with parameters in their names."""

from __future__ import annotations

import random

import pytest

from novacode.errors import InputError
from novacode.lab.perform import perform
from novacode.lab.point import Point
from novacode.lab.scenario import find_scenario
from novacode.lab.variants import Variant, draw_of
from novacode.models.script_steps import CallStep


def calls_of(name: str) -> list[CallStep]:
    blueprint = find_scenario(name).blueprint
    assert blueprint is not None
    return [step for step in blueprint.script.turns[0].steps if isinstance(step, CallStep)]


def tools_of(name: str) -> list[tuple[str, float, float]]:
    blueprint = find_scenario(name).blueprint
    assert blueprint is not None
    return [(tool.when, tool.takes, tool.cleanup) for tool in blueprint.simulation.tools]


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_calls_are_made_as_often_as_wanted_and_numbered(number: int) -> None:
    found = calls_of(f"fan-out?calls={number}")
    assert [call.raw for call in found] == [f'{{"command": "work {at}"}}' for at in range(1, number + 1)]


def test_a_name_says_all_that_a_variant_is() -> None:
    variant = Variant(4, "exp(2)", "uniform(0,2)", 1.5, 7)
    name = variant.named("fan-out")
    assert name == "fan-out?calls=4&takes=exp(2)&cleanup=uniform(0,2)&grace=1.5&draw=7"
    assert tools_of(name) == tools_of(name)


def test_nothing_changed_is_the_scenario_itself() -> None:
    assert Variant(draw=9).named("fan-out") == "fan-out"


def test_each_call_draws_its_own_seconds_from_the_seed() -> None:
    first, second = (tools_of(f"fan-out?calls=3&takes=exp(2)&draw={draw}") for draw in (1, 2))
    own = [takes for _, takes, _ in first[:3]]
    assert len(set(own)) == 3
    assert own != [takes for _, takes, _ in second[:3]]


def test_what_needs_longer_than_the_grace_is_killed_then() -> None:
    assert {cleanup for _, _, cleanup in tools_of("slow-cleanup?grace=0.25")} == {0.25}


def test_a_subject_with_wildcards_in_it_is_meant_as_it_is() -> None:
    name = "parallel?takes=2"
    assert ("ls", 2.0) in [(when, takes) for when, takes, _ in tools_of(name)]
    assert perform(Point(name)).violations == ()


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("2", 2, 2), ("exp(2)", 0, 3600), ("uniform(1, 3)", 1, 3), ("lognormal(2,0.5)", 0, 3600), ("0.5", 0.5, 0.5)],
)
def test_distributions_give_seconds_in_their_range(text: str, least: float, most: float) -> None:
    draw, chance = draw_of(text), random.Random(1)
    drawn = [draw(chance) for _ in range(200)]
    assert all(least <= seconds <= most for seconds in drawn)
    assert all(seconds == round(seconds, 3) for seconds in drawn)


@pytest.mark.parametrize(
    "text", ["", "two", "exp(0)", "exp(-1)", "uniform(3,1)", "uniform(1)", "exp(1,2)", "-1", "1.2.3", "sin(1)", "exp()"]
)
def test_what_is_no_distribution_is_shown(text: str) -> None:
    with pytest.raises(InputError, match="is no distribution of seconds; write 2, exp"):
        draw_of(text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fan-out?colour=red", "has the parameter 'colour'; there are calls, cleanup, draw, grace, takes"),
        ("fan-out?calls=many", "a parameter that is no number"),
        ("fan-out?calls=0", "calls are 1 to 200"),
        ("fan-out?grace=nan", "grace is 0 or more seconds"),
        ("fan-out?takes=long", "'long' is no distribution"),
        ("gone?calls=2", "is no scenario"),
        ("module:function?calls=2", "is in Python: it makes its own variants"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        find_scenario(name)


def test_a_variant_is_explored_like_any_other() -> None:
    row = perform(Point("fan-out?calls=3&takes=exp(2)&draw=5", step=30))
    assert row.violations == ()
    assert "--step 30" in row.point.command
    assert "'fan-out?calls=3&takes=exp(2)&draw=5'" in row.point.command
