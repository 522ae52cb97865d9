"""Fragments to parts: what all protocols do with text, reasoning and calls once they know which is which."""

from __future__ import annotations

import json
from collections.abc import Mapping

from novacode.protocols.jsonio import mend
from novacode.values.events import (
    CallBroken,
    CallDelta,
    CallOpened,
    CallReady,
    Finished,
    Level,
    ModelEvent,
    Notice,
    PartDone,
    TextDelta,
    ThinkingDelta,
    UsageSeen,
)
from novacode.values.ids import CallId, CallIds
from novacode.values.parts import JSON, BrokenCall, Seal, ServerBlock, Text, Thinking, ToolCall
from novacode.values.request import StopReason, Usage

__all__ = ["Assembler", "Draft", "Prose", "number", "read_arguments", "sealed", "string"]


class Prose:
    """A text or reasoning part under way."""

    __slots__ = ("delta", "done", "index", "pieces", "seal")

    def __init__(self, index: int, delta: type[TextDelta | ThinkingDelta]) -> None:
        self.index = index
        self.delta = delta
        self.pieces: list[str] = []
        self.seal: dict[str, JSON] = {}
        self.done = False


class Draft:
    """A call under way. `id` is claimed when it is announced, which is when its name is known."""

    __slots__ = ("closed", "done", "id", "index", "name", "pieces", "seal", "wire_id")

    def __init__(self, index: int) -> None:
        self.index = index
        self.wire_id = ""
        self.name = ""
        self.id: CallId | None = None
        self.pieces: list[str] = []
        self.seal: dict[str, JSON] = {}
        self.closed = False
        self.done = False

    @property
    def text(self) -> str:
        """Its argument text so far."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class Assembler:
    """The parts of one response, numbered in the order the model opened them, and the events they make.

    A call that cannot run is announced as broken when the response finishes: only then is it known whether the output
    limit was what cut it.
    """

    def __init__(self, ids: CallIds) -> None:
        self.events: list[ModelEvent] = []
        self.finished = False
        self.calls_ready = 0
        self._ids = ids
        self._next = 0
        self._open: dict[int, Prose | Draft] = {}
        self._usage: Usage | None = None

    # --- text and reasoning ---------------------------------------------------------------------------------------

    def open_text(self) -> Prose:
        """Begin a text."""
        return self._open_prose(TextDelta)

    def open_thinking(self) -> Prose:
        """Begin a piece of reasoning."""
        return self._open_prose(ThinkingDelta)

    def say(self, part: Prose, piece: str) -> None:
        """Add to a text or to reasoning."""
        if type(piece) is not str:
            raise TypeError(f"text is {piece!r}, not a string")
        if piece:
            part.pieces.append(piece)
            self.events.append(part.delta(part.index, piece))

    def end_prose(self, part: Prose) -> None:
        """A text or reasoning is whole. One that holds nothing at all leaves no trace."""
        if part.done:
            return
        part.done = True
        self._open.pop(part.index, None)
        text, seal = "".join(part.pieces), part.seal or None
        if text or seal:
            self.part_done(part.index, (Text if part.delta is TextDelta else Thinking)(text, seal))

    def part_done(self, index: int, part: Text | Thinking | ServerBlock) -> None:
        """Announce a part that is whole."""
        self.events.append(PartDone(index, part))

    def place(self) -> int:
        """Return the position of a part that begins now."""
        index = self._next
        self._next += 1
        return index

    # --- calls ----------------------------------------------------------------------------------------------------

    def draft(self) -> Draft:
        """Begin a call whose name may not be known yet."""
        made = Draft(self.place())
        self._open[made.index] = made
        return made

    def announce(self, call: Draft) -> CallId:
        """Give the call its id, and tell of it. Later calls for the same draft return the same id."""
        if call.id is None:
            call.id = self._ids.claim(call.wire_id)
            if call.wire_id and call.wire_id != call.id:
                call.seal["wire_id"] = call.wire_id
            self.events.append(CallOpened(call.index, call.id, call.name))
        return call.id

    def write(self, call: Draft, fragment: str) -> None:
        """Add to the arguments of a call. What comes after its end is told and ignored."""
        if type(fragment) is not str:
            raise TypeError(f"arguments are {fragment!r}, not a string")
        if not fragment:
            return
        if call.done:
            if not fragment.isspace():
                self.notice(f"ignored more arguments for the call {call.id} {call.name}, which was complete already")
            return
        identity = call.id or self.announce(call)
        call.pieces.append(fragment)
        self.events.append(CallDelta(call.index, identity, call.name, fragment))

    def end_call(self, call: Draft) -> bool:
        """The call's end mark has come: announce it when it can run. Returns whether it can."""
        call.closed = True
        if call.done:
            return True
        arguments = read_arguments(call.text)
        if isinstance(arguments, str) or not call.name:
            return False
        identity = self.announce(call)
        call.done = True
        self._open.pop(call.index, None)
        self.calls_ready += 1
        ready = ToolCall(identity, call.index, call.name, arguments, call.seal or None)
        self.events.append(CallReady(call.index, ready))
        return True

    # --- the rest -------------------------------------------------------------------------------------------------

    def notice(self, text: str, level: Level = Level.WARNING) -> None:
        """Tell people something."""
        self.events.append(Notice(level, text))

    def usage(self, usage: Usage) -> None:
        """Announce token counts, when they are new."""
        if usage != self._usage:
            self._usage = usage
            self.events.append(UsageSeen(usage))

    def finish(self, stop: StopReason, raw: str | None, detail: str = "") -> None:
        """The response is whole: what is still open ends now, a call without its end mark as a broken one."""
        for part in tuple(self._open.values()):
            if isinstance(part, Prose):
                self.end_prose(part)
            else:
                self._break(part, stop)
        self.events.append(Finished(stop, raw, detail))
        self.finished = True

    def _break(self, call: Draft, stop: StopReason) -> None:
        identity = self.announce(call)
        self._open.pop(call.index, None)
        call.done = True
        problem = _problem(call, stop)
        broken = BrokenCall(identity, call.index, call.name, call.text, problem, call.seal or None)
        self.events.append(CallBroken(call.index, broken))

    def _open_prose(self, delta: type[TextDelta | ThinkingDelta]) -> Prose:
        made = Prose(self.place(), delta)
        self._open[made.index] = made
        return made


def _problem(call: Draft, stop: StopReason) -> str:
    """Say to the model why a call was not run, and what to do."""
    if stop is StopReason.OUTPUT_LIMIT:
        return (
            f"The output limit was reached while the arguments of this call were being written ({len(call.text)} "
            "characters came), so it was not run. Make smaller calls: write long content in several pieces."
        )
    if not call.name:
        return "The call has no tool name, so it was not run. Call again with the name of one of the offered tools."
    found = read_arguments(call.text)
    reason = found if isinstance(found, str) else "their end is missing"
    return (
        f"The arguments are not one complete JSON object: {reason}. The call was not run. They may have been cut "
        "off (truncated) on the way. Call again with one complete JSON object, in smaller pieces if it is long."
    )


def read_arguments(text: str) -> Mapping[str, JSON] | str:
    """Return the one JSON object `text` is, `{}` where it is blank, or what is wrong with it."""
    if not text or text.isspace():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        return f"{error.msg} at character {error.pos}, near {near!r}"
    except (ValueError, RecursionError) as error:
        return str(error)
    if not isinstance(value, dict):
        return f"they are {text[:40]!r}, which is no object"
    return mend(value) if "\\u" in text else value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def string(value: JSON) -> str:
    """Return `value` if it is a string, else an empty one: for fields that are for show."""
    return value if isinstance(value, str) else ""


def number(value: JSON) -> int | None:
    """Return `value` if it is an integer, else `None`: for counts."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def sealed(seal: Seal | None, key: str) -> JSON:
    """Return what a seal holds under `key`, or `None`."""
    return None if seal is None else seal.get(key)
