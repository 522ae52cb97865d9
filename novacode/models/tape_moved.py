"""A model that was recorded in another folder, and whose calls are meant for this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs

from novacode.models.client import ModelClient, ModelStream
from novacode.models.tape_match import Names
from novacode.values.events import CallReady, ModelEvent, PartDone
from novacode.values.parts import Text
from novacode.values.request import ModelRequest

__all__ = ["MovedModel", "MovedStream"]


class MovedModel:
    """Asks `inner`; of what it says, finished texts and calls name the folders here instead of those there.

    That cannot be done to the bytes, where a name may be cut by any fragment. What is shown while it is being said is
    left as it was.
    """

    def __init__(self, inner: ModelClient, folders: Mapping[str, str]) -> None:
        self._inner = inner
        self._names = Names.of(folders.items())

    @property
    def issuer(self) -> str:
        """As that of the one within."""
        return self._inner.issuer

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[MovedStream]:
        """Send `request`; see `ModelClient.stream`."""
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncIterator[MovedStream]:
        async with self._inner.stream(request) as stream:
            yield MovedStream(stream, self._names)


class MovedStream:
    """One reply; see `ModelStream`."""

    def __init__(self, inner: ModelStream, names: Names) -> None:
        self._inner = inner
        self._names = names

    async def receive(self) -> Sequence[ModelEvent]:
        """Return the next events; see `ModelStream.receive`."""
        return [self._moved(event) for event in await self._inner.receive()]

    def _moved(self, event: ModelEvent) -> ModelEvent:
        match event:
            case CallReady(call=call):
                moved = attrs.evolve(call, arguments=self._names.value(call.arguments))
                return attrs.evolve(event, call=moved)
            case PartDone(part=Text() as part):
                return attrs.evolve(event, part=attrs.evolve(part, text=self._names.text(part.text)))
            case _:
                return event
