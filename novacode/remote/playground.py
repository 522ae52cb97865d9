"""The model of `novacode serve --model demo --simulate`: it writes a file, asks first, and never runs out."""

from __future__ import annotations

from importlib import resources

import attrs

from novacode.models.script import Script, parse_script

__all__ = ["playground"]

_ROUNDS = 200


def playground() -> Script:
    """Return the script: the same two turns over and over, so that every prompt is answered."""
    name = "playground.toml"
    script = parse_script((resources.files("novacode.remote") / name).read_text(encoding="utf-8"), name)
    return attrs.evolve(script, turns=script.turns * _ROUNDS)
