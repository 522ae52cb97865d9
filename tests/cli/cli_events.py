"""Runs as events, for the tests of the faces."""

from novacode.values.events import (
    CallDelta,
    CallMoved,
    CallOpened,
    CallOutput,
    CallReady,
    CallSettled,
    Finished,
    PartDone,
    Phase,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    Started,
    TextDelta,
    TurnBegan,
    TurnCommitted,
    UsageSeen,
)
from novacode.values.history import Exchange
from novacode.values.ids import CallId, RunId
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome, ToolResult

SHELL = ToolCall(CallId("c1"), 1, "shell", {"command": "ls -la"})
EDIT = ToolCall(CallId("c2"), 2, "edit", {"path": "a.py", "old": "x", "new": "y"})
LISTED = ToolResult.of(SHELL, Outcome.OK, "a.py", began=True)
DENIED = ToolResult.of(EDIT, Outcome.DENIED, "Permission denied: the rule edit denies. Nothing was executed.")


def stamped(events, first=1):
    return [Stamped(seq, RunId("s-r1"), 10.0 + seq / 10, event) for seq, event in enumerate(events, first)]


def moves(call, *phases):
    return [CallMoved(call.id, call.name, phase) for phase in phases]


def speech():
    """A response that says something and proposes two calls."""
    return [
        Started("m-1", "msg_1"),
        TextDelta(0, "I "),
        TextDelta(0, "look."),
        PartDone(0, Text("I look.")),
        CallOpened(1, SHELL.id, "shell"),
        CallDelta(1, SHELL.id, "shell", '{"command":"ls -la"}'),
        CallReady(1, SHELL),
        CallOpened(2, EDIT.id, "edit"),
        CallReady(2, EDIT),
        UsageSeen(Usage(10, 5)),
        Finished(StopReason.TOOL_USE, "tool_use"),
    ]


def shell_work():
    return [
        *moves(SHELL, Phase.SUBMITTED, Phase.AUTHORISING, Phase.QUEUED, Phase.RUNNING),
        CallOutput(SHELL.id, "shell", "a."),
        CallOutput(SHELL.id, "shell", "py\n"),
        CallSettled(LISTED, 0.5),
    ]


def edit_work():
    return [*moves(EDIT, Phase.SUBMITTED, Phase.AUTHORISING), CallSettled(DENIED)]


def committed():
    return TurnCommitted(
        Exchange(Assistant((Text("I look."), SHELL, EDIT), "demo"), (LISTED, DENIED)),
        Usage(10, 5),
        StopReason.TOOL_USE,
        "tool_use",
    )


def answer():
    return [
        TurnBegan(2),
        TextDelta(0, "Done."),
        PartDone(0, Text("Done.")),
        Finished(StopReason.END, "end_turn"),
        TurnCommitted(Exchange(Assistant((Text("Done."),), "demo")), Usage(20, 2), StopReason.END, "end_turn"),
        ENDED,
    ]


ENDED = RunEnded(
    RunStatus.COMPLETED,
    "completed",
    "Done.",
    2,
    Usage(30, 7),
    0.25,
    calls={"total": 2, "ok": 1, "denied": 1},
)
BEGIN = [RunBegan(User.said("hi"), "m"), TurnBegan(1)]


def whole_run():
    return stamped([*BEGIN, *speech(), *shell_work(), *edit_work(), committed(), *answer()])
