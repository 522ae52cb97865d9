"""The engine's scenarios on doubles, attacked by the lab at every scheduling step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from doubles.fake_model import Break, Pause, broken, call, end, say
from doubles.world import World

from novacode.engine.limits import Limits
from novacode.lab.invariants import judge
from novacode.lab.point import How, Point
from novacode.lab.scenario import Scenario, python_scenario
from novacode.lab.trial import carry_out
from novacode.values.request import StopReason

__all__ = ["SCENARIOS", "Attack", "attacks", "perform"]

Attack = Point

_TOOL_USE = end(StopReason.TOOL_USE)


def _plain() -> World:
    return World([[say("one "), say("two"), end()]])


def _parallel() -> World:
    first = [
        say("working"),
        call("a", "work", 1, takes=3, writes=["x"]),
        Pause(1),
        call("b", "work", 2, takes=1),
        call("c", "work", 3, takes=2, writes=["x"], prints="some output"),
        Pause(1),
        call("d", "denied", 4),
        call("e", "nothing", 5),
        call("f", "work", 6, takes="long"),
        _TOOL_USE,
    ]
    return World([first, [say("done"), end()]])


def _asking() -> World:
    first = [
        call("a", "asks", 1, takes=1),
        call("b", "work", 2, takes=2),
        Pause(1),
        call("c", "asks", 3, takes=1),
        _TOOL_USE,
    ]
    world = World([first, [say("done"), end()]])
    world.answer_all(allowed=True)
    return world


def _unanswered() -> World:
    first = [call("a", "asks", 1), call("b", "work", 2, takes=1), _TOOL_USE]
    return World([first, [say("done"), end()]], limits=Limits(max_seconds=5))


def _broken() -> World:
    first = [call("a", "work", 1, takes=1), broken("b", "work", 2), end(StopReason.OUTPUT_LIMIT)]
    return World([first, [call("c", "work", 1), _TOOL_USE], [say("done"), end()]])


def _cut() -> World:
    return World([[say("first half"), end(StopReason.OUTPUT_LIMIT)], [say("second half"), end()]])


def _lost_before() -> World:
    return World([[say("partial"), Pause(1), Break()], [say("whole"), end()]])


def _lost_after() -> World:
    return World([[say("p"), call("a", "work", 1, takes=2), Pause(1), Break()], [say("went on"), end()]])


def _failing() -> World:
    first = [
        call("a", "work", 1, fails="tool"),
        call("b", "work", 2, fails="bug", takes=1),
        call("c", "work", 3, fails="exit"),
        call("d", "work", 4, fails="group", takes=1),
        _TOOL_USE,
    ]
    return World([first, [say("done"), end()]])


def _slow_cleanup() -> World:
    first = [
        call("a", "work", 1, takes=3, cleanup=2),
        call("b", "slow", 2, takes=3, cleanup=5),
        Pause(1),
        call("c", "work", 3, takes=3, fails="group", cleanup=1),
        _TOOL_USE,
    ]
    return World([first, [say("done"), end()]])


def _swallowing() -> World:
    first = [call("a", "work", 1, takes=3, fails="swallow"), call("b", "work", 2, takes=1), _TOOL_USE]
    return World([first, [call("c", "work", 1, takes=1), _TOOL_USE], [say("done"), end()]])


def _timing_out() -> World:
    first = [call("a", "slow", 1, takes=9, prints="tick"), call("b", "work", 2, takes=1), _TOOL_USE]
    return World([first, [say("done"), end()]], timeout=2.0)


SCENARIOS: dict[str, Callable[[], World]] = {
    "plain": _plain,
    "parallel": _parallel,
    "asking": _asking,
    "unanswered": _unanswered,
    "broken call": _broken,
    "output limit": _cut,
    "stream lost before a call": _lost_before,
    "stream lost after a call": _lost_after,
    "failing tools": _failing,
    "slow clean-up": _slow_cleanup,
    "swallowing tool": _swallowing,
    "timeout": _timing_out,
}


def attacks(scenario: str, seed: int, hows: Sequence[How] = tuple(How)) -> Iterator[Attack]:
    """Yield every point at which a run of `scenario` under `seed` can be attacked."""
    steps = carry_out(_made(scenario), Point(scenario, seed)).steps
    yield from (Point(scenario, seed, how=how, step=step) for how in hows for step in range(1, steps + 1))


def perform(attack: Attack) -> list[str]:
    """Carry one attack out and return what it broke: nothing, if all is well."""
    trial = carry_out(_made(attack.scenario), attack)
    return [f"{violation.kind}: {violation.text}" for violation in judge(trial)]


def _made(scenario: str) -> Scenario:
    return python_scenario(scenario, SCENARIOS[scenario])
