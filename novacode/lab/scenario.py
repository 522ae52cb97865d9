"""Scenarios: where they come from, and making stages of them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import attrs

from novacode.errors import InputError
from novacode.lab.mishaps import NO_MISHAP, Mishap
from novacode.lab.scripted import Blueprint, ScriptedStage
from novacode.lab.stage import Stage
from novacode.lab.variants import Variant, read_variant
from novacode.models.script import parse_script
from novacode.workspace.simulation import parse_simulation

__all__ = ["Scenario", "find_scenario", "packaged", "python_scenario", "scripted_scenario"]


@attrs.frozen
class Scenario:
    """A way to make fresh stages.

    `text` is the script it is made from; `None` for one in Python and for a variant. `blueprint` is what the script
    comes to; `None` for one in Python.
    """

    name: str
    stage: Callable[[Mishap], Stage] = attrs.field(repr=False)
    text: str | None = attrs.field(default=None, repr=False)
    blueprint: Blueprint | None = attrs.field(default=None, repr=False)


def scripted_scenario(name: str, text: str, variant: Variant | None = None) -> Scenario:
    """Return the scenario that the script `text`, changed by `variant`, describes.

    Raises `InputError` or `SettingsError`.
    """
    script = parse_script(text, name)
    simulation = parse_simulation(script.simulate, name)
    if variant is not None:
        script, simulation = variant.of(script, simulation)
    blueprint = Blueprint.of(script, simulation)
    return Scenario(name, functools.partial(ScriptedStage, blueprint), None if variant else text, blueprint)


def python_scenario(name: str, make: Callable[[], Stage]) -> Scenario:
    """Return the scenario whose stages `make` makes; called once for each run, outside of `trio.run`."""

    def stage(mishap: Mishap) -> Stage:
        if mishap != NO_MISHAP:
            raise InputError(f"the scenario {name!r} is in Python: it makes its own mishaps, not {mishap.name!r}")
        return make()

    return Scenario(name, stage)


def packaged() -> tuple[str, ...]:
    """Return the names of the scenarios that come with NovaCode, sorted."""
    folder = resources.files("novacode.lab") / "scenarios"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


@functools.lru_cache(maxsize=256)
def find_scenario(name: str) -> Scenario:
    """Return the scenario called `name`: a packaged one, a TOML file, or `module:function` in Python.

    One of the first two may be followed by `?` and parameters, as in `parallel?calls=4`; see `variants`. Raises
    `InputError` that says what was looked for.
    """
    base, _, query = name.partition("?")
    variant = read_variant(query, name) if query else None
    if base in packaged():
        return scripted_scenario(name, _text_of(base), variant)
    if ":" in base:
        if variant is not None:
            raise InputError(f"the scenario {name!r} is in Python: it makes its own variants, not {query!r}")
        return _in_python(name)
    try:
        text = Path(base).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{name!r} is no scenario: not a file that can be read ({error}), not module:function, and not one of"
            f" {', '.join(packaged())}"
        ) from None
    return scripted_scenario(name, text, variant)


def _text_of(name: str) -> str:
    return (resources.files("novacode.lab") / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")


def _in_python(name: str) -> Scenario:
    module, _, function = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"the scenario {name!r} cannot be imported: {error}") from None
    if not callable(make):
        raise InputError(f"the scenario {name!r} is {make!r}; it must be a function that returns a stage")
    return python_scenario(name, make)
