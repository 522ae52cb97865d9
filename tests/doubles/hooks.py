"""Hooks for tests: written down in a line, run by whatever processes the test has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio
from doubles.fake_processes import FakeProcesses, Program

from novacode.authority.hook_process import Host
from novacode.authority.hook_runner import CommandHooks
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hook_wire import HookFacts
from novacode.authority.hooks import HookedRun, HookEvent
from novacode.authority.modes import Mode
from novacode.values.events import HookRan, Notice, RunEvent
from novacode.values.ids import RunId
from novacode.workspace.base import Processes
from novacode.workspace.paths import Workspace

__all__ = ["Told", "deny", "hooks_on", "own", "pre", "says", "telling"]


def pre(command: str, **more: Any) -> HookSpec:
    """Return a guard."""
    return HookSpec(HookEvent.PRE_TOOL_USE, command, **more)


def hooks_on(processes: Processes, *specs: HookSpec, root: Path = Path("/world"), project: str = "") -> CommandHooks:
    """Return the hooks `specs`, run by `processes` in `root`."""
    facts = HookFacts("s", Workspace(root), project or str(root), "fake")
    return CommandHooks(specs, Host(facts, processes, trio.current_time), lambda: Mode.DEFAULT)


class Told:
    """A run that hooks are asked about, and what they made it hear."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.stops: list[str] = []

    @property
    def run(self) -> HookedRun:
        return HookedRun(RunId("s-r1"), self.events.append, self.stops.append)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the hooks, in the order of their events."""
        return [event.outcome for event in self.events if isinstance(event, HookRan)]

    @property
    def warnings(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


def own(event: str = "PreToolUse", **fields: Any) -> bytes:
    """Return an answer in `hookSpecificOutput`, as a program prints it."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, **fields}}).encode()


def deny(reason: str = "not here") -> bytes:
    """Return the answer that refuses a call."""
    return own(permissionDecision="deny", permissionDecisionReason=reason)


def says(output: bytes = b"", **more: Any) -> Program:
    """Return a program that prints `output`."""
    return Program((output,) if output else (), **more)


def telling(programs: Mapping[str, Program], *specs: HookSpec) -> tuple[CommandHooks, Told, FakeProcesses]:
    """Return hooks on fake processes within a run, what that run hears, and the processes."""
    told, processes = Told(), FakeProcesses(programs)
    return hooks_on(processes, *specs).for_run(told.run), told, processes
