"""Events and history as plain JSON data and back: the one cattrs converter and its tag table.

Every class of a union is told apart by a `type` field; `TAGS` is the whole table and part of the format. Fields that
hold their default are left out, so a record stays short and an old reader is not told about new fields it need not
know.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from novacode.values import events, parts, results
from novacode.values.events import RunEvent, Stamped
from novacode.values.history import Exchange
from novacode.values.parts import JSON, User

__all__ = ["TAGS", "VERSION", "dump_event", "dump_stamped", "load_event", "load_item", "load_stamped"]

VERSION = 1
"""Version of the record format. A newer minor addition keeps it; a change old readers would misread raises it."""

TAGS: Mapping[type, str] = {
    parts.Text: "text",
    parts.Thinking: "thinking",
    parts.Image: "image",
    parts.ServerBlock: "server_block",
    parts.ToolCall: "tool_call",
    parts.BrokenCall: "broken_call",
    parts.User: "user",
    Exchange: "exchange",
    events.Started: "started",
    events.TextDelta: "text_delta",
    events.ThinkingDelta: "thinking_delta",
    events.CallOpened: "call_opened",
    events.CallDelta: "call_delta",
    events.CallReady: "call_ready",
    events.CallBroken: "call_broken",
    events.PartDone: "part_done",
    events.UsageSeen: "usage_seen",
    events.Finished: "finished",
    events.Notice: "notice",
    events.RunBegan: "run_began",
    events.TurnBegan: "turn_began",
    events.AttemptDropped: "attempt_dropped",
    events.CallMoved: "call_moved",
    events.CallOutput: "call_output",
    events.ApprovalAsked: "approval_asked",
    events.ApprovalClosed: "approval_closed",
    events.HookRan: "hook_ran",
    events.FilesChanged: "files_changed",
    events.CallSettled: "call_settled",
    events.TurnCommitted: "turn_committed",
    events.UserAdded: "user_added",
    events.Compacted: "compacted",
    events.RunEnded: "run_ended",
}

_CLASSES = {tag: cls for cls, tag in TAGS.items()}
_UNIONS: tuple[Any, ...] = (
    parts.UserPart,
    parts.AssistantPart,
    results.ResultPart,
    parts.Text | parts.Thinking | parts.ServerBlock,
    User | Exchange,
    RunEvent,
)


@functools.cache
def _converter() -> cattrs.Converter:
    """Build the converter. Hooks for a class are generated when it is first met, which keeps start-up short."""
    made = cattrs.Converter()
    made.register_unstructure_hook_factory(attrs.has, functools.partial(_unstructure_tagged, made))
    made.register_structure_hook_factory(
        attrs.has, lambda cls: make_dict_structure_fn(cls, made, _cattrs_forbid_extra_keys=False)
    )
    for union in _UNIONS:
        made.register_unstructure_hook(union, lambda value: made.unstructure(value, type(value)))
        made.register_structure_hook(union, functools.partial(_structure_tagged, made))
    return made


def _unstructure_tagged(made: cattrs.Converter, cls: type) -> Any:
    plain: Any = make_dict_unstructure_fn(cls, made, _cattrs_omit_if_default=True)
    tag = TAGS.get(cls)
    if tag is None:
        return plain
    return lambda value: {"type": tag, **plain(value)}


def _structure_tagged(made: cattrs.Converter, data: Any, _: Any) -> Any:
    tag = data.get("type") if isinstance(data, Mapping) else None
    cls = _CLASSES.get(tag) if isinstance(tag, str) else None
    if cls is None:
        raise ValueError(f"a record of type {tag!r} is not known")
    return made.structure({key: value for key, value in data.items() if key != "type"}, cls)


def dump_event(event: RunEvent) -> dict[str, JSON]:
    """Return `event` as JSON data with its `type`."""
    return cast("dict[str, JSON]", _converter().unstructure(event, type(event)))


def dump_stamped(stamped: Stamped) -> dict[str, JSON]:
    """Return a stamped event as one flat JSON object: `seq`, `run_id`, `at`, then the event's own fields."""
    head = {"seq": stamped.seq, "run_id": stamped.run_id, "at": stamped.at}
    return head | dump_event(stamped.event)


def load_event(data: Mapping[str, JSON]) -> RunEvent:
    """Return the event that `dump_event` wrote. Raises `ValueError` or a cattrs error for anything else."""
    return cast("RunEvent", _structure_tagged(_converter(), data, RunEvent))


def load_item(data: Mapping[str, JSON]) -> User | Exchange:
    """Return the history item that was written as `data`; the same errors as `load_event`.

    An exchange that is not paired is a cattrs error with the `PairingError` in it.
    """
    return cast("User | Exchange", _structure_tagged(_converter(), data, User | Exchange))


def load_stamped(data: Mapping[str, JSON]) -> Stamped:
    """Return the stamped event that `dump_stamped` wrote; the same errors as `load_event`."""
    body = {key: value for key, value in data.items() if key not in ("seq", "run_id", "at")}
    return Stamped(data["seq"], data["run_id"], data["at"], load_event(body))
