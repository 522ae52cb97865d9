"""Reported faults that only show where the pipeline, a real tool and real processes come together."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio
from doubles.fake_model import Pause, call
from doubles.os_processes import alive, unique
from doubles.records import DONE, TOOL_USE, results
from doubles.world import World

from novacode.authority.commands import analyse
from novacode.authority.policy import Mode, Policy
from novacode.authority.rules import Decision, Rule, parse_rule
from novacode.grace import Grace
from novacode.sessions.store import Store
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.paths import Workspace
from novacode.workspace.processes import RealProcesses


class Real(World):
    """A world whose tools, files and processes are real; `root` is its workspace."""

    def __init__(self, tmp_path: Path, *replies: Any) -> None:
        self.root = tmp_path / "work"
        self.root.mkdir(exist_ok=True)
        services = {
            "tools": Toolset(builtin_tools(lambda line: False)),
            "workspace": Workspace.at(self.root),
            "processes": RealProcesses(Grace(term=0.3, kill=3)),
            "spill": tmp_path / "spill",
        }
        super().__init__([*replies, DONE], services=services)


async def shell(world: Real) -> ToolResult:
    """The result of the only call."""
    with trio.fail_after(20):
        await world.agent.run("go")
    return results(world)["a"]


def one(tmp_path: Path, command: str, timeout: float = 0.4) -> Real:
    return Real(tmp_path, [call("a", "shell", 1, command=command, timeout=timeout), TOOL_USE])


@pytest.mark.parametrize("pauses", [(0.0, 0.0), (0.004, 0.0), (0.0, 0.004), (0.002, 0.006)])
async def test_br_107_edits_of_one_file_by_three_names_are_all_in_it(
    tmp_path: Path, pauses: tuple[float, float]
) -> None:
    """One queue for each real path, in the order of the calls, however they come in."""
    edits = [("n.txt", "k20", "k20 left"), ("./n.txt", "k41", "k41 mid"), ("link-to-n.txt", "k55", "k55 right")]
    calls = [call(f"e{n}", "edit", n, path=path, old=old, new=new) for n, (path, old, new) in enumerate(edits, 1)]
    first, second = (Pause(seconds) for seconds in pauses)
    world = Real(
        tmp_path,
        [call("r", "read", 1, path="n.txt"), TOOL_USE],
        [calls[0], first, calls[1], second, calls[2], TOOL_USE],
    )
    lines = [f"k{n:02}\n" for n in range(1, 61)]
    (world.root / "n.txt").write_text("".join(lines))
    (world.root / "link-to-n.txt").symlink_to("n.txt")
    await world.agent.run("go")
    assert [results(world)[f"e{n}"].outcome for n in (1, 2, 3)] == [Outcome.OK] * 3
    lines[19], lines[40], lines[54] = "k20 left\n", "k41 mid\n", "k55 right\n"
    assert (world.root / "n.txt").read_text() == "".join(lines)
    assert (world.root / "link-to-n.txt").is_symlink()


async def test_a_path_that_an_earlier_call_leads_elsewhere_is_not_the_one_that_was_allowed(tmp_path: Path) -> None:
    """Judged when it comes, used when the shell before it is done: in between `d` becomes a link that leads out."""
    world = Real(
        tmp_path,
        [
            call("a", "shell", 1, command="sleep 0.1; rm -r d; ln -s ../outside d"),
            call("b", "write", 2, path="d/new", content="x"),
            call("c", "read", 3, path="d/secret"),
            call("d", "shell", 4, command="cat d/secret"),
            TOOL_USE,
        ],
    )
    world.permissions.judge = Policy(Mode.ACCEPT_EDITS, tuple(_rules("sleep", "rm", "ln")), analyse).judge
    (world.root / "d").mkdir()
    (world.root / "d" / "secret").write_text("in")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("out")
    await world.agent.run("go")
    found = results(world)
    assert [found[key].outcome for key in "abcd"] == [Outcome.OK, *[Outcome.DENIED] * 3]
    assert not any(found[key].began or "out" in found[key].text.split() for key in "bcd")
    assert os.listdir(outside) == ["secret"]


def _rules(*names: str) -> list[Rule]:
    return [parse_rule(f"shell({name}:*)", Decision.ALLOW, "the test") for name in names]


@pytest.mark.parametrize("command", ["yes", "yes >&2"])
async def test_br_115_an_endless_printer_times_out_with_head_tail_and_the_number_left_out(
    tmp_path: Path, command: str
) -> None:
    result = await shell(one(tmp_path, command))
    assert result.outcome is Outcome.TIMEOUT
    assert result.text.startswith("Timed out after 0.4 s and was stopped. What it did until then stays done.")
    assert "Output so far:\ny\ny\n" in result.text
    assert " bytes left out ...]\n" in result.text
    assert result.text.endswith(("y\n", "y"))
    assert len(result.text) < 20_000


async def test_br_116_a_command_that_follows_the_session_file_does_not_feed_itself(tmp_path: Path) -> None:
    """What comes live is not journalled, so a journal that is followed does not grow by that."""
    session = Store(tmp_path / "home", trio.current_time).create(tmp_path)
    assert session.path is not None
    try:
        world = one(tmp_path, f"tail -c +1 -f {session.path}", timeout=0.6)
        world.bus.subscribe(session.journal.append)
        result = await shell(world)
    finally:
        session.close()
    assert result.outcome is Outcome.TIMEOUT
    assert "novacode-session" in result.text
    assert session.path.stat().st_size < 20_000


@pytest.mark.parametrize(
    "command",
    ["(while :; do echo tick; sleep 0.1; done; : {0}) & wait", "trap '' TERM; echo tick; sleep {0} | cat; : {0}"],
)
async def test_br_118_a_timeout_keeps_the_ticks_and_leaves_nothing(tmp_path: Path, command: str) -> None:
    token = unique()
    result = await shell(one(tmp_path, command.format(token)))
    assert result.outcome is Outcome.TIMEOUT
    assert "Output so far:\ntick" in result.text
    assert alive(token) == []


NOISE = r"printf 'ok\n\377\376 mid\nA\0B\n\033]0;title\007\033[2J\033[31mred\033[0m\nend\n'"
SEEN = "ok\n\ufffd\ufffd mid\nA\u2400B\nred\nend"


@pytest.mark.parametrize("how", ["ended", "timed out", "cancelled"])
async def test_br_121_output_is_plain_text_however_the_call_ends(tmp_path: Path, how: str) -> None:
    """No escape sequence, no NUL and no bad byte reaches the model; requests and session lines stay valid."""
    world = one(tmp_path, NOISE if how == "ended" else f"{NOISE}; sleep 300", timeout=60 if how == "cancelled" else 0.4)
    if how == "cancelled":
        seen = trio.Event()
        world.bus.subscribe(lambda stamped: seen.set() if "end" in getattr(stamped.event, "text", "") else None)
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _stop() -> None:
                await seen.wait()
                world.agent.cancel("the test")

            await shell(world)
    else:
        await shell(world)
    result = results(world)["a"]
    assert result.outcome is {"ended": Outcome.OK, "timed out": Outcome.TIMEOUT}.get(how, Outcome.CANCELLED)
    assert result.text.removesuffix("\n").endswith(SEEN)
    assert json.loads(json.dumps(result.text).encode()) == result.text
