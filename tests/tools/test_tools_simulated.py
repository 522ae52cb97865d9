"""A simulated world: the same tools, nothing real, and effects only when the time is up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from novacode.errors import InputError, ToolFailed
from novacode.tools.base import Permit, SeenFiles, Tool, ToolOutput
from novacode.tools.context import ToolContext
from novacode.tools.simulated import simulated_tools
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace
from novacode.workspace.simulated import NoProcesses, ScriptedTool, SimulatedWorld, Simulation, parse_simulation

ROOT = Path("/nowhere/at/all")


class Play:
    """A world, its tools, and one session of them."""

    def __init__(self, simulation: Simulation) -> None:
        self.world = SimulatedWorld(ROOT, simulation)
        self.tools: dict[str, Tool[Any]] = {
            tool.spec.name: tool for tool in simulated_tools(self.world, lambda line: False)
        }
        self.seen = SeenFiles()
        self.shown = b""

    async def call(self, name: str, **arguments: Any) -> ToolOutput:
        call = ToolCall(CallId(f"c{len(self.world.entered)}"), 0, name, arguments)
        tool = self.tools[name]
        ctx = ToolContext(call.id, Workspace(ROOT), NoProcesses(), self.seen, self._show, ROOT / "spill")
        return await tool.run(Permit(call, tool.spec.args(**arguments), "the test"), ctx)

    def _show(self, data: bytes) -> None:
        self.shown += data


def text(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content)  # type: ignore[union-attr]


async def test_files_live_in_memory(autojump_clock: trio.abc.Clock) -> None:
    """Read, edit, write, glob and grep agree with each other, and the disk knows nothing of it."""
    play = Play(Simulation({"src/a.py": "one\ntwo\n"}))
    with pytest.raises(ToolFailed, match="Read it first"):
        await play.call("edit", path="src/a.py", old="one", new="1")
    assert text(await play.call("read", path="src/a.py")) == "one\ntwo\n"
    edited = await play.call("edit", path="src/a.py", old="one", new="1")
    await play.call("write", path="b.txt", content="two\n")
    assert "+1" in edited.diff
    assert text(await play.call("glob", pattern="*.py")) == "src/a.py"
    assert text(await play.call("grep", pattern="t.o")) == "b.txt:1:two\nsrc/a.py:2:two"
    assert not ROOT.exists()


async def test_a_scripted_tool_takes_its_time_then_has_its_effect(autojump_clock: trio.abc.Clock) -> None:
    """Cancelled before its time is up it has had none, and its clean-up is waited for."""
    made = ScriptedTool("shell", "make *", "ok", exit=2, takes=5, cleanup=3, prints="working", writes={"out": "x"})
    play = Play(Simulation(tools=(made,)))
    began = trio.current_time()
    with trio.move_on_after(4):
        await play.call("shell", command="make all")
    assert (trio.current_time() - began, play.world.files, play.world.under_way) == (7.0, {}, set())
    output = await play.call("shell", command="make all")
    assert (text(output), output.exit_code, play.world.files) == ("ok\nexit code 2", 2, {ROOT / "out": "x"})
    assert play.shown == b"workingworking"
    assert text(await play.call("shell", command="true")) == "(no output)"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"fils": {}}, "`fils`"),
        ({"files": {"a": 1}}, "paths with their text"),
        ({"tool": {}}, "write \\[\\[simulate.tool\\]\\] tables"),
        ({"tool": [{}]}, "needs at least a `name`"),
        ({"tool": [{"name": "shell", "take": 1}]}, "it takes name"),
        ({"tool": [{"name": "shell", "takes": "long"}]}, "'long', which is not a number"),
        ({"tool": [{"name": "shell", "takes": -1}]}, "0 or more"),
        ({"tool": [{"name": "shell", "writes": {"a": 1}}]}, "paths with their text"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(table: dict[str, Any], said: str) -> None:
    """The place, the key, the value, and what was expected."""
    with pytest.raises(InputError, match=said):
        parse_simulation(table, "s.toml")
