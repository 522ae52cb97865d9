"""Reading one response of the model, with retries only while they are harmless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import attrs
import trio

from novacode.engine.patience import Patience
from novacode.errors import ModelFailed
from novacode.models.backoff import GiveUp, Stage, Wait
from novacode.values.events import (
    AttemptDropped,
    CallBroken,
    CallReady,
    Emit,
    Finished,
    ModelEvent,
    PartDone,
    TextDelta,
    UsageSeen,
)
from novacode.values.failure import Failure
from novacode.values.parts import Assistant, AssistantPart, BrokenCall, ServerBlock, Text, Thinking, ToolCall
from novacode.values.request import ModelRequest, Usage

__all__ = ["Lost", "Model", "ModelStream", "Reading", "Reply", "Start", "read_reply"]


@attrs.frozen
class Lost:
    """A reply that broke off. `delay` are the seconds to wait before going on; `None` means there is no going on."""

    failure: Failure
    delay: float | None = None


class ModelStream(Protocol):
    """One response under way."""

    async def receive(self) -> Sequence[ModelEvent]:
        """Return the next events, `()` at the end. A checkpoint; raises `ModelFailed` and nothing else."""
        ...


class Model(Protocol):
    """Something that answers requests."""

    @property
    def issuer(self) -> str:
        """Whose seals its responses carry."""
        ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelStream]:
        """Open a response; raises `ModelFailed`. Leaving the context stops it, whatever the way out."""
        ...


class Reply:
    """What has come of a response so far, and what of it is worth keeping."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.dropped: list[Usage] = []  # what attempts cost that came to nothing
        self._begin()

    def reset(self) -> None:
        """Forget everything but what it cost: the attempt is void."""
        self.dropped.append(self.usage)
        self._begin()

    @property
    def costs(self) -> tuple[Usage, ...]:
        """What every attempt used so far, this one last."""
        return (*self.dropped, self.usage)

    def _begin(self) -> None:
        self.usage = Usage()
        self.finish: Finished | None = None
        self.has_calls = False
        self._done: dict[int, AssistantPart] = {}
        self._text: dict[int, list[str]] = {}

    def take(self, event: ModelEvent) -> None:
        """Take the next event in."""
        match event:
            case TextDelta(index, text):
                self._text.setdefault(index, []).append(text)
            case PartDone(index, part):
                self._done[index] = part
                self._text.pop(index, None)
            case CallReady(index, call) | CallBroken(index, call):
                self._done[index] = call
                self.has_calls = True
            case UsageSeen(usage):
                self.usage = usage
            case Finished():
                self.finish = event
            case _:
                pass  # beginnings, fragments of calls and of reasoning: kept once they are whole

    def message(self) -> Assistant | None:
        """Return what to keep of it, or `None` where nothing was said.

        Of an interrupted response finished parts and partial text are kept. What the provider would refuse to see
        again without its other half is dropped: calls and reasoning that were never finished, reasoning that nothing
        follows, and what the provider was doing by itself. Reasoning and blanks alone say nothing.
        """
        parts = dict(self._done)
        for index, pieces in self._text.items():
            parts[index] = Text("".join(pieces))
        ordered = [part for _, part in sorted(parts.items()) if part != Text("")]
        if self.finish is None:
            ordered = [part for part in ordered if not isinstance(part, ServerBlock)]
            ordered = [part for part in ordered if not (isinstance(part, Thinking) and part.seal is None)]
            while ordered and isinstance(ordered[-1], Thinking):
                ordered.pop()
        if all(isinstance(part, Thinking) or _is_blank(part) for part in ordered):
            return None
        return Assistant(tuple(ordered), self.issuer)


def _is_blank(part: AssistantPart) -> bool:
    return isinstance(part, Text) and not part.text.strip()


class Reading(Protocol):
    """What reading a response needs of a run."""

    @property
    def model(self) -> Model:
        """Whom to ask."""
        ...

    @property
    def patience(self) -> Patience:
        """How often, and how long to wait in between."""
        ...

    @property
    def emit(self) -> Emit:
        """Where events go."""
        ...


Start = Callable[[ToolCall | BrokenCall], None]


async def read_reply(kit: Reading, request: ModelRequest, reply: Reply, start: Start) -> Lost | None:
    """Read one response to its end; calls are handed to `start` the moment they are complete.

    Returns how it was lost, if it was, instead of raising: raised inside the turn's nursery that would cancel the tools
    that are running. Before the first call a failed attempt is dropped and tried again, as often as the run's patience
    allows; after it nothing is asked for twice, so no call ever runs twice.
    """
    attempt = 0
    while True:
        attempt += 1
        lost = await _receive(kit, request, reply, start)
        if lost is None:
            kit.patience.renew()
            return None
        if lost.delay is None or reply.has_calls:
            return lost
        reply.reset()
        kit.emit(AttemptDropped(lost.failure, attempt, lost.delay))
        await trio.sleep(lost.delay)


async def _receive(kit: Reading, request: ModelRequest, reply: Reply, start: Start) -> Lost | None:
    stage = Stage.REQUEST
    try:
        async with kit.model.stream(request) as stream:
            stage = Stage.STREAM
            while events := await stream.receive():
                _take(events, kit, reply, start)
    except ModelFailed as failed:
        failure = failed.failure
    else:
        return None
    match kit.patience.lost(failure, stage):
        case Wait(seconds):
            return Lost(failure, seconds)
        case GiveUp(why):
            told = f"{failure.message} ({why})" if why else failure.message
            return Lost(attrs.evolve(failure, message=told))


def _take(events: Sequence[ModelEvent], kit: Reading, reply: Reply, start: Start) -> None:
    for event in events:
        reply.take(event)
        kit.emit(event)
        if isinstance(event, CallReady | CallBroken):
            start(event.call)
