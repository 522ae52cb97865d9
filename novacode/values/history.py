"""What was said and done, paired by construction.

A `History` is made of user messages and exchanges. An `Exchange` that is not paired one to one, in order, cannot be
built, so no code below or above has to check again.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from novacode.errors import PairingError
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, User
from novacode.values.results import ToolResult

__all__ = ["Exchange", "History"]


@attrs.frozen
class Exchange:
    """One assistant message and the results of all its calls, in call order. The unit of history.

    Raises `PairingError` where ids, names, order or number do not match, and where the message is empty.
    """

    message: Assistant
    results: tuple[ToolResult, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not self.message.parts:
            raise PairingError("an exchange needs a message that says something; this one has no parts")
        calls = self.message.calls
        wanted = [(call.id, call.name) for call in calls]
        given = [(result.call_id, result.name) for result in self.results]
        if wanted != given:
            raise PairingError(f"results must answer the calls one to one, in order: calls {wanted}, results {given}")
        if len({call.id for call in calls}) != len(calls):
            raise PairingError(f"two calls of one message share an id: {[call.id for call in calls]}")


@attrs.frozen
class History:
    """A conversation. Immutable: growing it gives a new one that shares the old one's items."""

    items: tuple[User | Exchange, ...] = ()

    def with_user(self, user: User) -> History:
        """Return this history followed by `user`."""
        return History((*self.items, user))

    def with_exchange(self, exchange: Exchange) -> History:
        """Return this history followed by `exchange`."""
        return History((*self.items, exchange))

    @property
    def exchanges(self) -> Iterator[Exchange]:
        """Its exchanges, oldest first."""
        return (item for item in self.items if isinstance(item, Exchange))

    @property
    def call_ids(self) -> frozenset[CallId]:
        """The ids of all its calls. Linear in the history: for starting and resuming, not for every turn."""
        return frozenset(result.call_id for exchange in self.exchanges for result in exchange.results)
