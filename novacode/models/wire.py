"""The seam to the network: open a request, receive the bytes of its response.

`HttpWire` is the real one; `ScriptWire` speaks from a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from novacode.protocols.base import WireRequest

__all__ = ["Wire", "WireResponse", "batches"]

_SENT_ALONE = 256 * 1024  # bytes of a body from which on copying them costs more than another send


class WireResponse(Protocol):
    """A response whose headers have come. `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]

    async def receive_some(self) -> bytes:
        """Return the next bytes of the body as they came; `b""` at its end.

        A checkpoint. Raises `ModelFailed` with a `network` failure where the connection is cut or falls silent.
        Cancelling closes the connection.
        """
        ...


class Wire(Protocol):
    """Something that can carry requests."""

    def open(self, request: WireRequest) -> AbstractAsyncContextManager[WireResponse]:
        """Send `request`; the body of the context is entered when the headers have come.

        Raises `ModelFailed` with a `network` failure where there is nobody to talk to. On leaving, also by
        cancellation, the connection is given back or closed: nothing is left that reads.
        """
        ...

    async def aclose(self) -> None:
        """Close what is kept open between requests."""
        ...


def batches(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Put small neighbours together, which is cheaper than sending each; what is large is left alone, uncopied."""
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < _SENT_ALONE:
            small.append(piece)
        else:
            yield from filter(None, (small, [piece]))
            small = []
    if small:
        yield small
