"""A stage that is made from a script file: the real engine, pipeline, policy and codec over a simulated world."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import attrs
import trio

from novacode.authority.approvals import Answer
from novacode.authority.commands import analyse
from novacode.authority.permissions import Permissions
from novacode.authority.policy import Mode, Policy, parse_mode
from novacode.authority.rules import Decision, Rule, parse_rule
from novacode.engine.agent import Agent, AgentOptions
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.engine.gate import Overlap
from novacode.engine.kit import Services
from novacode.engine.limits import Limits
from novacode.lab.mishaps import NO_MISHAP, Mishap, MishapKind
from novacode.lab.props import LoggedHooks, LoggedProcesses, LoggedSnapshots, LoggedWire, Watched
from novacode.models.backoff import GiveUp, RetryLimits, Stage, Wait, decide
from novacode.models.client import ModelClient
from novacode.models.script import parse_script
from novacode.models.script_steps import Script
from novacode.protocols.anthropic import AnthropicCodec
from novacode.tools.base import SeenFiles
from novacode.tools.builtin import builtin_tools
from novacode.tools.simulated import simulated_tools
from novacode.tools.toolset import Toolset
from novacode.values.events import ApprovalAsked, RunEnded, Stamped
from novacode.values.failure import Failure
from novacode.values.history import History
from novacode.values.ids import CallId, CallIds, IdSource, SessionId
from novacode.values.parts import ToolCall
from novacode.values.request import ModelRequest, ToolOffer
from novacode.workspace.paths import Workspace
from novacode.workspace.simulated import SimulatedWorld
from novacode.workspace.simulation import Person, Simulation

__all__ = ["Blueprint", "ScriptedStage"]

ROOT = Path("/simulated")
_ASKING = '[[turn]]\nsteps = [{ call = "shell", id = "next", arguments = { command = "make again" } }]\n'
_PLAIN = '[[turn]]\nsteps = [{ text = "fine" }]\n'
_SLOW = 30.0
_IDLE = 300.0
_RETRY = RetryLimits(requests=2, streams=2)


@attrs.frozen
class Blueprint:
    """What all stages of one scenario share: nothing in it changes, so it is made once and not for every run."""

    script: Script
    simulation: Simulation
    policy: Policy
    limits: Limits
    offers: tuple[ToolOffer, ...]
    asking: Script
    plain: Script

    @classmethod
    def of(cls, script: Script, simulation: Simulation) -> Blueprint:
        """Work everything out. Raises `SettingsError` for a rule or a mode that cannot be read."""
        around = simulation.around
        return cls(
            script,
            simulation,
            Policy(parse_mode(around.mode), _rules(simulation), analyse),
            Limits(**around.limits),  # type: ignore[arg-type]
            Toolset(builtin_tools(_reads_only), around.disabled).offers(),
            parse_script(_ASKING + _PLAIN, "the lab's next run"),
            parse_script(_PLAIN, "the lab's next run"),
        )


def _reads_only(line: str) -> bool:
    return analyse(line).read_only


def _rules(simulation: Simulation) -> tuple[Rule, ...]:
    around = simulation.around
    written = ((Decision.ALLOW, around.allow), (Decision.ASK, around.ask), (Decision.DENY, around.deny))
    return tuple(parse_rule(text, decision, "the scenario") for decision, texts in written for text in texts)


class ScriptedStage:
    """One fresh agent on a scripted model and simulated tools; see `Stage`."""

    noted = ("pre", "take", "record", "post")

    def __init__(self, blueprint: Blueprint, mishap: Mishap = NO_MISHAP) -> None:
        around = blueprint.simulation.around
        self.prompt = "go"
        self.limits = blueprint.limits
        self.may_raise = any(hook.raises for hook in around.hooks)
        self.log: list[str] = []
        self.events: list[Stamped] = []
        self.requests: list[ModelRequest] = []
        self.ran: dict[CallId, ToolCall] = {}
        self._blueprint = blueprint
        self._person = around.person
        self._questions: list[tuple[str, str]] = []
        self._asked = trio.Event()
        self._wire = LoggedWire(blueprint.script, self.log, mishap)
        self._world = SimulatedWorld(ROOT, _slowed(blueprint.simulation, mishap))
        bus = Bus(trio.current_time)
        bus.subscribe(self._note)
        options = AgentOptions(
            blueprint.limits,
            Overlap(around.overlap),
            somebody=around.person.answers != "absent",
            model="script",
        )
        self.agent = Agent(self._services(mishap), Conversation(), bus, IdSource(SessionId("lab")), options)

    @property
    def written(self) -> Collection[CallId]:
        """The calls that wrote a file, once for each file."""
        return [call_id for call_id, _ in self._world.written]

    @property
    def alive(self) -> Collection[str]:
        """The tools that are under way."""
        return self._world.under_way

    @property
    def cleaning(self) -> Collection[str]:
        """Those of them that clean up."""
        return self._world.cleaning

    @property
    def streams(self) -> int:
        """How many responses are open."""
        return self._wire.open_streams

    @property
    def chunks(self) -> int:
        """How many chunks of responses were asked for so far."""
        return self._wire.chunks

    async def person(self) -> None:
        """Answer every question, as the scenario says and after the time it says."""
        person = self._person
        while True:
            await self._asked.wait()
            self._asked = trio.Event()
            await trio.sleep(person.after)
            while self._questions and self._person is person:
                run_id, approval_id = self._questions.pop(0)
                self.agent.answer(run_id, approval_id, Answer(person.answers == "allow", by="the lab's person"))

    def next_act(self, *, asking: bool) -> str:
        """Put the next run on the stage; see `Stage`."""
        self._person = Person("none")
        self._wire.play(self._blueprint.asking if asking else self._blueprint.plain)
        rules = (parse_rule("shell", Decision.ASK, "the lab"),)
        self.agent.services.permissions.policy = Policy(Mode.DEFAULT, rules, analyse)
        self.agent.options = attrs.evolve(self.agent.options, limits=Limits())
        return "again"

    def _toolset(self, mishap: Mishap) -> Toolset:
        around = self._blueprint.simulation.around
        tools = simulated_tools(self._world, _reads_only)
        return Toolset((Watched(tool, self.log, self.ran, mishap) for tool in tools), around.disabled)

    def _services(self, mishap: Mishap) -> Services:
        return Services(
            model=ModelClient(AnthropicCodec(), self._wire, CallIds(), _IDLE),
            tools=self._toolset(mishap),
            hooks=LoggedHooks(self._blueprint.simulation.around, self.log, mishap),
            permissions=Permissions(self._blueprint.policy),
            snapshots=LoggedSnapshots(self.log),
            workspace=Workspace(ROOT),
            processes=LoggedProcesses(self.log),
            seen=SeenFiles(),
            spill=ROOT / "spill",
            request=self._request,
            retry=_retry,
            clock=trio.current_time,
        )

    def _request(self, history: History, output_left: int | None) -> ModelRequest:
        request = ModelRequest("script", "the lab", history, self._blueprint.offers, output_left)
        self.requests.append(request)
        return request

    def _note(self, stamped: Stamped) -> None:
        self.events.append(stamped)
        match stamped.event:
            case RunEnded():
                self.log.append("run ended")
            case ApprovalAsked(approval_id=approval_id) if self._person.answers in ("allow", "deny"):
                self._questions.append((stamped.run_id, approval_id))
                self._asked.set()
            case _:
                pass


def _slowed(simulation: Simulation, mishap: Mishap) -> Simulation:
    if mishap.kind is not MishapKind.SLOW_CLEANUP:
        return simulation
    slow = tuple(attrs.evolve(tool, cleanup=tool.cleanup + _SLOW) for tool in simulation.tools)
    return attrs.evolve(simulation, tools=slow)


def _retry(stage: Stage, times: int, failure: Failure) -> Wait | GiveUp:
    return decide(stage, times, failure, 0.5, _RETRY)
