"""Runs in real time: the calls of a scenario are real processes, and what they leave is looked for on the machine."""

from __future__ import annotations

import math
import os
import random  # noqa: TID251 - the moment of the strike is drawn with the seed of the run
import signal
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs
import trio

from novacode.authority.commands import analyse
from novacode.authority.hooks import NoHooks
from novacode.authority.permissions import Permissions
from novacode.authority.policy import Mode, Policy
from novacode.engine.agent import Agent, AgentOptions
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.engine.gate import Overlap
from novacode.engine.kit import Services
from novacode.errors import InputError
from novacode.grace import Grace
from novacode.lab.experiment import ANY, NONE, SweepPoint, Swept
from novacode.lab.point import Point, Row, Violation
from novacode.lab.props import subject_of
from novacode.lab.scenario import find_scenario
from novacode.lab.scripted import Blueprint
from novacode.models.backoff import GiveUp, RetryLimits, Stage, Wait, decide
from novacode.models.client import ModelClient
from novacode.models.script import ScriptWire
from novacode.models.script_steps import CallStep, Script
from novacode.protocols import jsonio
from novacode.protocols.anthropic import AnthropicCodec
from novacode.tools.base import SeenFiles
from novacode.tools.shell import ShellTool
from novacode.tools.toolset import Toolset
from novacode.values.events import (
    CallMoved,
    CallReady,
    CallSettled,
    Phase,
    RunEnded,
    Stamped,
    Started,
    TurnCommitted,
)
from novacode.values.failure import Failure
from novacode.values.history import History
from novacode.values.ids import CallIds, IdSource, SessionId
from novacode.values.request import ModelRequest
from novacode.workspace import proctree
from novacode.workspace.base import NoSnapshots
from novacode.workspace.paths import Workspace
from novacode.workspace.processes import RealProcesses

__all__ = ["REAL_PHASES", "do_real_batch"]

REAL_PHASES = ("running", "streaming", ANY, NONE)
"""What a run in real time can be stopped at: what can be seen from outside, as it begins."""

_LONGEST = 120.0  # seconds after which a run counts as hung
_RETRY = RetryLimits(requests=2, streams=2)


def do_real_batch(points: Sequence[SweepPoint]) -> list[Swept]:
    """Carry `points` out, one after the other, in real time. The job of one worker.

    Each call becomes a shell command that works for as long as the scenario's tool takes, and after SIGTERM for as
    long as its clean-up; `grace` is how long it has until SIGKILL. Times of rows are seconds since the run began.
    """
    return [Swept(point, trio.run(_carry_out, point)) for point in points]


@attrs.define(eq=False)
class _Watch:
    """Sees a run, and stops it a drawn time after it is first at the wanted phase."""

    agent: Agent
    nursery: trio.Nursery
    phase: str
    delay: float
    began: float
    events: list[Stamped] = attrs.field(factory=list)
    struck_at: float | None = None
    struck_phase: str = ""
    at: str = ""
    _armed: bool = False

    def take(self, stamped: Stamped) -> None:
        self.events.append(stamped)
        match stamped.event:
            case Started():
                self.at = "streaming"
            case CallMoved(phase=Phase.RUNNING):
                self.at = "running"
            case TurnCommitted():
                self.at = "between"
            case _:
                return
        if not self._armed and self.phase in (ANY, self.at):
            self._armed = True
            self.nursery.start_soon(self._strike)

    async def _strike(self) -> None:
        await trio.sleep(self.delay)
        at, phase = trio.current_time() - self.began, self.at
        if self.agent.cancel("the lab"):
            self.struck_at, self.struck_phase = at, phase


async def _carry_out(point: SweepPoint) -> Row:
    blueprint = find_scenario(point.name).blueprint
    if blueprint is None:
        raise InputError(f"the scenario {point.scenario!r} is in Python; only scripts can be run in real time")
    script, longest = _as_commands(blueprint)
    delay = random.Random(point.seed).uniform(0.0, max(0.05, longest))
    with tempfile.TemporaryDirectory(prefix="novacode-real-") as folder:
        root = _resolved(folder)
        processes = RealProcesses(Grace(term=2.0 if point.variant.grace is None else point.variant.grace))
        agent = _agent(script, root, processes, Overlap(blueprint.simulation.around.overlap))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            watch = _Watch(agent, nursery, point.phase, delay, began)
            agent.bus.subscribe(watch.take)
            await nursery.start(_obey, agent)
            with trio.move_on_after(_LONGEST) as limit:
                await agent.run("go")
            quiet = trio.current_time() - began
            nursery.cancel_scope.cancel()
        return _row(point, watch, quiet, _below(root), hung=limit.cancelled_caught)


async def _obey(agent: Agent, task_status: trio.TaskStatus[None]) -> None:
    """Stop the run on SIGTERM, so that a sweep that is given up leaves no process behind."""
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            agent.cancel("the sweep was stopped")


def _resolved(folder: str) -> Path:
    return Path(folder).resolve()


def _as_commands(blueprint: Blueprint) -> tuple[Script, float]:
    """Return the script with its calls as shell commands, and how long the longest of them works."""
    longest = 0.0
    turns = []
    for turn in blueprint.script.turns:
        steps = []
        for step in turn.steps:
            if isinstance(step, CallStep) and not step.cut:
                arguments = jsonio.load(step.raw.encode())
                tool = blueprint.simulation.tool(
                    step.name, subject_of(arguments if isinstance(arguments, dict) else {})
                )
                longest = max(longest, tool.takes)
                line = f"trap 'sleep {tool.cleanup:g}; exit 143' TERM; sleep {tool.takes:g} & wait $!"
                step = attrs.evolve(step, name="shell", raw=jsonio.dump_text({"command": line}))
            steps.append(step)
        turns.append(attrs.evolve(turn, steps=tuple(steps)))
    return attrs.evolve(blueprint.script, turns=tuple(turns)), longest


def _agent(script: Script, root: Path, processes: RealProcesses, overlap: Overlap) -> Agent:
    tools = Toolset((ShellTool(),))

    def request(history: History, output_left: int | None) -> ModelRequest:
        return ModelRequest("script", "the lab", history, tools.offers(), output_left)

    services = Services(
        model=ModelClient(AnthropicCodec(), ScriptWire(script), CallIds(), math.inf),
        tools=tools,
        hooks=NoHooks(),
        permissions=Permissions(Policy(Mode.BYPASS, (), analyse)),
        snapshots=NoSnapshots(),
        workspace=Workspace(root),
        processes=processes,
        seen=SeenFiles(),
        spill=root / "spill",
        request=request,
        retry=_retry,
        clock=trio.current_time,
    )
    options = AgentOptions(overlap=overlap, model="script")
    return Agent(services, Conversation(), Bus(trio.current_time), IdSource(SessionId("lab")), options)


def _retry(stage: Stage, times: int, failure: Failure) -> Wait | GiveUp:
    return decide(stage, times, failure, 0.5, _RETRY)


def _below(root: Path) -> list[str]:
    """Name the processes that work in `root`: whatever became of their parents, that is where they were started."""
    found = []
    for proc in proctree.everybody():
        try:
            folder = os.readlink(f"/proc/{proc.pid}/cwd")
        except OSError:
            continue
        if not proc.gone and Path(folder.removesuffix(" (deleted)")).is_relative_to(root):
            found.append(f"{proc.pid} {proctree.command_line(proc.pid)}")
    return found


def _row(point: SweepPoint, watch: _Watch, quiet: float, left: Sequence[str], *, hung: bool) -> Row:
    ended = next((s.event for s in watch.events if isinstance(s.event, RunEnded)), None)
    made = Counter(s.event.call.id for s in watch.events if isinstance(s.event, CallReady))
    settled = [s.event.result for s in watch.events if isinstance(s.event, CallSettled)]
    violations = []
    if hung:
        violations.append(Violation("hang", f"it came to no end in {_LONGEST:g} s"))
    if made != Counter(result.call_id for result in settled):
        violations.append(Violation("pairing", f"calls {sorted(made)}, results {[r.call_id for r in settled]}"))
    if left:
        violations.append(Violation("alive", f"alive after the run: {list(left)}"))
    struck = watch.struck_at
    return Row(
        Point(point.name, point.seed, point.schedule),
        len(watch.events),
        "none" if ended is None else ended.status.value,
        "" if ended is None else ended.reason,
        tuple(violations),
        None if struck is None else round(struck, 6),
        round(quiet, 6),
        watch.struck_phase,
        "",
        len(left),
        dict(sorted(Counter(result.outcome.value for result in settled).items())),
    )
