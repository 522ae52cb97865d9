"""What clients can do to a session, for the WebSocket and for HTTP alike: each function returns what to answer."""

from __future__ import annotations

import hashlib
import json

import trio

from novacode.app.clocks import WallClock
from novacode.app.rewinding import Prospect, To, prospect, read_story
from novacode.app.rewinding import rewind as carry_out
from novacode.authority.modes import parse_mode
from novacode.engine.limits import Limits
from novacode.errors import NovaError, SessionError, SettingsError
from novacode.remote.hub import Hub
from novacode.remote.protocol import Cancel, Compact, PermissionResponse, Prompt, Rewind, SettingsChange
from novacode.remote.questions import ignored
from novacode.remote.room import Room
from novacode.remote.states import Refusal, limits_of
from novacode.sessions.fold import events_of
from novacode.sessions.timeline import timelines
from novacode.values.parts import JSON
from novacode.workspace.rewind import Item, Verdict

__all__ = ["answer", "cancel", "change", "compact", "prompt", "rewind", "timeline"]

Reply = dict[str, JSON]


async def prompt(hub: Hub, room: Room, given: Prompt) -> Reply:
    """Start a run. Raises `Refusal`."""
    hub.may_open(room)
    try:
        run_id = await room.prompt(given.text)
    except NovaError as error:
        raise _refused(error) from error
    return {"type": "receipt", "re": "prompt", "ref": given.ref, "session": room.session, "runId": run_id}


async def compact(hub: Hub, room: Room, given: Compact) -> Reply:
    """Start to shorten the conversation. Raises `Refusal`."""
    hub.may_open(room)
    try:
        run_id = await room.compact(given.wanted)
    except NovaError as error:
        raise _refused(error) from error
    return {"type": "receipt", "re": "compact", "ref": given.ref, "session": room.session, "runId": run_id}


def answer(room: Room | None, given: PermissionResponse, by: str) -> Reply:
    """Answer a question. Without a checkpoint, so nothing comes between the look and the answer."""
    if room is None or room.app is None:
        reason = "stale_run" if given.run_id else "missing_run"
        return ignored(given, reason)
    return room.questions.answer(room.app.agent, given, by)


def cancel(room: Room | None, given: Cancel, by: str) -> Reply:
    """Stop a run or a call. As `answer`, it counts only for the active run."""
    if not given.run_id:
        return ignored(given, "missing_run")
    active = None if room is None or room.app is None else room.app.agent.active
    if room is None or active is None or active.id != given.run_id:
        return ignored(given, "stale_run")
    if not given.call_id:
        room.stop(f"stopped by {by}", hurry=given.hurry)
    elif given.call_id not in room.calls or not active.stop_call(room.calls[given.call_id]):
        return ignored(given, "unknown")
    return {"type": "receipt", "re": "cancel", "ref": given.ref, "runId": given.run_id}


def change(room: Room, given: SettingsChange) -> Reply:
    """Change mode or limits; everybody is told the new state. Raises `Refusal`."""
    try:
        mode = parse_mode(given.mode) if given.mode else None
    except SettingsError as error:
        raise Refusal("bad_settings", str(error)) from None
    if given.limits is not None:
        before = room.limits or (Limits() if room.app is None else room.app.agent.options.limits)
        room.set_limits(limits_of(given.limits, before))
    if mode is not None:
        room.set_mode(mode)
    room.tell_state()
    return {"type": "receipt", "re": "settings", "ref": given.ref, "session": room.session}


async def rewind(hub: Hub, room: Room, given: Rewind) -> Reply:
    """Say what a rewind would do, or do exactly what was said before. Raises `Refusal`."""
    if room.path is None:
        raise Refusal("refused", "this session is kept nowhere, so nothing of it can be taken back")
    to = To(given.run, given.turn, given.call, given.undo)
    try:
        if not given.preview:
            found = await trio.to_thread.run_sync(_look, hub, room, to)
            return _preview(room, found, given)
        async with room.given_back():
            found = await trio.to_thread.run_sync(_look, hub, room, to)
            return await _apply(hub, room, found, given)
    except NovaError as error:
        raise Refusal("refused", str(error)) from error
    finally:
        room.refresh()
        room.tell_state()


async def _apply(hub: Hub, room: Room, found: Prospect, given: Rewind) -> Reply:
    if _digest(found, force=given.force) != given.preview:
        raise Refusal("stale_preview", "something has changed since the preview; nothing was done. Look again.")
    if found.refusals and not given.force:
        raise Refusal("refused", f"nothing was rewound: {'; '.join(found.refusals)}")
    chosen = [item for item in found.items if _chosen(item, force=given.force)]
    report = await carry_out(chosen, found, hub.store, hub.base.home, WallClock())
    return {
        "type": "rewound",
        "ref": given.ref,
        "session": room.session,
        "rewind": report.rewind,
        "done": [item.path for item in report.done],
        "failed": dict(report.failed),
        "keptFolders": list(report.kept_folders),
    }


async def timeline(room: Room) -> dict[str, JSON]:
    """Return the time-lines of all runs of a session."""
    if room.path is None:
        return {"runs": []}
    path = room.path
    found = await trio.to_thread.run_sync(lambda: timelines(events_of(path)))
    return {
        "runs": [
            {
                "runId": run.run_id,
                "prompt": run.prompt,
                "seconds": run.seconds,
                "status": run.status,
                "reason": run.reason,
                "stopAt": run.stop_at,
                "lanes": [
                    {
                        "title": lane.title,
                        "outcome": lane.outcome,
                        "detail": lane.detail,
                        "spans": [
                            {"kind": span.kind.value, "begin": span.begin, "end": span.end} for span in lane.spans
                        ],
                    }
                    for lane in run.lanes
                ],
            }
            for run in found
        ]
    }


def _look(hub: Hub, room: Room, to: To) -> Prospect:
    assert room.path is not None
    return prospect(read_story(room.path), hub.base.home, to)


def _preview(room: Room, found: Prospect, given: Rewind) -> Reply:
    return {
        "type": "rewind_preview",
        "ref": given.ref,
        "session": room.session,
        "preview": _digest(found, force=given.force),
        "title": found.title,
        "items": [
            {
                "path": item.path,
                "verdict": item.verdict.value,
                "chosen": _chosen(item, force=given.force),
                "now": item.now.kind.value,
                "target": item.target.kind.value,
                "calls": list(item.calls),
                "why": item.why,
            }
            for item in found.items
        ],
        "refusals": list(found.refusals),
        "notCovered": dict(found.left_out),
    }


def _chosen(item: Item, *, force: bool) -> bool:
    return item.verdict is Verdict.RESTORE or (force and item.verdict is Verdict.CONFLICT)


def _digest(found: Prospect, *, force: bool) -> str:
    """Name what would be done: the same name, the same paths, contents and states."""
    facts = [found.title, force, list(found.refusals), [repr(item) for item in found.items]]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _refused(error: NovaError) -> Refusal:
    return Refusal("session_in_use" if isinstance(error, SessionError) else "failed", str(error))
