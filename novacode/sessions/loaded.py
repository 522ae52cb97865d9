"""A session as it was when it was opened."""

from __future__ import annotations

import attrs

from novacode.sessions.record import Header
from novacode.values.events import Stamped
from novacode.values.history import History
from novacode.values.ids import CallId
from novacode.values.request import Usage

__all__ = ["Loaded"]


@attrs.frozen
class Loaded:
    """A session as read. `runs` and `last_seq` are where the counters of runs and events go on.

    `interrupted` is whether the last run has no end on record; `repair` are the events that end it, to be appended.
    `repaired` are the calls whose results had to be made up, `notices` what a person should know about the file.
    `last_usage` is that of the last committed turn. `call_ids` are those of all calls there ever were, also where a
    compaction has left them out of the history.
    """

    history: History = attrs.field(factory=History)
    call_ids: frozenset[CallId] = frozenset()
    header: Header | None = None
    runs: int = 0
    last_seq: int = 0
    last_at: float = 0.0
    model: str = ""
    last_usage: Usage | None = None
    cost_usd: float = 0.0
    interrupted: bool = False
    repaired: tuple[CallId, ...] = ()
    repair: tuple[Stamped, ...] = attrs.field(default=(), repr=False)
    notices: tuple[str, ...] = ()
