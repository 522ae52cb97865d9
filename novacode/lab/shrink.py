"""Making a violation small: fewer turns, fewer steps in them, an earlier strike, and the same kind of violation."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from novacode.errors import NovaError
from novacode.lab.perform import perform
from novacode.lab.point import Row
from novacode.lab.scenario import Scenario, find_scenario, scripted_scenario

__all__ = ["Shrunk", "as_toml", "shrink"]


@attrs.frozen
class Shrunk:
    """What is left. `text` is the smaller script; `None` where the scenario stays as it was."""

    row: Row
    text: str | None = None
    runs: int = 0

    def stored(self, folder: Path) -> Row:
        """Write the smaller script into `folder` and return the row as it is found there."""
        if self.text is None:
            return self.row
        kind = self.row.violations[0].kind
        name = Path(self.row.point.scenario).name.removesuffix(".toml").replace(":", "-")
        path = folder / f"{name}-{kind}{'-' if self.row.point.fault else ''}{self.row.point.fault}.toml"
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")
        return perform(attrs.evolve(self.row.point, scenario=str(path)), scripted_scenario(str(path), self.text))


class _Budget:
    """How many runs may still be made."""

    def __init__(self, runs: int) -> None:
        self.left = runs
        self.used = 0

    def spend(self) -> bool:
        self.left -= 1
        self.used += 1
        return self.left >= 0


def shrink(row: Row, runs: int = 2000) -> Shrunk:
    """Return the smallest point found, in at most `runs` runs, that breaks the first invariant that `row` broke.

    Schedule, seed, mishap and the way of stopping stay as they are. Where nothing smaller is found it is `row` itself.
    """
    budget = _Budget(runs)
    kind = row.violations[0].kind
    scenario = find_scenario(row.point.scenario)
    best, text = _earlier(row, kind, scenario, budget) or row, None
    if scenario.text is None:
        return Shrunk(best, None, budget.used)
    table = tomllib.loads(scenario.text)
    smaller = True
    while smaller and budget.left > 0:
        smaller = False
        for candidate in _smaller(table):
            made = _scenario(row.point.scenario, candidate)
            found = _earlier(best, kind, made, budget) if made is not None else None
            if made is not None and found is not None:
                table, best, text, smaller = candidate, found, made.text, True
                break
    return Shrunk(best, text, budget.used)


def _scenario(name: str, table: Mapping[str, Any]) -> Scenario | None:
    try:
        return scripted_scenario(name, as_toml(table))
    except NovaError:
        return None  # what was left out was needed for it to be a scenario at all


def _earlier(row: Row, kind: str, scenario: Scenario, budget: _Budget) -> Row | None:
    """Return the first step at which `scenario` breaks the invariant `kind`, not after the step of `row`."""
    last = row.point.step
    steps = [None] if last is None else range(1, last + 1)
    for step in steps:
        if not budget.spend():
            return None
        found = perform(attrs.evolve(row.point, step=step), scenario)
        if any(violation.kind == kind for violation in found.violations):
            return found
    return None


def _smaller(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the script is without one of its turns, steps, or parts of its world."""
    turns = table["turn"]
    for at in reversed(range(len(turns))):
        if len(turns) > 1:
            yield _without(table, "turn", at)
    for turn in range(len(turns)):
        for at in reversed(range(len(turns[turn].get("steps", [])))):
            candidate = copy.deepcopy(dict(table))
            del candidate["turn"][turn]["steps"][at]
            candidate["turn"][turn].pop("expect", None)
            yield candidate
    for part in table.get("simulate", {}):
        candidate = copy.deepcopy(dict(table))
        del candidate["simulate"][part]
        yield candidate


def _without(table: Mapping[str, Any], key: str, at: int) -> dict[str, Any]:
    candidate = copy.deepcopy(dict(table))
    del candidate[key][at]
    for turn in candidate["turn"]:
        turn.pop("expect", None)  # what it expects may have come from what is left out
    return candidate


def as_toml(table: Mapping[str, Any]) -> str:
    """Return a script, read from TOML, as TOML again."""
    lines: list[str] = []
    for turn in table["turn"]:
        lines += ["[[turn]]", *(f"{_key(key)} = {_value(value)}" for key, value in turn.items()), ""]
    simulate = table.get("simulate", {})
    if simulate:
        lines += ["[simulate]", *(f"{_key(key)} = {_value(value)}" for key, value in simulate.items()), ""]
    return "\n".join(lines)


def _key(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # What JSON escapes TOML does too; only this one has to be escaped there besides.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
