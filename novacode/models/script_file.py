"""Reading a scripted model from its file. Every mistake is named with its place, its value and what was expected."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import attrs

from novacode.errors import InputError
from novacode.models.script_steps import (
    CallStep,
    DisconnectStep,
    ErrorStep,
    Expectation,
    PauseStep,
    Script,
    ScriptTurn,
    ScriptUsage,
    StatusStep,
    Step,
    TextStep,
    ThinkingStep,
)
from novacode.values.request import StopReason

__all__ = ["load_script", "parse_script"]

_ERRORS = {
    "overloaded": "overloaded_error",
    "rate_limit": "rate_limit_error",
    "authentication": "authentication_error",
    "invalid_request": "invalid_request_error",
    "server": "api_error",
}
_MOST_FRAGMENTS = 10_000


def load_script(path: Path) -> Script:
    """Return the script in the file `path`. Raises `InputError` for anything that is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"the script {str(path)!r} does not exist") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"the script {str(path)!r} cannot be read: {error}") from error
    return parse_script(text, str(path))


def parse_script(text: str, source: str) -> Script:
    """Return the script that `text` is; `source` names it in messages. Raises `InputError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the script {source!r} is not TOML: {error}") from error
    top = _Table(data, source)
    turns = top.take("turn", list, "[[turn]] tables, one for each reply", [])
    simulate = top.take("simulate", dict, "a table", {})
    top.done("turn, simulate")
    if not turns:
        top.wrong("turn", turns, "at least one [[turn]]")
    return Script(
        source, tuple(_turn(turn, f"{source}: turn {number}") for number, turn in enumerate(turns, 1)), simulate
    )


class _Table:
    """A table of the file. Keys are taken out one by one; what is left in the end was not known."""

    def __init__(self, data: Any, where: str) -> None:
        self.where = where
        if not isinstance(data, dict):
            raise InputError(f'{where} is {data!r}; expected a table such as {{ text = "…" }}')
        self._left: dict[str, Any] = dict(data)

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def keys(self) -> list[str]:
        return list(self._left)

    def take(self, key: str, kind: type | tuple[type, ...], expected: str, default: Any = None) -> Any:
        if key not in self._left:
            return default
        value = self._left.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        # `true` is an int to Python, and to nobody who writes `fragments = true`.
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds):
            self.wrong(key, value, expected)
        return value

    def number(self, key: str, expected: str, default: float | None = None) -> float | None:
        value = self.take(key, (int, float), expected, default)
        if value is not None and not (math.isfinite(value) and value >= 0):
            self.wrong(key, value, expected)
        return None if value is None else float(value)

    def count(self, key: str, least: int, most: int, default: int) -> int:
        expected = f"a whole number from {least} to {most}"
        value = self.take(key, int, expected, default)
        if not least <= value <= most:
            self.wrong(key, value, expected)
        return int(value)

    def done(self, known: str) -> None:
        for key, value in self._left.items():
            self.wrong(key, value, f"one of the keys {known}")

    def wrong(self, key: str, value: Any, expected: str) -> NoReturn:
        raise InputError(f"{self.where}: {key} = {_shown(value)}; expected {expected}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def _turn(data: Any, where: str) -> ScriptTurn:
    table = _Table(data, where)
    steps = table.take("steps", list, "a list of steps", [])
    words = ", ".join(reason.value for reason in StopReason)
    stop = table.take("stop", str, f"one of {words}")
    if stop is not None and stop not in set(StopReason):
        table.wrong("stop", stop, f"one of {words}")
    usage = _usage(table.take("usage", dict, "a table such as { input = 10, output = 5 }", {}), where)
    expect = _expect(table.take("expect", dict, 'a table such as { result = "text" }', {}), where)
    table.done("steps, stop, usage, expect")
    read = tuple(_step(step, f"{where}, step {number}") for number, step in enumerate(steps, 1))
    _check_order(read, where)
    return ScriptTurn(read, None if stop is None else StopReason(stop), usage, expect)


def _usage(data: Mapping[str, Any], where: str) -> ScriptUsage:
    table = _Table(data, f"{where}, usage")
    names = [field.name for field in attrs.fields(ScriptUsage)]
    counts = {name: table.count(name, 0, 10**12, 0) for name in names}
    table.done(", ".join(names))
    return ScriptUsage(**counts)


def _expect(data: Mapping[str, Any], where: str) -> Expectation:
    table = _Table(data, f"{where}, expect")
    expected = "a text, or a list of texts, that must occur in the results"
    value = table.take("result", (str, list), expected, [])
    texts = [value] if isinstance(value, str) else value
    if not all(isinstance(text, str) for text in texts):
        table.wrong("result", value, expected)
    table.done("result")
    return Expectation(tuple(texts))


def _step(data: Any, where: str) -> Step:
    table = _Table(data, where)
    kinds = [key for key in _READERS if key in table]
    if "cut" in kinds:  # with or without the call that is cut
        kinds = ["cut"]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them in " + ", ".join(table.keys() or ["an empty table"])
        raise InputError(f"{where} has {found}; expected exactly one of {', '.join(_READERS)}")
    return _READERS[kinds[0]](table)


def _text(table: _Table) -> Step:
    step = TextStep(table.take("text", str, "a text"), table.count("fragments", 1, _MOST_FRAGMENTS, 1))
    table.done("text, fragments")
    return step


def _thinking(table: _Table) -> Step:
    text = table.take("thinking", str, "a text")
    signature = table.take("signature", str, "a text", "scripted")
    step = ThinkingStep(text, signature, table.count("fragments", 1, _MOST_FRAGMENTS, 1))
    table.done("thinking, signature, fragments")
    return step


def _call(table: _Table) -> Step:
    name = table.take("call", str, "the name of a tool")
    if "raw" in table and "arguments" in table:
        table.wrong("raw", table.take("raw", object, ""), "either raw or arguments, not both")
    arguments = table.take("arguments", dict, 'a table such as { path = "a.txt" }', {})
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        table.wrong("arguments", arguments, "values that JSON has: no dates or times, no inf or nan")
    raw = table.take("raw", str, "the text of the arguments, which need not be JSON", text)
    step = CallStep(name, raw, table.take("id", str, "a text"), table.count("fragments", 1, _MOST_FRAGMENTS, 1))
    table.done("call, arguments, raw, id, fragments, cut")
    return step


def _cut(table: _Table) -> Step:
    what = table.take("cut", str, '"arguments"')
    if what != "arguments":
        table.wrong("cut", what, '"arguments"')
    if "call" not in table:  # the fault alone: any call will do
        table.done("cut, call, arguments, raw, id, fragments")
        return CallStep("shell", json.dumps({"command": "echo never runs"}), cut=True)
    call = _call(table)
    assert isinstance(call, CallStep)
    return attrs.evolve(call, cut=True)


def _pause(table: _Table) -> Step:
    seconds = table.number("pause", "seconds, 0 or more")
    table.done("pause")
    return PauseStep(seconds or 0.0)


def _disconnect(table: _Table) -> Step:
    if table.take("disconnect", bool, "true") is not True:
        table.wrong("disconnect", False, "true")
    table.done("disconnect")
    return DisconnectStep()


def _error(table: _Table) -> Step:
    word = table.take("error", str, "the provider's word for an error")
    message = table.take("message", str, "a text", f"scripted error: {word}")
    table.done("error, message")
    return ErrorStep(_ERRORS.get(word, word), message)


def _status(table: _Table) -> Step:
    status = table.count("status", 400, 599, 400)
    message = table.take("message", str, "a text", f"scripted status {status}")
    step = StatusStep(status, message, table.number("retry_after", "seconds, 0 or more"))
    table.done("status, retry_after, message")
    return step


_READERS: Mapping[str, Callable[[_Table], Step]] = {
    "text": _text,
    "thinking": _thinking,
    "call": _call,
    "cut": _cut,
    "pause": _pause,
    "disconnect": _disconnect,
    "error": _error,
    "status": _status,
}


def _check_order(steps: tuple[Step, ...], where: str) -> None:
    """Refuse steps that could never happen."""
    for number, step in enumerate(steps, 1):
        ends = isinstance(step, DisconnectStep | ErrorStep | StatusStep) or (isinstance(step, CallStep) and step.cut)
        if ends and number < len(steps):
            raise InputError(f"{where}, step {number} ends the reply; the steps after it never happen: remove them")
        if isinstance(step, StatusStep) and not all(isinstance(before, PauseStep) for before in steps[: number - 1]):
            raise InputError(
                f"{where}, step {number}: status = {step.status}; expected nothing but pauses before it, because a "
                "status comes before the reply"
            )
