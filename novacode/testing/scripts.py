"""Writing down what a model says, in a few words: for tests, where a file of its own would be too much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from novacode.lab.shrink import as_toml
from novacode.models.script_file import parse_script
from novacode.models.script_steps import Script

__all__ = ["ScriptedModel", "call", "pause", "say", "scripted_model", "turn"]

Step = Mapping[str, Any]


@attrs.frozen
class ScriptedModel:
    """A model that is written down. `text` is the script file it would be; `script` is what that comes to."""

    text: str
    script: Script = attrs.field(repr=False)


def say(text: str, fragments: int = 1) -> Step:
    """Return the step of saying `text`, in so many pieces."""
    return {"text": text, "fragments": fragments} if fragments > 1 else {"text": text}


def call(name: str, /, **arguments: Any) -> Step:
    """Return the step of calling the tool `name`. Its id, where it matters, is `call("read", …) | {"id": "mine"}`."""
    return {"call": name, "arguments": arguments}


def pause(seconds: float) -> Step:
    """Return the step of saying nothing for so long."""
    return {"pause": seconds}


def turn(*steps: Step | str, **more: Any) -> Mapping[str, Any]:
    """Return one reply: steps, or texts that are said. `more` are the other keys of a `[[turn]]` of a script file."""
    return {"steps": [say(step) if isinstance(step, str) else dict(step) for step in steps], **more}


def scripted_model(*turns: Mapping[str, Any] | str, simulate: Mapping[str, Any] | None = None) -> ScriptedModel:
    """Return a model that gives these replies, one for each request.

    Each is a `turn(…)`, a text that is all that is said, or the whole of a script file as text (then it is the only
    one). `simulate` is the `[simulate]` table: files in memory, and how long tools take. Raises `InputError` for what
    is no script.
    """
    if len(turns) == 1 and isinstance(turns[0], str) and "[[turn]]" in turns[0]:
        text = turns[0]
    else:
        table = {"turn": [turn(one) if isinstance(one, str) else one for one in turns], "simulate": simulate or {}}
        text = as_toml(table)
    return ScriptedModel(text, parse_script(text, "the test's model"))
