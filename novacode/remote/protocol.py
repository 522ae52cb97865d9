"""The messages between the remote and its clients: version 1 of what docs/remote.md describes. No I/O.

What comes from a client becomes one of a few frozen classes, or a `BadMessage` that can be sent back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs

from novacode.remote.bounds import BOUNDS, BadMessage, Bounds, parse_object, shown
from novacode.sessions.record import json_line
from novacode.values.parts import JSON

__all__ = [
    "VERSION",
    "Cancel",
    "ClientMessage",
    "Compact",
    "Hello",
    "ListSessions",
    "New",
    "Open",
    "PermissionResponse",
    "Ping",
    "Prompt",
    "Resync",
    "Rewind",
    "SettingsChange",
    "encode",
    "events_text",
    "fields_of",
    "parse",
]

VERSION = 1
"""Version of the wire. What old clients would misread raises it; new fields and types do not."""

M = TypeVar("M")


def _text(longest: int = 256, *, key: str = "", lenient: bool = False, needed: bool = False) -> Any:
    """A text field. `lenient`: something else counts as nothing, since the answer says more than an error would."""
    about = {"kind": str, "longest": longest, "key": key, "lenient": lenient, "needed": needed}
    return attrs.field(default="", metadata=about)


def _flag() -> Any:
    return attrs.field(default=False, metadata={"kind": bool})


def _number(*, key: str = "") -> Any:
    return attrs.field(default=None, metadata={"kind": int, "key": key})


@attrs.frozen
class Hello:
    """The first message; later ones watch another session."""

    version: int | None = _number()
    session: str = _text()
    last_seq: int | None = _number(key="lastSeq")
    server: str = _text()
    name: str = _text(64)
    ref: str = _text(64)


@attrs.frozen
class Open:
    """Watch a session."""

    session: str = _text(needed=True)
    last_seq: int | None = _number(key="lastSeq")
    server: str = _text()
    ref: str = _text(64)


@attrs.frozen
class New:
    """Begin a session."""

    ref: str = _text(64)


@attrs.frozen
class ListSessions:
    """Ask for the list of sessions."""

    ref: str = _text(64)


@attrs.frozen
class Prompt:
    """Start a run."""

    text: str = _text(1 << 20, needed=True)
    session: str = _text()
    ref: str = _text(64)


@attrs.frozen
class PermissionResponse:
    """Answer a question. What is missing or is no text is empty, and so matches nothing."""

    id: str = _text(lenient=True)
    run_id: str = _text(key="runId", lenient=True)
    response: str = _text(lenient=True)
    reason: str = _text(4096)
    rule: str = _text(8192)
    ref: str = _text(64)


@attrs.frozen
class Cancel:
    """Stop a run, or one call of it."""

    run_id: str = _text(key="runId", lenient=True)
    call_id: str = _text(key="callId")
    hurry: bool = _flag()
    ref: str = _text(64)


@attrs.frozen
class SettingsChange:
    """Change the mode or the limits of a session. `limits` is `None` where it was left out."""

    mode: str = _text(64)
    limits: Mapping[str, JSON] | None = attrs.field(default=None, metadata={"kind": Mapping})
    ref: str = _text(64)


@attrs.frozen
class Compact:
    """Shorten the conversation."""

    wanted: str = _text(8192)
    ref: str = _text(64)


@attrs.frozen
class Rewind:
    """Put files back, or say what that would do."""

    run: str = _text()
    turn: int | None = _number()
    call: str = _text()
    undo: bool = _flag()
    force: bool = _flag()
    preview: str = _text()
    ref: str = _text(64)


@attrs.frozen
class Resync:
    """Ask for everything after `last_seq` once more."""

    last_seq: int | None = _number(key="lastSeq")
    ref: str = _text(64)


@attrs.frozen
class Ping:
    """Ask for a `pong`."""

    ref: str = _text(64)


ClientMessage = (
    Hello
    | Open
    | New
    | ListSessions
    | Prompt
    | PermissionResponse
    | Cancel
    | SettingsChange
    | Compact
    | Rewind
    | Resync
    | Ping
)

_TYPES: Mapping[str, type[Any]] = {
    "hello": Hello,
    "open": Open,
    "new": New,
    "sessions": ListSessions,
    "prompt": Prompt,
    "permission_response": PermissionResponse,
    "cancel": Cancel,
    "settings": SettingsChange,
    "compact": Compact,
    "rewind": Rewind,
    "resync": Resync,
    "ping": Ping,
}


def parse(text: str, bounds: Bounds = BOUNDS) -> ClientMessage:
    """Return the message that `text` is. Raises `BadMessage`, with the message's `ref` where it has one."""
    data = parse_object(text, bounds)
    ref = data.get("ref")
    ref = ref if isinstance(ref, str) and len(ref) <= 64 else ""
    tag = data.get("type")
    cls = _TYPES.get(tag) if isinstance(tag, str) else None
    if cls is None:
        known = ", ".join(_TYPES)
        raise BadMessage("unknown_type", f"a message of type {shown(tag)} is not known; known are {known}", ref=ref)
    try:
        return cast("ClientMessage", fields_of(cls, data))
    except BadMessage as bad:
        raise BadMessage(bad.code, f"{tag}: {bad.text}", ref=ref) from None


def fields_of(cls: type[M], data: Mapping[str, JSON]) -> M:
    """Return `data` as a `cls`, one of the classes here; ignores what it does not know. Raises `BadMessage`."""
    given: dict[str, Any] = {}
    for field in attrs.fields(cast("Any", cls)):
        about = field.metadata
        key = about.get("key") or field.name
        value = data.get(key)
        if value is not None and not _fits(value, about):
            if not about.get("lenient"):
                raise BadMessage("bad_message", f"`{key}` is {shown(value)}; it must be {_wanted(about)}")
            value = None
        if value is None and about.get("needed"):
            raise BadMessage("bad_message", f"`{key}` is missing; it must be {_wanted(about)}")
        if value is not None:
            given[field.name] = value
    return cls(**given)


def encode(message: Mapping[str, JSON]) -> str:
    """Return a message of the server as the text to send. A `ref` that is empty is left out."""
    if message.get("ref") == "":
        message = {key: value for key, value in message.items() if key != "ref"}
    return json_line(message)[:-1].decode()


def events_text(session: str, events: Sequence[bytes]) -> str:
    """Return the `event` or `events` message for events that are JSON already: each is encoded once, for everybody."""
    head = f'{{"type":"{"event" if len(events) == 1 else "events"}","session":{json.dumps(session)},'
    inner = b",".join(events).decode()
    return f'{head}"event":{inner}}}' if len(events) == 1 else f'{head}"events":[{inner}]}}'


def _fits(value: JSON, about: Mapping[str, Any]) -> bool:
    kind = about["kind"]
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    if kind is str:
        return isinstance(value, str) and len(value) <= about["longest"]
    return isinstance(value, kind)


def _wanted(about: Mapping[str, Any]) -> str:
    kind = about["kind"]
    if kind is str:
        return f"a text of at most {about['longest']} characters"
    return {int: "a whole number from 0 on", bool: "true or false", Mapping: "an object"}[kind]
