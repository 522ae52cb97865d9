"""What every wire protocol offers, and the one reading of failures they share.

A codec never performs I/O and never awaits. What it does with bytes does not depend on how they were cut: any split
of the same body gives the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from novacode.errors import NovaError
from novacode.values.events import ModelEvent
from novacode.values.failure import Failure
from novacode.values.ids import CallIds
from novacode.values.request import ModelRequest

__all__ = ["Codec", "Decoder", "WireRequest"]


@attrs.frozen(eq=False, repr=False)
class WireRequest:
    """An HTTP request as a codec writes it. `path` is relative to the provider's base URL; keys are the wire's job.

    `pieces` are the body, to be sent one after the other. Most of them were sent in the last request too: joined anew
    for each, the megabytes of a long session would be copied every turn.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    pieces: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """The whole body, copied."""
        return b"".join(self.pieces)

    @property
    def size(self) -> int:
        """The length of the body, in bytes."""
        return sum(map(len, self.pieces))


class Decoder(Protocol):
    """One response body. Bytes go in, events come out."""

    error: NovaError | None
    """What was found wrong: a `RemoteProtocolError`, or `ModelFailed` for an error the provider reported in the
    stream. `feed` first returns every event before it; from then on `feed` and `close` raise it."""

    finished: bool
    """Whether `Finished` was emitted: the response is whole, and the reader may stop waiting for the end."""

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Take more bytes and return what they complete. Raises `error`, once everything before it was returned."""
        ...

    def close(self) -> list[ModelEvent]:
        """The body has ended. Returns the last events; raises `RemoteProtocolError` where it ended too early.

        As with `feed`, events come before the error: where both are found at once, the events are returned, and
        `error` tells the rest.
        """
        ...


class Codec(Protocol):
    """One wire protocol, for one conversation: it keeps the encoded form of history items it has met."""

    issuer: str
    """Who issues the seals this codec reads and writes: only its own are sent back."""

    def encode(self, request: ModelRequest) -> WireRequest:
        """Return the request that asks for a streamed response. Linear in what is new since the last one."""
        ...

    def decoder(self, ids: CallIds) -> Decoder:
        """Return a fresh decoder; it takes the ids of calls from `ids`."""
        ...

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return what an HTTP error response means. `headers` have lower-case names. Never raises."""
        ...
