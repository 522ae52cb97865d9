"""What the remote tells of a session: the objects of docs/remote.md that are no events."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import trio

from novacode.app.setup import Setup
from novacode.engine.limits import Limits
from novacode.remote.protocol import events_text
from novacode.remote.watcher import Batch
from novacode.sessions.holders import holder
from novacode.sessions.listing import Summary, summarise
from novacode.values.parts import JSON

if TYPE_CHECKING:
    from novacode.remote.room import Room

__all__ = ["Refusal", "Shared", "Stopping", "batch_of", "limits_of", "listed", "room_state", "stopping_message"]

_LIMITS = {
    "maxTurns": ("max_turns", int),
    "maxSeconds": ("max_seconds", float),
    "maxOutputTokens": ("max_output_tokens", int),
    "maxBudgetUsd": ("max_budget_usd", float),
}


class Refusal(Exception):
    """What was asked for cannot be done now. `code` is one of docs/remote.md."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@attrs.define
class Shared:
    """What all rooms have in common. `setup_of` says what a session of that id is made from.

    `closing` is why the server ends, empty while it does not. `unused` are the seconds after which a session is given
    back. `bug` is told of what must not happen and shall not end the server.
    """

    nursery: trio.Nursery
    setup_of: Callable[[str], Setup]
    bug: Callable[[Exception], None]
    unused: float = 300.0
    closing: str = ""

    def must_be_open(self) -> None:
        """Raise `Refusal` where the server ends."""
        if self.closing:
            raise Refusal("shutting_down", f"the server is ending ({self.closing}); nothing new is begun")


@attrs.define
class Stopping:
    """A run that was asked to stop."""

    run_id: str
    reason: str
    since: float
    hurried: bool = False
    told: tuple[JSON, ...] = ()


def batch_of(session: str, events: list[tuple[int, bytes]]) -> Batch:
    """Return the frame that tells of `events`, which are in order."""
    return Batch(events_text(session, [text for _, text in events]), events[-1][0], events[0][0], len(events))


def room_state(room: Room, setup: Setup) -> dict[str, JSON]:
    """Return the `state` of a session."""
    app = room.app
    summary = None if room.path is None else summarise(room.path)
    limits = room.limits or (Limits() if app is None else app.agent.options.limits)
    mode = room.mode or setup.settings.mode
    pid = holder(room.path) if app is None and room.path is not None else None
    return {
        "type": "state",
        "session": room.session,
        "title": summary.title if summary else room.prompt_text[:200],
        "cwd": str(setup.cwd),
        "model": app.choice.label
        if app is not None
        else (setup.choice.label if setup.choice else setup.settings.model),
        "mode": (mode if app is None else app.agent.services.permissions.policy.mode).value,
        "limits": {name: getattr(limits, field) for name, (field, _) in _LIMITS.items()},
        "open": app is not None,
        "locked": f"the process {pid}" if pid not in (None, os.getpid()) else "",
        "simulate": setup.simulate,
        "costUsd": room.cost_usd,
        "watchers": len(room.audience.watchers),
        "lastSeq": room.audience.last_seq,
        "notices": list(app.notices) if app is not None else [],
        "run": _run(room),
    }


def stopping_message(session: str, stopping: Stopping, waiting: tuple[str, ...]) -> dict[str, JSON]:
    """Return the `stopping` message."""
    return {
        "type": "stopping",
        "session": session,
        "runId": stopping.run_id,
        "reason": stopping.reason,
        "seconds": round(trio.current_time() - stopping.since, 2),
        "hurried": stopping.hurried,
        "waitingFor": list(waiting),
    }


def listed(summary: Summary, room: Room | None) -> dict[str, JSON]:
    """Return a line of the list of sessions."""
    return {
        "session": summary.id,
        "title": summary.title,
        "cwd": summary.cwd,
        "created": summary.created,
        "last": summary.last,
        "size": summary.size,
        "open": room is not None and room.app is not None,
        "running": room is not None and bool(room.run_id),
        "approvals": len(room.approvals()) if room is not None else 0,
        "watchers": len(room.audience.watchers) if room is not None else 0,
    }


def limits_of(given: Mapping[str, JSON], before: Limits) -> Limits:
    """Return `before` with what a client wants instead. Raises `Refusal` for what is no limit."""
    wanted: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _LIMITS:
            raise Refusal("bad_settings", f"`limits` has {key!r}; it takes {', '.join(_LIMITS)}")
        field, kind = _LIMITS[key]
        fits = (
            isinstance(value, int if kind is int else int | float) and not isinstance(value, bool) and 0 < value < 1e12
        )
        if value is not None and not fits:
            raise Refusal("bad_settings", f"`{key}` is {value!r}; it takes a number over 0, or null for no limit")
        wanted[field] = value
    return attrs.evolve(before, **wanted)


def _run(room: Room) -> JSON:
    if not room.run_id:
        return None
    stopping = room.stopping
    told = None
    if stopping is not None and room.app is not None:
        told = stopping_message(room.session, stopping, room.app.processes.waiting_for())
        told = {key: told[key] for key in ("reason", "seconds", "hurried", "waitingFor")}
    return {"runId": room.run_id, "prompt": room.prompt_text, "stopping": told}
