"""Real hook programs around a real shell tool: what they refuse has no effect, however they put it."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import trio
from doubles.fake_model import call
from doubles.hooks import deny, hooks_on, own, pre
from doubles.os_processes import alive, unique
from doubles.records import DONE, TOOL_USE, results
from doubles.world import World

from novacode.authority.hook_settings import HookSpec, OnFailure, parse_hooks
from novacode.authority.hooks import HookEvent
from novacode.authority.policy import Allow
from novacode.grace import Grace
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.events import HookRan, Notice
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.paths import Workspace
from novacode.workspace.processes import RealProcesses


class Everything:
    """A policy that allows all."""

    def judge(self, *_: object) -> Allow:
        return Allow("the test")

    def unreadable(self, *_: object) -> None:
        return None


def world_in(root: Path, replies: Any, *specs: HookSpec) -> World:
    """Return a world of real tools, processes and hooks in `root`."""
    processes = RealProcesses(Grace(term=5, kill=5))
    services = {
        "tools": Toolset(builtin_tools(lambda line: False)),
        "permissions": Everything(),
        "workspace": Workspace.at(root),
        "processes": processes,
        "hooks": hooks_on(processes, *specs, root=root),
    }
    return World(replies, services=services)


async def touch_p(root: Path, *specs: HookSpec) -> tuple[ToolResult, World]:
    """Let the model call for `touch P` under `specs`."""
    world = world_in(root, [[call("a", "shell", command="touch P"), TOOL_USE], DONE], *specs)
    await world.agent.run("go")
    return results(world)["a"], world


def program(root: Path, name: str, text: str) -> str:
    """Write a program and return the command that runs it."""
    path = root / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def shown(answer: bytes) -> str:
    return f"printf %s '{answer.decode()}'"


REFUSALS = {
    "h1": (shown(deny("because h1")), "because h1"),
    "h2": ("echo because h2 >&2; exit 2", "because h2"),
    "h3": (f"{shown(deny('because h3'))}; exit 2", "because h3"),
    "h4": (f"{shown(deny('because h4'))}; exit 1", "because h4"),
    "h5": (shown(own(permissionDecision="nope")), "its decision is 'nope'"),
    "h6": ("echo looks fine", "it printed text that is no JSON object: looks fine"),
    "h7": (f"echo checking; {shown(deny('because h7'))}", "because h7"),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_br_049_a_no_is_a_no_however_it_is_put(name: str, tmp_path: Path) -> None:
    """P never exists, the model gets the reason, and no later hook, no snapshot and no execution follow."""
    command, words = REFUSALS[name]
    later = tmp_path / "later"
    after = HookSpec(HookEvent.POST_TOOL_USE, f"touch {later}")
    result, world = await touch_p(tmp_path, pre(command), after)
    assert (result.outcome, (tmp_path / "P").exists(), later.exists()) == (Outcome.HOOK_DENIED, False, False)
    assert words in result.text
    assert [entry for entry in world.log if entry.startswith(("take", "begin", "record"))] == []


async def test_br_049_text_is_let_through_with_a_warning_where_that_is_wanted(tmp_path: Path) -> None:
    result, world = await touch_p(tmp_path, pre("echo looks fine", on_failure=OnFailure.CONTINUE))
    assert (result.outcome, (tmp_path / "P").exists()) == (Outcome.OK, True)
    assert any("it printed text that is no JSON object: looks fine" in note.text for note in world.of(Notice))


FAILURES = {
    "exit 139": "exit 139",
    "not found": "/no/such/guard",
    "too slow": "sleep 60",
    "exit 1": "exit 1",
    "killed": "kill -SEGV $$",
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("on_failure", OnFailure)
async def test_br_050_a_guard_that_fails(name: str, on_failure: OnFailure, tmp_path: Path) -> None:
    """It refuses, and the model is told that the guard failed; or, where that is wanted, it is only warned about."""
    result, world = await touch_p(tmp_path, pre(FAILURES[name], on_failure=on_failure, timeout=0.3))
    denies = on_failure is OnFailure.DENY
    assert result.outcome is (Outcome.HOOK_DENIED if denies else Outcome.OK)
    assert (tmp_path / "P").exists() is not denies
    assert (f"the hook `{FAILURES[name]}` failed: " in result.text) is denies
    assert [event.outcome for event in world.of(HookRan)] == ["timeout" if name == "too slow" else "failed"]
    assert any(f"hook `{FAILURES[name]}`" in note.text for note in world.of(Notice))


READERS = {
    "never reads": ("sleep 60", "timeout"),
    "ends without reading": ("exit 0", "pass"),
    "reads all": ("cat > /dev/null; exit 0", "pass"),
    "reads ten bytes and refuses": ("head -c 10 > /dev/null; exit 2", "deny"),
}


@pytest.mark.parametrize("name", READERS)
async def test_br_174_what_a_hook_reads_is_its_own_affair(name: str, tmp_path: Path) -> None:
    """A megabyte on its stdin: the limit holds while it is written, and a broken pipe is no failure."""
    command, outcome = READERS[name]
    written = call("a", "write", path="big.txt", content="x" * 1_000_000)
    world = world_in(tmp_path, [[written, TOOL_USE], DONE], pre(command, timeout=1))
    with trio.fail_after(20):
        await world.agent.run("go")
    assert [event.outcome for event in world.of(HookRan)] == [outcome]
    assert (tmp_path / "big.txt").exists() is (outcome == "pass")


async def test_what_a_hook_leaves_running_is_stopped_with_the_run(tmp_path: Path) -> None:
    token = unique()
    hook = pre(f"setsid sleep {token} > /dev/null 2>&1 & echo '{{}}'")
    result, world = await touch_p(tmp_path, hook)
    assert (result.outcome, alive(token)) == (Outcome.OK, [])
    assert world.agent.active is None


async def test_a_cancelled_run_waits_until_its_hooks_are_reaped(tmp_path: Path) -> None:
    token = unique()
    hook = pre(f"setsid sleep {token} & sleep {token}")
    world = world_in(tmp_path, [[call("a", "shell", command="touch P"), TOOL_USE], DONE], hook)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        with trio.fail_after(20):
            while len(alive(token)) < 2:  # noqa: ASYNC110 - something outside of the process
                await trio.sleep(0.01)
        world.agent.cancel("test")
    assert (alive(token), (tmp_path / "P").exists()) == ([], False)
    assert results(world)["a"].outcome is Outcome.CANCELLED
    assert [event.outcome for event in world.of(HookRan)] == ["cancelled"]


# --- three programs in the manner of those in the wild: JSON from stdin by jq, exit 2 to refuse, familiar names -------

FORMATTER = """#!/bin/bash
# PostToolUse on Edit|Write: strip blanks at line ends from Python files.
set -euo pipefail
file=$(jq -r '.tool_input.file_path // empty')
[[ -z "$file" || "$file" != *.py ]] && exit 0
sed -i 's/[[:blank:]]*$//' "$file"
echo "formatted ${file#"$CLAUDE_PROJECT_DIR"/}"
"""
GUARD = """#!/usr/bin/env bash
# PreToolUse on Bash: no recursive deletes.
input=$(cat)
command=$(echo "$input" | jq -r '.tool_input.command')
if [[ $(echo "$input" | jq -r .tool_name) == Bash && "$command" =~ rm[[:space:]]+-[a-z]*r[a-z]*f ]]; then
    echo "Blocked: '$command' deletes recursively" >&2
    exit 2
fi
exit 0
"""
LOGGER = """#!/usr/bin/env python3
# UserPromptSubmit: keep every prompt with its session.
import json, os, sys
data = json.load(sys.stdin)
line = {"session": data["session_id"], "event": data["hook_event_name"], "prompt": data["prompt"]}
with open(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "prompts.jsonl"), "a") as log:
    log.write(json.dumps(line) + "\\n")
"""


@pytest.mark.skipif(shutil.which("jq") is None, reason="they are written with jq, as many are")
async def test_programs_written_for_other_agents_work_unchanged(tmp_path: Path) -> None:
    """The settings are the nested form as it is found elsewhere."""
    root = tmp_path / "project"
    root.mkdir()
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [_command(tmp_path, "guard.sh", GUARD)]}],
        "PostToolUse": [{"matcher": "Edit|MultiEdit|Write", "hooks": [_command(tmp_path, "format.sh", FORMATTER)]}],
        "UserPromptSubmit": [{"hooks": [_command(tmp_path, "log.py", LOGGER)]}],
    }
    specs, warnings = parse_hooks(hooks, "settings.json")
    (root / "keep").mkdir()
    first = [
        call("w", "write", 1, path="a.py", content="x = 1   \ny = 2\n"),
        call("t", "write", 2, path="a.txt", content="text   \n"),
        call("rm", "shell", 3, command="rm -rf keep"),
        call("ls", "shell", 4, command="ls -d keep"),
        TOOL_USE,
    ]
    again = [call("r", "read", 1, path="a.py"), TOOL_USE]  # the formatter has changed it since it was written
    second = [call("e", "edit", 1, path="a.py", old="y = 2", new="y = 3 \t"), TOOL_USE]
    world = world_in(root, [first, again, second, DONE], *specs)
    ended = await world.agent.run("tidy up")
    assert (ended.status, warnings) == ("completed", ())
    assert (root / "a.py").read_text() == "x = 1\ny = 3\n"
    assert (root / "a.txt").read_text() == "text   \n"
    assert (root / "keep").is_dir()
    assert {name: result.outcome for name, result in results(world).items()} == {
        "w": Outcome.OK,
        "t": Outcome.OK,
        "rm": Outcome.HOOK_DENIED,
        "ls": Outcome.OK,
        "r": Outcome.OK,
        "e": Outcome.OK,
    }
    assert "Blocked: 'rm -rf keep' deletes recursively" in results(world)["rm"].text
    kept = [json.loads(line) for line in (root / "prompts.jsonl").read_text().splitlines()]
    assert kept == [{"session": "s", "event": "UserPromptSubmit", "prompt": "tidy up"}]


def _command(folder: Path, name: str, text: str) -> dict[str, Any]:
    return {"type": "command", "command": program(folder, name, text), "timeout": 20}
