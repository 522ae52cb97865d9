"""Scenarios with parameters: `fan-out?calls=4&takes=exp(2)&draw=7` is one, and stands wherever a name does."""

from __future__ import annotations

import json
import random  # noqa: TID251 - every draw has a seed of its own, which is part of the scenario's name
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import parse_qsl

import attrs

from novacode.errors import InputError
from novacode.lab.props import subject_of
from novacode.models.script_steps import CallStep, Script, ScriptTurn, Step
from novacode.workspace.simulation import ScriptedTool, Simulation

__all__ = ["Variant", "draw_of", "read_variant"]

_MOST_CALLS = 200
_FORM = re.compile(r"(?P<name>[a-z]+)\((?P<numbers>[^()]*)\)|(?P<plain>[0-9.]+)")


@attrs.frozen
class Variant:
    """How a script is changed. Empty and `None` leave what it says.

    `calls` is how many calls its first turn makes: those it has, again and again, where `{n}` in an argument is the
    number of the call. `takes` and `cleanup` are distributions from which each call draws its seconds, with the seed
    `draw`. `grace` is what clean-up may take at most: what needs longer is killed then, as a process would be.
    """

    calls: int | None = None
    takes: str = ""
    cleanup: str = ""
    grace: float | None = None
    draw: int = 0

    def named(self, base: str) -> str:
        """Return the name under which `base`, changed so, is found."""
        pairs = [
            (field.name, f"{value:g}" if isinstance(value, float) else str(value))
            for field in attrs.fields(Variant)
            if (value := getattr(self, field.name)) not in (None, "") and (field.name != "draw" or self._draws)
        ]
        query = "&".join(f"{key}={text}" for key, text in pairs)
        return f"{base}?{query}" if query else base

    @property
    def _draws(self) -> bool:
        return bool(self.takes or self.cleanup)

    def of(self, script: Script, simulation: Simulation) -> tuple[Script, Simulation]:
        """Return both, changed."""
        script = attrs.evolve(script, turns=(self._turn(script.turns[0]), *script.turns[1:]))
        if not self._draws and self.grace is None:
            return script, simulation
        tools = tuple(self._tools(script, simulation))
        return script, attrs.evolve(simulation, tools=(*tools, *map(self._bounded, simulation.tools)))

    def _turn(self, turn: ScriptTurn) -> ScriptTurn:
        calls = [step for step in turn.steps if isinstance(step, CallStep)]
        if not calls:
            return turn
        number = 0
        steps: list[Step] = []
        for step in turn.steps:
            if isinstance(step, CallStep):
                if self.calls is not None and number >= self.calls:
                    continue
                number += 1
                step = _numbered(step, number)
            steps.append(step)
        more = range(number + 1, (self.calls or number) + 1)
        steps += (_numbered(attrs.evolve(calls[(at - 1) % len(calls)], id=None), at) for at in more)
        return attrs.evolve(turn, steps=tuple(steps))

    def _tools(self, script: Script, simulation: Simulation) -> Iterator[ScriptedTool]:
        """Yield an entry of its own for every call there is."""
        chance = random.Random(f"{self.draw} {self.takes} {self.cleanup}")
        takes, cleanup = draw_of(self.takes or "0"), draw_of(self.cleanup or "0")
        for step in (step for turn in script.turns for step in turn.steps if isinstance(step, CallStep)):
            subject = _subject(step)
            if subject is None or not self._draws:
                continue
            entry = simulation.tool(step.name, subject)
            changed = attrs.evolve(
                entry,
                when=re.sub(r"([*?[])", r"[\1]", subject),
                takes=takes(chance) if self.takes else entry.takes,
                cleanup=cleanup(chance) if self.cleanup else entry.cleanup,
            )
            yield self._bounded(changed)

    def _bounded(self, tool: ScriptedTool) -> ScriptedTool:
        return tool if self.grace is None else attrs.evolve(tool, cleanup=min(tool.cleanup, self.grace))


def read_variant(query: str, name: str) -> Variant:
    """Return the variant that stands behind the `?` of `name`. Raises `InputError`."""
    given = parse_qsl(query, keep_blank_values=True)
    known = {field.name for field in attrs.fields(Variant)}
    if strange := [key for key, _ in given if key not in known]:
        raise InputError(
            f"the scenario {name!r} has the parameter {strange[0]!r}; there are {', '.join(sorted(known))}"
        )
    values = dict(given)
    for key in ("takes", "cleanup"):
        if key in values:
            draw_of(values[key])
    try:
        calls = int(values["calls"]) if "calls" in values else None
        grace = float(values["grace"]) if "grace" in values else None
        draw = int(values.get("draw", "0"))
    except ValueError as error:
        raise InputError(f"the scenario {name!r} has a parameter that is no number: {error}") from None
    if (calls is not None and not 0 < calls <= _MOST_CALLS) or (grace is not None and not 0 <= grace < 1e6):
        raise InputError(f"the scenario {name!r}: calls are 1 to {_MOST_CALLS}, grace is 0 or more seconds")
    return Variant(calls, values.get("takes", ""), values.get("cleanup", ""), grace, draw)


def draw_of(text: str) -> Callable[[random.Random], float]:
    """Return what draws from the distribution `text`: `2`, `exp(MEAN)`, `uniform(A,B)`, `lognormal(MEDIAN,SIGMA)`.

    Seconds, to the millisecond, an hour at most. Raises `InputError` for anything else.
    """
    found = _FORM.fullmatch(text.replace(" ", ""))
    try:
        name = (found["name"] or "fixed") if found else ""
        numbers = tuple(float(part) for part in ((found["plain"] or found["numbers"]) if found else "").split(","))
    except ValueError:
        name, numbers = "", ()
    match name, numbers:
        case "fixed", (seconds,):
            return lambda chance: _tidy(seconds)
        case "exp", (mean,) if mean > 0:
            return lambda chance: _tidy(chance.expovariate(1 / mean))
        case "uniform", (low, high) if 0 <= low <= high:
            return lambda chance: _tidy(chance.uniform(low, high))
        case "lognormal", (median, sigma) if median > 0 and sigma >= 0:
            return lambda chance: _tidy(median * chance.lognormvariate(0, sigma))
        case _:
            raise InputError(
                f"{text!r} is no distribution of seconds; write 2, exp(2), uniform(0.5,3) or lognormal(2,0.5)"
            )


def _tidy(seconds: float) -> float:
    return min(3600.0, round(seconds, 3))


def _numbered(step: CallStep, number: int) -> CallStep:
    return attrs.evolve(step, raw=step.raw.replace("{n}", str(number)))


def _subject(step: CallStep) -> str | None:
    try:
        arguments = json.loads(step.raw)
    except ValueError:
        return None
    return subject_of(arguments) if isinstance(arguments, Mapping) else None
