"""How a history becomes shorter: what `Compacted` does to it, for the engine as it happens and for whoever reads it.

Exchanges stay or go as wholes, so what comes out is as strictly paired as what went in. It depends on nothing but the
history and the event: a session that is resumed goes on with the very items the run had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from novacode.values.clip import clip_text
from novacode.values.events import Compacted
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId
from novacode.values.parts import Text, User
from novacode.values.results import ToolResult

__all__ = ["compacted", "shortened"]

Item = User | Exchange

_NOTE = "shortened to save room in the conversation; make the call again if it is needed"


def compacted(history: History, event: Compacted) -> History:
    """Return what `event` leaves of `history`. The messages of the person that stay come first, then the summary."""
    items = history.items
    if event.summary:
        kept = min(event.kept, len(items))
        head, tail = items[: len(items) - kept], items[len(items) - kept :]
        said = [item for item in head if isinstance(item, User) and item.origin == "person"]
        last_said = said[len(said) - event.prompts :] if event.prompts else []
        items = (*last_said, User.said(event.summary, origin="runtime"), *tail)
    return History(_trimmed(items, event.trimmed))


def shortened(result: ToolResult, most: int) -> ToolResult:
    """Return `result` with about `most` bytes of its text, from its head and its tail, and without pictures."""
    pictures = len([part for part in result.content if not isinstance(part, Text)])
    text = clip_text(result.text, max(most, 2), _NOTE)
    if pictures:
        text += f"\n[{pictures} picture(s) left out; {_NOTE}]"
    return attrs.evolve(result, content=(Text(text),))


def _trimmed(items: Sequence[Item], trimmed: Mapping[CallId, int]) -> tuple[Item, ...]:
    return tuple(
        attrs.evolve(item, results=tuple(_short(result, trimmed) for result in item.results))
        if isinstance(item, Exchange) and any(result.call_id in trimmed for result in item.results)
        else item
        for item in items
    )


def _short(result: ToolResult, trimmed: Mapping[CallId, int]) -> ToolResult:
    return shortened(result, trimmed[result.call_id]) if result.call_id in trimmed else result
