"""A conversation as bytes that grow with it: what was encoded for the last request is not looked at for the next.

History items are immutable, and a history nearly always is the one before and something more. So the bytes of closed
messages are kept, and a request costs what is new; what is not new is sent as the pieces it was sent in before. Where
a history is another one (a compaction, a fork) everything is encoded anew, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from novacode.values.history import Exchange
from novacode.values.parts import User

__all__ = ["GrowingFragments", "GrowingMessages", "Pieces"]

Items = tuple[User | Exchange, ...]
Run = tuple[str, list[bytes]]

_PIECE = 512 * 1024
_OPEN_RUNS = 2
"""The last messages may still change: the last one grows, and the last of the user is marked for the cache."""


class Pieces:
    """Bytes that grow, in pieces that are left alone once they are large enough.

    As one piece they would be moved each time there is no room behind them, and leave a hole of megabytes each time.
    """

    def __init__(self) -> None:
        self._whole: list[bytes] = []
        self._last = bytearray()

    def __bool__(self) -> bool:
        return bool(self._whole or self._last)

    def add(self, data: bytes) -> None:
        """Put `data` behind what is there, with a comma between."""
        if self:
            self._last += b","
        self._last += data
        if len(self._last) >= _PIECE:
            self._whole.append(bytes(self._last))
            self._last = bytearray()

    @property
    def all(self) -> list[bytes]:
        """The pieces, to be sent with nothing between."""
        return [*self._whole, bytes(self._last)]


class GrowingFragments:
    """For protocols where every item is bytes of its own: they are joined with commas; empty ones are left out."""

    def __init__(self, encode: Callable[[User | Exchange], bytes]) -> None:
        self._encode = encode
        self._seen: Items = ()
        self._pieces = Pieces()

    def of(self, items: Items, first: bytes = b"") -> list[bytes]:
        """Return `first`, where there is one, and `items`, as pieces to be joined with nothing between."""
        seen = self._seen
        if items[: len(seen)] != seen:  # compared by identity as long as they are the same
            seen, self._pieces = (), Pieces()
        for item in items[len(seen) :]:
            fragment = self._encode(item)
            if fragment:
                self._pieces.add(fragment)
        self._seen = items
        return [first, b"," if first and self._pieces else b"", *self._pieces.all]


class GrowingMessages:
    """For protocols where neighbours of one role are one message: `encode` gives the fragments of an item by role.

    `head` begins a message of a role, and `opening` is the fragment of a first message, where the user has none.
    """

    def __init__(
        self, encode: Callable[[User | Exchange], Iterable[tuple[str, bytes]]], head: bytes, opening: bytes
    ) -> None:
        self._encode = encode
        self._head = head
        self._opening = opening
        self._begin()

    def _begin(self) -> None:
        self._seen: Items = ()
        self._closed = Pieces()
        self._runs: list[Run] = []

    def of(self, items: Items, mark: Callable[[list[Run]], None] = lambda _: None) -> list[bytes]:
        """Return the messages, as pieces to be joined with nothing between; `mark` may change the last of them."""
        if items[: len(self._seen)] != self._seen:
            self._begin()
        for item in items[len(self._seen) :]:
            for role, fragment in self._encode(item):
                self._take(role, fragment)
        self._seen = items
        runs = [(role, list(fragments)) for role, fragments in self._runs] or [("user", [self._opening])]
        mark(runs)
        last = b",".join(map(self._message, runs))
        return [*self._closed.all, b"," if self._closed else b"", last]

    def _take(self, role: str, fragment: bytes) -> None:
        runs = self._runs
        if not runs and role != "user":
            runs.append(("user", [self._opening]))
        if runs and runs[-1][0] == role:
            runs[-1][1].append(fragment)
            return
        runs.append((role, [fragment]))
        if len(runs) > _OPEN_RUNS:
            self._closed.add(self._message(runs.pop(0)))

    def _message(self, run: Run) -> bytes:
        role, fragments = run
        return b"%b%b]}" % (self._head % role.encode(), b",".join(fragments))
