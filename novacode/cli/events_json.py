"""The `events` output: NovaCode's own event family, one stamped event a line; canonical in deterministic runs.

In canonical order the model's events stand in stream order and, before each commit, what its calls did in call order:
however the calls overlapped, the same run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from novacode.sessions.record import json_line
from novacode.values import events
from novacode.values.events import LIVE, CallMoved, CallOutput, Notice, Phase, RunEvent, Stamped
from novacode.values.ids import CallId
from novacode.values.serial import dump_stamped

__all__ = ["EventsJson"]

_PHASES = {phase: place for place, phase in enumerate(Phase)}
_ASKING = _PHASES[Phase.ASKING]
_OUTPUT = _PHASES[Phase.RUNNING]
_HOOKS = {"PreToolUse": _PHASES[Phase.AUTHORISING], "Notification": _ASKING}


class EventsJson:
    """A sink that writes lines. `write` gets each line whole, as bytes with its line end.

    `timed` is whether calls take a time that is the same in every run. Else it is left out of the canonical form: what
    a real process takes falls before or after the next thing a scripted model says.
    """

    def __init__(self, write: Callable[[bytes], None], *, canonical: bool = False, timed: bool = True) -> None:
        self._write = write
        self._canonical = _Canonical(timed) if canonical else None

    def __call__(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe."""
        if self._canonical is None:
            self._write(json_line(dump_stamped(stamped)))
            return
        for one in self._canonical.take(stamped):
            self._write(json_line(dump_stamped(one)))


class _Canonical:
    """Holds what calls do until their turn is committed, and gives it out in call order."""

    def __init__(self, timed: bool) -> None:
        self._timed = timed
        self._seq: int | None = None
        self._at = 0.0
        self._order: list[CallId] = []
        self._held: dict[CallId, list[Stamped]] = {}
        self._notices: list[Stamped] = []

    def take(self, stamped: Stamped) -> Iterator[Stamped]:
        """Yield what can be written now."""
        if self._seq is None:
            self._seq = stamped.seq - 1
        event = stamped.event
        if isinstance(event, Notice) and self._order:
            # Once there are calls, notices may come from any task; they are ordered by what they say.
            self._notices.append(stamped)
            return
        if (owner := _owner(event)) is not None:
            self._held.setdefault(owner, []).append(stamped)
            return
        match event:
            case events.CallReady(call=call) | events.CallBroken(call=call):
                self._order.append(call.id)
            case events.TurnCommitted() | events.TurnBegan() | events.RunEnded():
                yield from self._release()
            case events.HookRan():
                stamped = attrs.evolve(stamped, event=_untimed(event))
            case _:
                pass
        yield self._numbered(stamped)

    def _release(self) -> Iterator[Stamped]:
        known = [call_id for call_id in self._order if call_id in self._held]
        for call_id in (*known, *sorted(self._held.keys() - set(known))):
            for stamped in _in_order(self._held[call_id]):
                yield self._numbered(stamped if self._timed else _unclocked(stamped))
        for stamped in sorted(self._notices, key=_words):
            yield self._numbered(stamped)
        self._order.clear()
        self._held.clear()
        self._notices.clear()

    def _numbered(self, stamped: Stamped) -> Stamped:
        assert self._seq is not None
        self._seq += 1
        self._at = max(self._at, stamped.at)
        return attrs.evolve(stamped, seq=self._seq, at=self._at)


def _in_order(held: list[Stamped]) -> list[Stamped]:
    """Return what one call did in the order of the table of phases.

    What only tells how calls happened to overlap is left out: whom it waited for, and where its output was cut.
    """
    moves: dict[Phase, Stamped] = {}
    output: list[Stamped] = []
    rest: list[tuple[int, Stamped]] = []
    for stamped in held:
        match stamped.event:
            case CallMoved(phase=phase) as moved:
                moves.setdefault(phase, attrs.evolve(stamped, event=attrs.evolve(moved, waits_for=())))
            case CallOutput():
                output.append(stamped)
            case events.ApprovalAsked() | events.ApprovalClosed():
                rest.append((_ASKING, stamped))
            case events.HookRan() as ran:
                rest.append((_HOOKS.get(ran.event, len(_PHASES)), attrs.evolve(stamped, event=_untimed(ran))))
            case _:
                rest.append((len(_PHASES), stamped))
    placed = [(_PHASES[phase], stamped) for phase, stamped in moves.items()]
    if output:
        placed.append((_OUTPUT, _joined(output)))
    return [stamped for _, stamped in sorted(placed + rest, key=lambda item: item[0])]


def _joined(output: list[Stamped]) -> Stamped:
    """Return one event for all of them, with as much of the end as they have however the output came in chunks."""
    pieces = [stamped.event for stamped in output if isinstance(stamped.event, CallOutput)]
    whole = attrs.evolve(pieces[0], text="".join(piece.text for piece in pieces)[-LIVE:])
    return attrs.evolve(output[-1], event=whole)


def _untimed(ran: events.HookRan) -> events.HookRan:
    """Take the time away: a hook is a real process, and runs on no script's clock."""
    return attrs.evolve(ran, seconds=0.0)


def _unclocked(stamped: Stamped) -> Stamped:
    """Take the time away that the tool of a call ran."""
    if isinstance(stamped.event, events.CallSettled):
        return attrs.evolve(stamped, event=attrs.evolve(stamped.event, seconds=0.0))
    return stamped


def _owner(event: RunEvent) -> CallId | None:
    """Return the call that `event` is a doing of."""
    match event:
        case CallMoved() | CallOutput() | events.ApprovalClosed() | events.FilesChanged():
            return event.call_id
        case events.ApprovalAsked():
            return event.call.id
        case events.CallSettled():
            return event.result.call_id
        case events.HookRan(call_id=call_id):
            return call_id
        case _:
            return None


def _words(stamped: Stamped) -> str:
    return stamped.event.text if isinstance(stamped.event, Notice) else ""
