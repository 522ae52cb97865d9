"""What a person is told of a run, as plain data: the one reading of events that both terminal faces share. Pure.

Every event gives zero or more blocks, which are final, and changes what is live: the text being written and the calls
under way. How a run ended is said by whoever ran it (`text_output.failure_text`), who also knows of failures that no
event tells.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator

import attrs

from novacode.cli.escape import visible
from novacode.values import events
from novacode.values.events import Level, Phase, RunEvent
from novacode.values.ids import CallId
from novacode.values.parts import BrokenCall, Text, ToolCall
from novacode.values.results import Outcome, ToolResult

__all__ = ["Block", "Kind", "LiveCall", "Progress", "summary_of"]

_TELLING = ("command", "path", "pattern", "url", "query", "task")
"""Arguments that say the most about a call, in the order they are looked for."""

_SENTENCE = 400
_MOST_PATHS = 8
_SHOWN_BY_THEMSELVES = frozenset({"edit", "write"})
"""Tools whose result shows what they have changed."""


class Kind(enum.StrEnum):
    """What a block is, which decides how it looks."""

    TEXT = "text"
    CALL = "call"
    DIFF = "diff"
    NOTICE = "notice"
    WARNING = "warning"


@attrs.frozen
class Block:
    """Something final to show. `good` is whether a call ended as wished; `detail` is more about it, in words."""

    kind: Kind
    text: str
    good: bool = True
    name: str = ""
    detail: str = ""


@attrs.define
class LiveCall:
    """A call that has no result yet. `since` is when it entered its phase, by the run's clock."""

    name: str
    summary: str
    phase: Phase
    since: float
    waits_for: tuple[CallId, ...] = ()
    last_line: str = ""


@attrs.define(eq=False, repr=False)
class Progress:
    """Takes events with `apply`; `text` and `calls` are what is live. Notices below `level` are not shown."""

    level: Level = Level.WARNING
    text: str = ""
    calls: dict[CallId, LiveCall] = attrs.field(factory=dict)
    _shown: bool = False
    _opened: dict[CallId, ToolCall | BrokenCall] = attrs.field(factory=dict)
    _changed: dict[CallId, events.FilesChanged] = attrs.field(factory=dict)

    def apply(self, event: RunEvent, at: float) -> list[Block]:
        """Take an event and return the blocks it completes; `at` is its stamp."""
        match event:
            case events.CallMoved() | events.CallOutput() | events.CallSettled() | events.ApprovalClosed():
                return list(self._call(event, at))
            case events.Notice(level, text):
                if level is not Level.WARNING and self.level is not Level.DEBUG and level is not self.level:
                    return []
                return [Block(Kind.WARNING if level is Level.WARNING else Kind.NOTICE, visible(text))]
            case events.FilesChanged(call_id=call_id):
                if call_id not in self.calls:
                    return list(_changes(event))
                self._changed[call_id] = event
                return []
            case _:
                return list(self._speech(event))

    def _speech(self, event: RunEvent) -> Iterator[Block]:
        match event:
            case events.TextDelta(text=text):
                self.text += text
                yield from self._settled_text()
            case events.PartDone(part=Text()):
                yield from self._rest_of_text()
            case events.AttemptDropped() as dropped:
                yield from self._dropped(dropped)
            case events.CallReady(call=call) | events.CallBroken(call=call):
                self._opened[call.id] = call
                yield from self._rest_of_text()
            case events.TurnCommitted():
                yield from self._rest_of_text()
                self._opened.clear()
            case events.RunEnded():
                yield from self._rest_of_text()
                self.calls.clear()
                self._changed.clear()
            case _:
                pass

    def _call(self, event: RunEvent, at: float) -> Iterator[Block]:
        match event:
            case events.CallMoved(call_id, name, phase, waits_for):
                live = self.calls.get(call_id)
                if live is None:
                    live = self.calls[call_id] = LiveCall(name, summary_of(self._opened.get(call_id)), phase, at)
                if live.phase is not phase:
                    live.phase, live.since = phase, at
                live.waits_for = waits_for
            case events.CallOutput(call_id=call_id, text=text):
                if (live := self.calls.get(call_id)) is not None and (lines := text.split("\n")):
                    live.last_line = next((line for line in reversed(lines) if line.strip()), live.last_line)
            case events.CallSettled(result, seconds):
                live = self.calls.pop(result.call_id, None)
                summary = live.summary if live else summary_of(self._opened.get(result.call_id))
                yield _settled(result, summary, seconds)
                if result.diff:
                    yield Block(Kind.DIFF, visible(result.diff))
                if (changed := self._changed.pop(result.call_id, None)) is not None:
                    yield from _changes(changed)
            case events.ApprovalClosed(name=name, decision=decision, by=by) if decision != "abandoned":
                yield Block(Kind.NOTICE, visible(f"{name}: {decision}, by {by}"))
            case _:
                pass

    def _settled_text(self) -> Iterator[Block]:
        """Give out the paragraphs that are whole: what is live stays short however long an answer is."""
        cut = _last_paragraph_end(self.text)
        if cut:
            block, self.text, self._shown = self.text[:cut], self.text[cut:], True
            yield Block(Kind.TEXT, visible(block, prose=True))

    def _rest_of_text(self) -> Iterator[Block]:
        text, self.text, self._shown = self.text, "", False
        if text.strip():
            yield Block(Kind.TEXT, visible(text, prose=True))

    def _dropped(self, dropped: events.AttemptDropped) -> Iterator[Block]:
        void = " What it has said above does not count." if self._shown else ""
        self.text, self._shown = "", False
        why = visible(dropped.failure.message)
        yield Block(
            Kind.WARNING, f"the model failed ({dropped.failure.kind}: {why}).{void} Again in {dropped.delay:.3g} s."
        )


def summary_of(call: ToolCall | BrokenCall | None) -> str:
    """Return what tells most about a call, visible and in full: its command, its path, else all its arguments."""
    if call is None:
        return ""
    if isinstance(call, BrokenCall):
        return visible(call.raw)
    for key in _TELLING:
        value = call.arguments.get(key)
        if isinstance(value, str):
            return visible(value)
    return visible(json.dumps(call.arguments, ensure_ascii=False)) if call.arguments else ""


def _settled(result: ToolResult, summary: str, seconds: float) -> Block:
    took = f"{seconds:.1f} s" if result.began else ""
    if result.outcome is Outcome.OK:
        parts = [visible(result.note), took]
    else:
        how = f"exit {result.exit_code}" if result.exit_code else result.outcome.value.replace("_", " ")
        said = visible(result.note) or visible(_first_sentence(result))
        parts = [how, "" if result.exit_code and not result.note else said, took]
    detail = ", ".join(part for part in parts if part)
    return Block(Kind.CALL, summary, result.outcome is Outcome.OK, result.name, detail)


def _first_sentence(result: ToolResult) -> str:
    lines = [line for line in result.text.splitlines() if line.strip()]
    return lines[0][:_SENTENCE] if lines else ""


def _last_paragraph_end(text: str) -> int:
    """Return where the last paragraph that is certainly whole ends; 0 where none is. A code fence is one paragraph."""
    end = position = 0
    fenced = False
    for line in text.splitlines(keepends=True):
        position += len(line)
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not line.strip() and line.endswith("\n") and not fenced:
            end = position
    return end


def _changes(changed: events.FilesChanged) -> Iterator[Block]:
    """Say what a call has changed where its result does not, and always what cannot be taken back."""
    if changed.problem:
        yield Block(Kind.WARNING, visible(f"{changed.name}: what it has changed is not known: {changed.problem}"))
    marked = [
        *(f"{path} (new)" for path in changed.created),
        *changed.modified,
        *(f"{path} (deleted)" for path in changed.deleted),
    ]
    if marked and changed.name not in _SHOWN_BY_THEMSELVES:
        more = len(marked) - _MOST_PATHS + changed.more if len(marked) > _MOST_PATHS else changed.more
        rest = f" and {more} more" if more else ""
        yield Block(Kind.NOTICE, visible(f"{changed.name} changed {', '.join(marked[:_MOST_PATHS])}{rest}"))
    if changed.uncovered:
        names = ", ".join(changed.uncovered[:_MOST_PATHS])
        yield Block(Kind.WARNING, visible(f"{changed.name} changed what rewind cannot give back: {names}"))
