"""The set of tools, and what holds for every one of them."""

import os

import pytest
import trio
from doubles.check_tool import any_arguments, check_looks_are_harmless, check_run_stops
from doubles.fake_tool import Bench, FakeTool
from hypothesis import HealthCheck, given, settings

from novacode.errors import ToolFailed
from novacode.tools.base import EVERYTHING, Claims
from novacode.tools.builtin import builtin_tools
from novacode.tools.schema import schema_of
from novacode.tools.toolset import Toolset, our_name
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.values.request import ToolOffer
from novacode.workspace.processes import RealProcesses

TOOLS = (*builtin_tools(lambda command: command == "ls"), FakeTool())
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)


def call(name, **arguments):
    return ToolCall(CallId("c1"), 0, name, arguments)


def test_offers_are_the_enabled_tools_in_their_order_and_always_the_same():
    tools = Toolset(TOOLS, disabled=["Bash", "grep"])
    assert [offer.name for offer in tools.offers()] == [
        "read",
        "write",
        "edit",
        "glob",
        "job_output",
        "job_stop",
        "fake",
    ]
    assert tools.offers()[0] == ToolOffer("read", TOOLS[0].spec.description, schema_of(TOOLS[0].spec.args))
    assert tools.offers() is tools.offers()


def test_a_disabled_tool_is_known_and_an_unknown_one_is_not():
    tools = Toolset(TOOLS, disabled=["shell"])
    assert tools.find("shell") is TOOLS[5]
    assert not tools.is_enabled("shell")
    assert tools.is_enabled("read")
    assert tools.find("Read") is None
    assert not tools.is_enabled("Read")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("Bash", ("shell",)), ("reed", ("read",)), ("read_file", ("read",)), ("MultiEdit", ("edit",)), ("zzz", ())],
)
def test_close_matches_know_the_names_of_other_agents(name, meant):
    assert Toolset(TOOLS).close_matches(name)[: len(meant)] == meant


def test_a_disabled_tool_is_not_suggested():
    assert Toolset(TOOLS, disabled=["shell"]).close_matches("Bash") == ()


def test_names_of_other_agents_are_ours_in_rules():
    assert [our_name(name) for name in ("Bash", "Glob", "shell", "mcp__x")] == ["shell", "glob", "shell", "mcp__x"]


def test_two_tools_of_one_name_are_a_mistake():
    with pytest.raises(ValueError, match="two tools are called 'fake'"):
        Toolset([FakeTool(), FakeTool()])


def test_claims_never_fail(bench):
    class Broken(FakeTool):
        def claims(self, arguments, workspace):
            raise RuntimeError("no idea")

    tools = Toolset([Broken("broken"), *TOOLS])
    assert tools.claims(call("nobody", path="a"), bench.workspace) == Claims()
    assert tools.claims(call("read", path="a"), bench.workspace) == Claims(frozenset({bench.root / "a"}))
    assert tools.claims(call("broken"), bench.workspace) == Claims(writes=frozenset({EVERYTHING}))


@pytest.fixture
def odd(bench):
    """A workspace with things that could hurt whoever opens them."""
    os.mkfifo(bench.root / "fifo")
    (bench.root / "loop").symlink_to("loop")
    (bench.root / "out").symlink_to("/")
    bench.put("a.txt", "a\n")
    return bench


@each_tool
@given(arguments=any_arguments)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_looking_at_a_call_never_does_anything(tool, odd, arguments):
    check_looks_are_harmless(tool, arguments, odd)


@pytest.mark.parametrize(
    ("index", "arguments"),
    [
        (0, {"path": "a.txt"}),
        (1, {"path": "new.txt", "content": "x"}),
        (1, {"path": "a.txt", "content": "x"}),
        (2, {"path": "a.txt", "old": "a", "new": "b"}),
        (3, {"pattern": "*"}),
        (4, {"pattern": "a"}),
        (5, {"command": "touch x; sleep 100"}),
        (8, {"text": "x"}),
    ],
)
async def test_every_tool_stops_when_it_is_cancelled(bench, index, arguments):
    bench.put("a.txt", "a\n")
    await bench.run(TOOLS[0], path="a.txt")
    bench.processes = RealProcesses()
    await check_run_stops(TOOLS[index], arguments, bench, 10)


# --- the double -----------------------------------------------------------------------------------------------------


async def test_a_fake_tool_takes_its_time_and_writes_down_what_happened(bench: Bench, autojump_clock):
    tool = FakeTool(takes=5)
    assert await bench.run(tool, text="done") == "done"
    assert trio.current_time() == pytest.approx(5)
    assert tool.log == [("began", "call_1"), ("ended", "call_1")]


async def test_a_fake_tool_ends_as_it_is_told_to(bench):
    assert (await bench.output(FakeTool(outcome="exit_code"))).exit_code == 3
    with pytest.raises(ToolFailed, match="failed as it was told to"):
        await bench.run(FakeTool(outcome="raise"))
    with pytest.RaisesGroup(ToolFailed, ValueError):
        await bench.run(FakeTool(outcome="raise", group=True))


async def test_a_fake_tool_cleans_up_in_a_shield_and_may_swallow(bench, autojump_clock):
    tool = FakeTool(takes=100, cleanup_takes=2)
    with trio.move_on_after(1) as scope:
        await bench.run(tool)
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(3)
    assert tool.log == [("began", "call_1"), ("cancelled", "call_1"), ("cleaned", "call_1")]
    with trio.move_on_after(1) as scope:
        assert await bench.run(FakeTool(takes=100, swallow=True)) == "as if nothing had happened"
    assert not scope.cancelled_caught


async def test_check_tool_finds_a_tool_that_swallows_its_cancellation(bench):
    with pytest.raises(AssertionError, match="as if it had not been cancelled"):
        await check_run_stops(FakeTool(takes=1, swallow=True), {}, bench, 5)


def test_check_tool_finds_a_look_that_acts(bench):
    class Acting(FakeTool):
        def effects(self, arguments, workspace):
            (workspace.root / "made").write_text("")
            return super().effects(arguments, workspace)

    with pytest.raises(AssertionError):
        check_looks_are_harmless(Acting(), {}, bench)
