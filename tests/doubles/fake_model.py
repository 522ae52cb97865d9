"""A model that says what a test tells it to, event by event, on the trio clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import trio

from novacode.errors import ModelFailed
from novacode.values.events import (
    CallBroken,
    CallOpened,
    CallReady,
    Finished,
    ModelEvent,
    Started,
    TextDelta,
    UsageSeen,
)
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import CallId
from novacode.values.parts import BrokenCall, ToolCall
from novacode.values.request import ModelRequest, StopReason, Usage

__all__ = ["Break", "FakeModel", "Pause", "Said", "broken", "call", "end", "say"]


@attrs.frozen
class Pause:
    """Say nothing for so long."""

    seconds: float


@attrs.frozen
class Break:
    """The stream is lost here."""

    kind: FailureKind = FailureKind.NETWORK
    retryable: bool = True


Said = ModelEvent | Pause | Break


def say(text: str, index: int = 0) -> TextDelta:
    return TextDelta(index, text)


def call(call_id: str, name: str, index: int = 1, **arguments: object) -> tuple[ModelEvent, ...]:
    ready = ToolCall(CallId(call_id), index, name, arguments)
    return (CallOpened(index, ready.id, name), CallReady(index, ready))


def broken(call_id: str, name: str, index: int = 1, raw: str = '{"path": ') -> tuple[ModelEvent, ...]:
    torn = BrokenCall(CallId(call_id), index, name, raw, f"its arguments are not one JSON object: {raw}")
    return (CallOpened(index, torn.id, name), CallBroken(index, torn))


def end(stop: StopReason = StopReason.END, raw: str | None = None) -> tuple[ModelEvent, ...]:
    return (UsageSeen(Usage(10, 5)), Finished(stop, raw or stop.value))


class FakeModel:
    """Answers request after request from `replies`; `log` gets "model" whenever it is asked."""

    issuer = "fake"

    def __init__(self, replies: Sequence[Sequence[Said | tuple[ModelEvent, ...]]], log: list[str]) -> None:
        self.replies = [list(reply) for reply in replies]
        self.requests: list[ModelRequest] = []
        self.open = 0
        self._log = log

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[_Stream]:
        self._log.append("model")
        self.requests.append(request)
        self.open += 1
        try:
            await trio.lowlevel.checkpoint()
            said = self.replies.pop(0) if self.replies else [say("nothing more to say"), end()]
            yield _Stream(said)
        finally:
            self.open -= 1


class _Stream:
    def __init__(self, said: Sequence[Said | tuple[ModelEvent, ...]]) -> None:
        flat: list[Said] = [Started("fake-1")]
        for item in said:
            flat.extend(item if isinstance(item, tuple) else (item,))
        self._left = flat

    async def receive(self) -> Sequence[ModelEvent]:
        while self._left:
            item = self._left.pop(0)
            match item:
                case Pause(seconds):
                    await trio.sleep(seconds)
                case Break(kind, retryable):
                    await trio.lowlevel.checkpoint()
                    raise ModelFailed(Failure(kind, f"{kind}: planned by the test", retryable))
                case _:
                    await trio.lowlevel.checkpoint()
                    return (item,)
        await trio.lowlevel.checkpoint()
        return ()
