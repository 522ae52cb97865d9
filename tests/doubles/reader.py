"""A model with a window of its own: it counts what it is asked, and refuses what is too long for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from doubles.fake_model import FakeModel, end, say

from novacode.errors import ModelFailed
from novacode.values.events import Finished, ModelEvent, UsageSeen
from novacode.values.failure import Failure, FailureKind
from novacode.values.request import ModelRequest, StopReason, Usage

__all__ = ["Reader", "is_for_a_summary", "length"]

SUMMARY = [say("The task is to go. Work was done."), end()]


def length(request: ModelRequest) -> int:
    """Return the tokens of `request`: four characters each, the way no codec writes them but near enough."""
    tools = sum(len(json.dumps(attrs.asdict(tool))) for tool in request.tools)
    said = sum(len(text) for text in transcript_in_full(request))
    return (len(request.system) + tools + said) // 4


def transcript_in_full(request: ModelRequest) -> list[str]:
    return [json.dumps(attrs.asdict(item), default=str) for item in request.history.items]


def is_for_a_summary(request: ModelRequest) -> bool:
    """Whether the runtime wants a summary: there is one message, and a record in it."""
    items = request.history.items
    return len(items) == 1 and "<record>" in items[0].text  # type: ignore[union-attr]


class Reader(FakeModel):
    """Answers from `replies`, and requests for a summary from `summaries` (the same good one for ever by default).

    `limit` is what it can read; `counts` is what it says it has read, where that is not the truth.
    """

    def __init__(
        self,
        replies: Sequence[Sequence[Any]],
        limit: int | None = None,
        summaries: Sequence[Sequence[Any]] | None = None,
        counts: Callable[[int], int] = lambda tokens: tokens,
    ) -> None:
        super().__init__(replies, [])
        self.limit = limit
        self.summaries = None if summaries is None else [list(reply) for reply in summaries]
        self.refused = 0
        self.asked_for_one = trio.Event()
        self._counts = counts

    @property
    def asked_for_summaries(self) -> list[ModelRequest]:
        """The requests for a summary."""
        return [request for request in self.requests if is_for_a_summary(request)]

    @property
    def asked(self) -> list[ModelRequest]:
        """All others."""
        return [request for request in self.requests if not is_for_a_summary(request)]

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        tokens = length(request)
        if self.limit is not None and tokens > self.limit:
            self.requests.append(request)
            self.refused += 1
            text = f"prompt is too long: {tokens} tokens > {self.limit} maximum"
            raise ModelFailed(Failure(FailureKind.CONTEXT_TOO_LONG, text, retryable=False, status=400))
        if is_for_a_summary(request):
            self.asked_for_one.set()
            self.replies.insert(0, list(SUMMARY) if self.summaries is None else self.summaries.pop(0))
        self.replies[:1] = (
            [self._counted(self.replies[0], tokens)] if self.replies else [[say("done"), *self._end(tokens)]]
        )
        async with super().stream(request) as stream:
            yield stream

    def _end(self, tokens: int) -> tuple[ModelEvent, ...]:
        return (UsageSeen(Usage(self._counts(tokens), 5)), Finished(StopReason.END, "end"))

    def _counted(self, reply: Sequence[Any], tokens: int) -> list[Any]:
        flat = [one for item in reply for one in (item if isinstance(item, tuple) else (item,))]
        return [UsageSeen(Usage(self._counts(tokens), 5)) if isinstance(one, UsageSeen) else one for one in flat]
