"""Keeping a conversation within what its model can read, by whole exchanges and only between turns.

First the outputs of older calls are shortened. Where that is not enough, the older exchanges are replaced by a
summary that the model itself writes; the person's own messages stay word for word, and so does the end of the
conversation. The system prompt and the tools are no part of the history and are never touched.

A compaction that brings nothing is the last one of its session: whatever could not be shortened once cannot be
shortened again, and a run that tried would do nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from novacode.engine.conversation import Conversation
from novacode.engine.gauge import Gauge, Item, bytes_of, bytes_of_result
from novacode.engine.kit import Kit
from novacode.engine.limits import Ending, Progress
from novacode.values.compaction import compacted
from novacode.values.events import Compacted, Level, Notice, RunStatus
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange
from novacode.values.ids import CallId
from novacode.values.parts import User
from novacode.values.request import ModelRequest, Usage

__all__ = ["Compactor"]

_RESERVE = 20_000  # tokens of a large window that are left for the answer; of a small one, a fifth
_OLD_RESULT = 1_000  # bytes of an older output that stay
_SUMMARY_MOST = 8_192  # tokens
_LITTLE = 20  # a twentieth of the conversation is not worth losing any of it
_NO_BETTER = "shortening it has not brought it below that"

_INTRODUCTION = """\
The conversation so far was shortened to fit into your context. What the user said is above, word for word. What you \
did and found out, in your own words:

"""


@attrs.frozen(eq=False, repr=False)
class _Job:
    """One compaction. `limit` is what the model can read, as far as is known at this moment.

    `wanted` is what a person who asked for it has said that the summary is to hold; `None` where nobody asked.
    """

    kit: Kit
    talk: Conversation
    progress: Progress
    request: ModelRequest
    before: int
    limit: int
    wanted: str | None = None


@attrs.frozen(eq=False, repr=False)
class _Plan:
    """What to do: `event` is all of it but the summary, and `head` are the items that is to be written of.

    `light` does without a summary. `worth` is whether it can be expected to bring anything.
    """

    event: Compacted
    light: Compacted
    head: Sequence[Item] = ()
    worth: bool = True


class Compactor:
    """Shortens the history of one session when it has to be. `window` is what the model can read, where it is known.

    Where it is not, nothing is done until the provider says that a request is too long.
    """

    def __init__(self, window: int | None) -> None:
        self.window = window
        self.off = False
        self._gauge = Gauge()
        self._relieved = True  # whether a response has shown, since the last compaction, that it was of use

    @property
    def border(self) -> int | None:
        """The tokens at which a conversation has to be shortened before the model is asked again."""
        return None if self.window is None else self.window - min(_RESERVE, self.window // 5)

    def saw(self, request: ModelRequest, usage: Usage) -> None:
        """Take note of a whole reply to `request`, and of what the provider counted for it."""
        self._gauge.saw(request, usage)
        if self.border is None or usage.prompt < self.border:
            self._relieved = True

    async def before_turn(self, kit: Kit, talk: Conversation, progress: Progress) -> Ending | None:
        """Shorten the history where the next request would not fit. Returns how the run ends, if asking failed."""
        if self.border is None or self.window is None or self.off:
            return None
        request = kit.request(talk.history, None)
        before = self._gauge.tokens(request)
        if before < self.border:
            return None
        if not self._relieved:
            self._give_up(_Job(kit, talk, progress, request, before, self.window), _NO_BETTER)
            return None
        done = await self._compact(_Job(kit, talk, progress, request, before, self.window))
        return done if isinstance(done, Ending) else None

    async def after_refusal(self, kit: Kit, talk: Conversation, progress: Progress, refused: Ending) -> Ending | None:
        """Shorten the history because the provider says it is too long; `None` where it is worth asking again."""
        request = kit.request(talk.history, None)
        before = self._gauge.tokens(request)
        done: Ending | bool = False
        if self._relieved and not self.off:
            limit = min(before, self.window or before)
            done = await self._compact(_Job(kit, talk, progress, request, before, limit))
        if isinstance(done, Ending):
            return done
        return None if done else self._too_large(request, refused) or refused

    async def when_asked(self, kit: Kit, talk: Conversation, progress: Progress, wanted: str) -> Ending:
        """Shorten the history because a person wants it shorter, and return how that has ended.

        The model can read no less than what there is, so half of that is the goal; a summary is asked for in any case,
        and `wanted` is what it has to hold besides. A history in which there is little to win stays as it is.
        """
        request = kit.request(talk.history, None)
        before = self._gauge.tokens(request)
        job = _Job(kit, talk, progress, request, before, min(before, self.window or before), wanted)
        if not _plan(job, self._gauge).worth:
            text = (
                f"the conversation has about {before} tokens, and next to none of them can be saved; it stays as it is"
            )
            kit.emit(Notice(Level.WARNING, text))
            return Ending(RunStatus.COMPLETED, "not_compacted")
        done = await self._compact(job)
        if isinstance(done, Ending):
            return done
        return Ending(RunStatus.COMPLETED, "compacted" if done else "not_compacted")

    async def _compact(self, job: _Job) -> Ending | bool:
        """Return whether the history is shorter now, or how the run ends because the model could not be asked."""
        # lazy: 2 ms that only a long conversation pays
        from novacode.engine.summary import Rejected, SummaryWish, ask_for_summary

        kit = job.kit
        kit.emit(Notice(Level.INFO, f"the conversation has about {job.before} tokens; it is being shortened"))
        await kit.hooks.pre_compact("auto" if job.wanted is None else "manual", job.wanted or "")
        plan = _plan(job, self._gauge)
        event = plan.event
        if plan.head:
            room = int(job.limit * 0.6 * self._gauge.bytes_per_token)
            most = max(512, min(_SUMMARY_MOST, job.limit // 8))
            answer = await ask_for_summary(kit, job.request, plan.head, SummaryWish(room, most, job.wanted or ""))
            job.progress.spend(answer.costs)
            if isinstance(answer, Rejected) and answer.lost is not None:
                failure = answer.lost.failure
                return Ending(RunStatus.FAILED, failure.kind.value, failure.message, failure)
            if isinstance(answer, Rejected):
                self._give_up(job, f"no summary could be had: {answer.why}")
                event = plan.light
            else:
                event = attrs.evolve(event, summary=_INTRODUCTION + answer.text)
        return self._apply(job, event)

    def _apply(self, job: _Job, event: Compacted) -> bool:
        """Make `event` true, where it brings anything, and return whether it does. No checkpoint."""
        kit, talk = job.kit, job.talk
        saved = self._gauge.saved(talk.history.items, compacted(talk.history, event).items)
        after = max(0, job.before - saved)
        if saved <= job.before // _LITTLE:
            self._give_up(job, "there is nothing in it that could be shortened")
            return False
        self._relieved = self.off = False
        self._gauge.replaced()
        talk.compact(attrs.evolve(event, before_tokens=job.before, after_tokens=after), kit.emit)
        text = f"the conversation was shortened from about {job.before} to {after} tokens; the session keeps all of it"
        kit.emit(Notice(Level.WARNING, text))
        return True

    def _give_up(self, job: _Job, why: str) -> None:
        """Do without from now on, and say so once, with the numbers. What a person has asked for is only not done."""
        kit, tokens = job.kit, job.before
        if job.wanted is not None:
            kit.emit(Notice(Level.WARNING, f"the conversation has about {tokens} tokens; but {why}."))
            return
        if self.off:
            return
        self.off = True
        numbers = f" of the {self.window} its model can read, and is shortened from {self.border} on" * bool(
            self.window
        )
        text = f"the conversation has about {tokens} tokens{numbers}; but {why}. This is not tried again."
        kit.emit(Notice(Level.WARNING, text))

    def _too_large(self, request: ModelRequest, refused: Ending) -> Ending | None:
        """Return the ending of a request that is too long for what cannot be shortened; `None` for any other."""
        fixed, said = self._gauge.fixed(request), _last_said(request.history.items)
        prompt = 0 if said is None else bytes_of(said)
        if 2 * (fixed + prompt) < self._gauge.size(request):
            return None
        window = f" It can read {self.window}." if self.window else ""
        text = (
            f"the prompt alone is too large for the model: it has about {self._gauge.plain(prompt)} tokens, the"
            f" instructions and tools {self._gauge.plain(fixed)}.{window} Give it less, for example the names of files"
            " instead of what is in them."
        )
        failure = Failure(FailureKind.CONTEXT_TOO_LONG, text, retryable=False)
        if refused.failure is not None:
            failure = attrs.evolve(refused.failure, message=f"{text} The provider said: {refused.failure.message}")
        return Ending(RunStatus.FAILED, "prompt_too_large", text, failure)


def _plan(job: _Job, gauge: Gauge) -> _Plan:
    """Return the least that brings the history to half of what the model can read. Pure."""
    items = job.request.history.items
    tail_room = int(job.limit / 4 * gauge.bytes_per_token)
    cut = _cut(items, tail_room, whole=job.wanted is not None)
    head, tail = items[:cut], items[cut:]
    goal = job.limit // 2

    def after(event: Compacted) -> int:
        return job.before - gauge.saved(items, compacted(job.request.history, event).items)

    light = Compacted(trimmed=_long_results(head, _OLD_RESULT))
    if job.wanted is None and after(light) <= goal:
        return _Plan(light, light)
    event, guess = light, ""
    if any(isinstance(item, Exchange) for item in head):
        event, guess = Compacted(len(tail), prompts=_prompts(head, tail_room // 2)), "x" * (tail_room // 4)
    left = after(attrs.evolve(event, summary=guess))
    if left > goal and job.wanted is None:
        event = attrs.evolve(event, trimmed={**event.trimmed, **_long_results(tail, tail_room // 2)})
    return _Plan(event, light, head if guess else (), job.before - left > job.before // _LITTLE)


def _cut(items: Sequence[Item], room: int, *, whole: bool) -> int:
    """Return where the end begins that stays as it is: as much as has room.

    The last exchange is always in it, unless the `whole` may go.
    """
    cut, used = len(items), 0
    seen_exchange = whole
    for place in range(len(items) - 1, -1, -1):
        used += bytes_of(items[place])
        if used > room and seen_exchange:
            break
        cut = place
        seen_exchange = seen_exchange or isinstance(items[place], Exchange)
    return cut


def _long_results(items: Sequence[Item], most: int) -> Mapping[CallId, int]:
    """Return the calls whose results are a good deal longer than `most` bytes, each with what stays of it."""
    results = (result for item in items if isinstance(item, Exchange) for result in item.results)
    return {result.call_id: most for result in results if bytes_of_result(result) > most + most // 2}


def _prompts(head: Sequence[Item], room: int) -> int:
    """Return how many of the person's last messages in `head` stay: as many as have room, the last one in any case."""
    number = used = 0
    for item in reversed(head):
        if isinstance(item, User) and item.origin == "person":
            used += bytes_of(item)
            if number and used > room:
                break
            number += 1
    return number


def _last_said(items: Sequence[Item]) -> User | None:
    return next((item for item in reversed(items) if isinstance(item, User) and item.origin == "person"), None)
