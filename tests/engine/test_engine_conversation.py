"""The holder of the history, and what counts as the last word of a run."""

from __future__ import annotations

import pytest

from novacode.engine.conversation import Conversation
from novacode.engine.reply import Reply
from novacode.errors import PairingError
from novacode.values.events import (
    CallReady,
    Finished,
    RunBegan,
    RunEvent,
    TextDelta,
    TurnCommitted,
    UsageSeen,
    UserAdded,
)
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome, ToolResult

CALL = ToolCall(CallId("a"), 1, "work", {})
RESULT = ToolResult.of(CALL, Outcome.OK, "done", began=True)
NUDGE = User.said("go on", "runtime")
ASKED = User.said("asked")


def said(text: str) -> Exchange:
    return Exchange(Assistant((Text(text),)))


def worked(text: str = "") -> Exchange:
    return Exchange(Assistant((Text(text), CALL) if text else (CALL,)), (RESULT,))


def test_it_grows_in_single_steps_and_each_is_told() -> None:
    talk, told = Conversation(), list[RunEvent]()
    talk.begin(ASKED, "fake", told.append)
    reply = Reply("fake")
    for event in (
        TextDelta(0, "x"),
        CallReady(1, CALL),
        UsageSeen(Usage(1, 2)),
        Finished(StopReason.TOOL_USE, "tools"),
    ):
        reply.take(event)
    exchange = talk.commit(reply, (RESULT,), told.append)
    talk.nudge("go on", told.append)
    assert exchange == Exchange(Assistant((Text("x"), CALL), "fake"), (RESULT,))
    assert talk.history == History((ASKED, exchange, NUDGE))
    assert told == [
        RunBegan(ASKED, "fake"),
        TurnCommitted(exchange, Usage(1, 2), StopReason.TOOL_USE, "tools"),
        UserAdded(NUDGE),
    ]


def test_what_is_not_paired_is_not_committed() -> None:
    talk, told = Conversation(), list[RunEvent]()
    reply = Reply("fake")
    reply.take(CallReady(1, CALL))
    with pytest.raises(PairingError):
        talk.commit(reply, (), told.append)
    assert (talk.history, told) == (History(), [])


def test_nothing_said_is_nothing_committed() -> None:
    talk, told = Conversation(History((ASKED,))), list[RunEvent]()
    assert talk.commit(Reply("fake"), (), told.append) is None
    assert (talk.history.items, told) == ((ASKED,), [])


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ((), ""),
        ((ASKED,), ""),
        ((ASKED, said("x")), "x"),
        ((ASKED, said("old"), ASKED), ""),
        ((ASKED, said("old"), ASKED, said("new")), "new"),
        ((ASKED, worked("before"), said("after")), "after"),
        ((ASKED, said("one"), NUDGE, said("two"), NUDGE, said("three")), "onetwothree"),
        ((ASKED, worked("x"), NUDGE, said("y")), "y"),
        ((ASKED, said("half"), NUDGE, worked(), said("done")), "done"),
        ((ASKED, said("half"), NUDGE), "half"),
        ((ASKED, said("paused"), said("found")), "found"),
        ((ASKED, worked("looking")), "looking"),
    ],
)
def test_last_text(items: tuple[User | Exchange, ...], text: str) -> None:
    assert Conversation(History(items)).last_text() == text
