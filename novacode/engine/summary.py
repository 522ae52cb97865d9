"""Asking the model what of a conversation has to be remembered.

The conversation goes to it as one text, in a request without tools: there is nothing it could call, and no provider's
rules about calls and results to keep. Nothing of this request becomes history, and nothing of it is shown as an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import attrs

from novacode.engine.gauge import Item
from novacode.engine.kit import Kit
from novacode.engine.patience import Patience
from novacode.engine.reply import Lost, Model, Reply, read_reply
from novacode.values.clip import clip_text
from novacode.values.events import AttemptDropped, Emit, Finished, Level, Notice, RunEvent
from novacode.values.failure import FailureKind
from novacode.values.history import Exchange, History
from novacode.values.parts import BrokenCall, Text, ToolCall, User
from novacode.values.request import ModelRequest, StopReason, Usage
from novacode.values.results import ToolResult

__all__ = ["Rejected", "Summary", "SummaryWish", "ask_for_summary", "transcript"]

_TRIES = 3
_RESULT = 1_200  # bytes of a result that are shown; the files are still there to be read
_ARGUMENTS = 600
_SAID = 8_000

_SYSTEM = """\
You compress the record of a coding agent's work, so that the same agent can go on with it having only your text.
Write what it needs, in plain words and complete:
1. The task: what the user wants, with every condition and later correction.
2. What was done: files read, changed, created or deleted, with paths; commands that mattered and what came of them.
3. What was found out: causes, decisions and why, names, signatures, line numbers, values that will be needed again.
4. The state now: what works, what fails and with which message, what is half done.
5. What is next.
Do not answer the user, do not go on with the work, do not call tools. Write the summary and nothing else."""

_ASK = "Here is the record. Summarise it as you were told.\n\n<record>\n{record}\n</record>"
_WANTED = "\n\nThe user asked for this summary, and for this in it: {wanted}"


@attrs.frozen
class SummaryWish:
    """What is wanted: `room` are the bytes the record may have, `most` the tokens the summary may have.

    `wanted` is what the person has asked to be in it.
    """

    room: int
    most: int
    wanted: str = ""


@attrs.frozen
class Summary:
    """What the model wants to remember, and what asking for it has cost."""

    text: str
    costs: tuple[Usage, ...] = ()


@attrs.frozen
class Rejected:
    """No summary came that could be used, and why. `lost` is set where the model could not be asked at all."""

    why: str
    costs: tuple[Usage, ...] = ()
    lost: Lost | None = None


@attrs.frozen
class _Reading:
    """What reading the summary needs: its events are nobody's business, but for attempts that are repeated."""

    model: Model
    patience: Patience
    emit: Emit


async def ask_for_summary(
    kit: Kit, request: ModelRequest, items: Sequence[Item], wish: SummaryWish
) -> Summary | Rejected:
    """Return a summary of `items`, asked for with the model of `request`; at most three times.

    What calls tools, is empty, is refused or is cut off is no summary. A checkpoint; cancelling it leaves everything
    as it was.
    """
    costs: list[Usage] = []
    room, why = wish.room, ""
    more = _WANTED.format(wanted=wish.wanted) if wish.wanted else ""
    for _ in range(_TRIES):
        record = clip_text("\n\n".join(transcript(items)), max(room, 1_000))
        reply = Reply(kit.model.issuer)
        wanted = attrs.evolve(
            request,
            system=_SYSTEM,
            tools=(),
            history=History((User.said(_ASK.format(record=record) + more, origin="runtime"),)),
            max_output_tokens=wish.most,
        )
        lost = await read_reply(_Reading(kit.model, kit.patience, _quietly(kit.emit)), wanted, reply, _start_nothing)
        costs += reply.costs
        if lost is not None and lost.failure.kind is not FailureKind.CONTEXT_TOO_LONG:
            return Rejected(lost.failure.message, tuple(costs), lost)
        if lost is not None:
            why, room = "the record itself is too long for the model", room // 2
            continue
        why = _problem(reply)
        if not why:
            return Summary(_text(reply), tuple(costs))
        kit.emit(Notice(Level.INFO, f"the summary of the conversation was rejected: {why}"))
    return Rejected(why, tuple(costs))


def transcript(items: Iterable[Item]) -> Iterator[str]:
    """Yield what `items` say, as plain text."""
    for item in items:
        match item:
            case User(origin="person"):
                yield f"USER: {clip_text(item.text, _SAID)}"
            case User():
                yield f"NOTE: {item.text}"
            case Exchange(message, results):
                if message.text.strip():
                    yield f"AGENT: {clip_text(message.text, _SAID)}"
                for call, result in zip(message.calls, results, strict=True):
                    yield _call(call, result)
            case _:
                assert_never(item)


def _call(call: ToolCall | BrokenCall, result: ToolResult) -> str:
    raw = call.raw if isinstance(call, BrokenCall) else json.dumps(call.arguments, ensure_ascii=False, default=str)
    return f"CALL {call.name} {clip_text(raw, _ARGUMENTS)}\n-> {result.outcome}: {clip_text(result.text, _RESULT)}"


def _problem(reply: Reply) -> str:
    """Say why `reply` is no summary; empty where it is one."""
    finish = reply.finish
    if reply.has_calls:
        return "it calls a tool, which was not offered; nothing was executed"
    if not _text(reply):
        return "it is empty"
    if not isinstance(finish, Finished) or finish.stop not in (StopReason.END, StopReason.UNKNOWN):
        return f"it is not whole (stop: {finish.stop if finish else None})"
    return ""


def _text(reply: Reply) -> str:
    message = reply.message()
    return "" if message is None else "".join(part.text for part in message.parts if isinstance(part, Text)).strip()


def _start_nothing(call: ToolCall | BrokenCall) -> None:
    """Take a call nobody offered, and do nothing about it."""


def _quietly(emit: Emit) -> Emit:
    def take(event: RunEvent) -> None:
        if isinstance(event, AttemptDropped):
            text = f"asking for a summary failed ({event.failure.message}); again in {event.delay:.3g} s"
            emit(Notice(Level.WARNING, text))

    return take
