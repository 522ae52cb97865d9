"""What of a response is kept, whole and interrupted: rules 5 and 6 of the turn."""

from __future__ import annotations

from typing import Any

import pytest

from novacode.engine.reply import Reply
from novacode.values.events import (
    CallBroken,
    CallDelta,
    CallOpened,
    CallReady,
    Finished,
    ModelEvent,
    PartDone,
    Started,
    TextDelta,
    ThinkingDelta,
    UsageSeen,
)
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, BrokenCall, ServerBlock, Text, Thinking, ToolCall
from novacode.values.request import StopReason, Usage

CALL = ToolCall(CallId("a"), 5, "work", {})
TORN = BrokenCall(CallId("b"), 6, "work", "{", "torn")
SIGNED = Thinking("hm", {"signature": "s"})
UNSIGNED = Thinking("hm")
BLOCK = ServerBlock("search", {"type": "server_tool_use"})
END = Finished(StopReason.END)


def kept(*events: ModelEvent) -> tuple[Any, ...] | None:
    reply = Reply("fake")
    for event in events:
        reply.take(event)
    message = reply.message()
    assert message is None or message.issuer == "fake"
    return None if message is None else message.parts


def done(index: int, part: Any) -> PartDone:
    return PartDone(index, part)


def test_parts_are_kept_in_the_order_of_their_places() -> None:
    events = (CallReady(5, CALL), done(1, Text("b")), done(0, SIGNED), CallBroken(6, TORN), END)
    assert kept(*events) == (SIGNED, Text("b"), CALL, TORN)


@pytest.mark.parametrize(
    ("events", "whole", "interrupted"),
    [
        ((Started(), CallOpened(5, CALL.id, "work"), CallDelta(5, CALL.id, "work", '{"a')), None, None),
        ((TextDelta(0, "par"), TextDelta(0, "tial")), (Text("partial"),), (Text("partial"),)),
        ((TextDelta(0, "x"), done(0, Text("whole"))), (Text("whole"),), (Text("whole"),)),
        ((ThinkingDelta(0, "hm"), TextDelta(1, "x")), (Text("x"),), (Text("x"),)),
        ((done(0, UNSIGNED), TextDelta(1, "x")), (UNSIGNED, Text("x")), (Text("x"),)),
        ((done(0, SIGNED), TextDelta(1, "x")), (SIGNED, Text("x")), (SIGNED, Text("x"))),
        ((done(0, SIGNED), CallReady(5, CALL)), (SIGNED, CALL), (SIGNED, CALL)),
        ((done(0, SIGNED), CallOpened(5, CALL.id, "work")), None, None),
        ((done(0, Text("x")), done(1, SIGNED)), (Text("x"), SIGNED), (Text("x"),)),
        ((done(0, Text("x")), done(1, SIGNED), done(2, BLOCK)), (Text("x"), SIGNED, BLOCK), (Text("x"),)),
        ((done(0, BLOCK),), (BLOCK,), None),
        ((done(0, SIGNED), done(1, UNSIGNED)), None, None),
        ((TextDelta(0, ""),), None, None),
        ((TextDelta(0, " \n"),), None, None),
        ((done(0, Text("\n")), CallReady(5, CALL)), (Text("\n"), CALL), (Text("\n"), CALL)),
        ((done(0, Text("", {"thought_signature": "s"})), CallReady(5, CALL)),)
        + 2 * ((Text("", {"thought_signature": "s"}), CALL),),
    ],
)
def test_what_is_kept(events: tuple[ModelEvent, ...], whole: Any, interrupted: Any) -> None:
    assert kept(*events, END) == whole
    assert kept(*events) == interrupted


def test_br_078_reasoning_whose_follower_is_missing_is_left_out() -> None:
    second = Thinking("", {"id": "rs_2"})
    events = (done(0, SIGNED), done(1, Text("I will look.")), done(2, second), CallOpened(3, CALL.id, "work"))
    assert kept(*events) == (SIGNED, Text("I will look."))


def test_a_void_attempt_leaves_nothing_but_its_cost() -> None:
    reply = Reply("fake")
    for event in (TextDelta(0, "x"), done(1, Text("y")), UsageSeen(Usage(7)), END):
        reply.take(event)
    reply.reset()
    assert (reply.message(), reply.finish, reply.has_calls, reply.usage) == (None, None, False, Usage())
    reply.take(UsageSeen(Usage(8)))
    assert reply.costs == (Usage(7), Usage(8))


@pytest.mark.parametrize("event", [CallReady(5, CALL), CallBroken(6, TORN)])
def test_a_call_forbids_another_attempt(event: ModelEvent) -> None:
    reply = Reply("fake")
    reply.take(event)
    assert reply.has_calls is True
    assert reply.message() == Assistant((event.call,), "fake")  # type: ignore[union-attr]
