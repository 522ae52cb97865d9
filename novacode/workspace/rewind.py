"""What going back to before a call would do, path by path, decided before anything is touched. Pure.

Only paths that calls have changed come into it. A path whose state is not what the last call left, or that somebody
else changed between two calls, is a person's now: it is a conflict, and stays as it is unless they say otherwise.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence

import attrs

from novacode.workspace.changes import Change, Entry
from novacode.workspace.states import Kind, State

__all__ = ["Item", "Verdict", "gaps", "plan"]


class Verdict(enum.StrEnum):
    """What is to become of a path."""

    RESTORE = "restore"
    SAME = "same"
    CONFLICT = "conflict"
    UNKEPT = "unkept"


@attrs.frozen
class Item:
    """A path that is `now`, and was `target`. `calls` changed it, in this order. `why` is for people."""

    path: str
    now: State
    target: State
    verdict: Verdict
    calls: tuple[str, ...] = ()
    why: str = ""


@attrs.define
class _Trail:
    """What became of one path. `left` is `None` where a call was cut off, so that nobody knows what it left."""

    target: State
    left: State | None
    calls: list[str]
    broken: str = ""


def plan(entries: Iterable[Entry], look: Callable[[str], State]) -> tuple[Item, ...]:
    """Return what taking back all of `entries` comes to, by path. `look` tells what is at a path now."""
    trails: dict[str, _Trail] = {}
    for entry in sorted(entries, key=lambda entry: entry.closed if entry.changes is not None else 2**62):
        for path, before, after in _steps(entry):
            trail = trails.get(path)
            if trail is None:
                trails[path] = _Trail(before, after, [entry.call])
                continue
            if trail.left is not None and trail.left != before:
                trail.broken = trail.broken or f"somebody else changed it between {trail.calls[-1]} and {entry.call}"
            trail.left = after
            trail.calls.append(entry.call)
    return tuple(_item(path, trail, look(path)) for path, trail in sorted(trails.items()))


def gaps(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Say where nobody knows what was changed, so that it cannot be taken back."""
    found = []
    for entry in entries:
        if entry.damage:
            found.append(entry.damage)
        elif entry.changes is None and entry.whole:
            found.append(f"{entry.call} was cut off, and what it had changed by then is not known")
    return tuple(found)


def _steps(entry: Entry) -> Sequence[tuple[str, State, State | None]]:
    if entry.changes is None:
        return [(path, state, None) for path, state in entry.before.items()]
    return [_step(change) for change in entry.changes]


def _step(change: Change) -> tuple[str, State, State | None]:
    return (change.path, change.before, change.after)


def _item(path: str, trail: _Trail, now: State) -> Item:
    verdict, why = _judge(trail, now)
    return Item(path, now, trail.target, verdict, tuple(trail.calls), why)


def _judge(trail: _Trail, now: State) -> tuple[Verdict, str]:
    if now == trail.target and now.kind is not Kind.UNKEPT:
        return Verdict.SAME, ""
    if trail.target.kind is Kind.UNKEPT:
        return Verdict.UNKEPT, f"what it was is not kept: {_reason(trail.target)}"
    if now.kind is Kind.UNKEPT:
        return Verdict.UNKEPT, f"what it is could not be kept: {_reason(now)}"
    if trail.left is not None and trail.left.kind is Kind.UNKEPT:
        return Verdict.CONFLICT, f"what {trail.calls[-1]} left was not kept ({_reason(trail.left)})"
    if trail.left is None:
        return Verdict.CONFLICT, f"{trail.calls[-1]} was cut off; whether this is its doing is not known"
    if now != trail.left:
        return Verdict.CONFLICT, f"it is not what {trail.calls[-1]} left"
    if trail.broken:
        return Verdict.CONFLICT, trail.broken
    return Verdict.RESTORE, ""


def _reason(state: State) -> str:
    return state.content.partition(":")[0]
