"""What stopping cannot promise on a system is said to the person, once, and to nobody else."""

from __future__ import annotations

from novacode.cli.weakness import tell_weakness
from novacode.values.events import CallSettled, Stamped, TextDelta
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.groups import GroupCensus
from novacode.workspace.processes import RealProcesses
from novacode.workspace.simulated import NoProcesses

SETTLED = Stamped(1, "s/1", 0.0, CallSettled(ToolResult("a", "shell", Outcome.OK, began=True, content=()), 0.0))
SPOKEN = Stamped(2, "s/1", 0.0, TextDelta(0, "hi"))


def test_a_weakness_is_told_once_after_the_first_call() -> None:
    said: list[str] = []
    sink = tell_weakness(RealProcesses(census=GroupCensus()), said.append)
    sink(SPOKEN)
    assert said == []
    sink(SETTLED)
    sink(SETTLED)
    assert said == [f"stopping may be incomplete here: {GroupCensus.weakness}"]


def test_nothing_is_said_where_nothing_can_be_left() -> None:
    said: list[str] = []
    for processes in (RealProcesses(), NoProcesses()):
        tell_weakness(processes, said.append)(SETTLED)
    assert said == []
