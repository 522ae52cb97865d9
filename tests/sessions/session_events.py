"""Events of small runs, for the tests of the sessions floor."""

from novacode.values.events import (
    CallMoved,
    CallReady,
    CallSettled,
    PartDone,
    Phase,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.ids import CallId, RunId
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.results import Outcome, ToolResult


def call(name, index):
    return ToolCall(CallId(name), index, "shell", {"command": f"echo {name}"})


def result(of):
    return ToolResult.of(of, Outcome.OK, f"{of.id} done", began=True)


def text_run(number):
    """A whole run of one turn that answers with text."""
    answer = Text(f"answer {number}")
    return [
        RunBegan(User.said(f"prompt {number}"), "demo"),
        TurnBegan(1),
        PartDone(0, answer),
        TurnCommitted(Exchange(Assistant((answer,), "demo"))),
        RunEnded(RunStatus.COMPLETED, "completed", answer.text, cost_usd=0.5),
    ]


def open_turn():
    """A run whose turn has three calls: one settled, one running, one not begun. No commit."""
    one, two, three = (call(f"c{number}", number) for number in (1, 2, 3))
    return [
        RunBegan(User.said("go"), "demo"),
        TurnBegan(1),
        PartDone(0, Text("I look.")),
        *(CallReady(item.index, item) for item in (one, two, three)),
        CallMoved(one.id, "shell", Phase.RUNNING),
        CallMoved(two.id, "shell", Phase.RUNNING),
        CallSettled(result(one)),
    ]


def stamped(events, *, first=1, run="s-x-r1"):
    return [Stamped(seq, RunId(run), 2e9 + seq, event) for seq, event in enumerate(events, first)]
