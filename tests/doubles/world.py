"""Everything an engine needs, made of doubles, with a record of what really happened.

Judge from the record, after the run: an assertion inside a fake tool would be turned into a tool result by the very
code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs
import trio
from doubles.fake_model import FakeModel, call, end, say

from novacode import grace
from novacode.authority.approvals import Answer
from novacode.authority.hooks import HookAnswer, NoHooks
from novacode.authority.policy import Allow, Ask, Deny, Verdict
from novacode.authority.rules import Decision, parse_rule
from novacode.engine.agent import Agent, AgentOptions
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.engine.gate import Overlap
from novacode.engine.kit import Services
from novacode.engine.limits import Limits
from novacode.errors import ToolFailed
from novacode.models.backoff import GiveUp, Wait
from novacode.tools.base import Claims, Effects, Permit, SeenFiles, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.toolset import Toolset
from novacode.values.events import ApprovalAsked, Notice, Reaped, RunEnded, Stamped
from novacode.values.history import History
from novacode.values.ids import CallId, IdSource, SessionId
from novacode.values.parts import JSON, ToolCall
from novacode.values.request import ModelRequest, StopReason
from novacode.workspace.base import Command, Exit, NoSnapshots
from novacode.workspace.paths import Workspace

__all__ = ["Rules", "Work", "World"]

ROOT = Path("/world")


@attrs.frozen
class WorkArgs:
    """Arguments of the one fake tool."""

    takes: Annotated[float, "seconds of work"] = 0.0
    cleanup: Annotated[float, "seconds of clean-up when cancelled"] = 0.0
    fails: Annotated[str, "how it fails: '', 'tool', 'bug', 'exit', 'swallow', 'group', 'cleanup'"] = ""
    reads: Annotated[list[str], "paths"] = attrs.field(factory=list)
    writes: Annotated[list[str], "paths"] = attrs.field(factory=list)
    prints: Annotated[str, "live output"] = ""
    gives: Annotated[int, "characters of its result; 0 for a word"] = 0


class Work:
    """A tool that takes time, cleans up, fails on demand, and writes down when it was entered and left."""

    def __init__(
        self, name: str, log: list[str], limit: float | None = None, ran: dict[CallId, ToolCall] | None = None
    ) -> None:
        self.spec = ToolSpec(name, f"{name}: does some work", WorkArgs)
        self.alive: set[str] = set()
        self._ran = {} if ran is None else ran
        self._log = log
        self._limit = limit

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        return Claims(_paths(arguments.get("reads")), _paths(arguments.get("writes")))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        return Effects(self.spec.name, writes=tuple(_paths(arguments.get("writes"))), subject=str(dict(arguments)))

    def limit(self, args: WorkArgs) -> float | None:
        return self._limit

    async def run(self, permit: Permit[WorkArgs], ctx: ToolContext) -> ToolOutput:
        args, name = permit.args, f"{permit.call.name} {permit.call.id}"
        self._log.append(f"begin {permit.call.id}")
        self._ran[permit.call.id] = permit.call
        self.alive.add(name)
        try:
            if args.prints:
                ctx.output(args.prints.encode())
            output = await self._work(args)
            self._log.append(f"done {permit.call.id}")
            return output
        finally:
            with grace.cleanup(30):
                await trio.sleep(args.cleanup)
            self.alive.discard(name)
            self._log.append(f"end {permit.call.id}")

    async def _work(self, args: WorkArgs) -> ToolOutput:
        if args.fails == "swallow":
            try:
                await trio.sleep(args.takes)
            except BaseException:  # noqa: BLE001 - what a tool must never do; the run must be stopped all the same
                return ToolOutput.of("swallowed")
        if args.fails == "group":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_fail_when_cancelled)
                await trio.sleep(args.takes)
                nursery.cancel_scope.cancel()
        if args.fails == "cleanup":
            try:
                await trio.sleep(args.takes)
            except trio.Cancelled:
                raise OSError("the clean-up failed") from None
        await trio.sleep(args.takes)
        if args.fails == "tool":
            raise ToolFailed("the work cannot be done: 3 is not 4")
        if args.fails == "bug":
            raise KeyError("missing")
        if args.fails == "exit":
            return ToolOutput.of("exit code 3", exit_code=3)
        return ToolOutput.of(f"HEAD{'.' * args.gives}TAIL" if args.gives else "done")


async def _fail_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("boom")


def _paths(value: Any) -> frozenset[Path]:
    return frozenset(ROOT / str(item) for item in value) if isinstance(value, list) else frozenset()


class Rules:
    """A policy by tool name: `asks` asks, `denied` is denied, everything else is allowed."""

    def judge(self, call: ToolCall, effects: Effects, workspace: Workspace) -> Verdict:
        match call.name:
            case "asks":
                return Ask(
                    reason="the test wants a question", rule_to_store=(parse_rule("asks", Decision.ALLOW, "the test"),)
                )
            case "denied":
                return Deny(reason="the test denies it", rule="denied")
            case _:
                return Allow(granted_by="the test")

    def remember(self, rules: tuple[str, ...], scope: object) -> None:
        return None

    def unreadable(self, tool: str, workspace: Workspace) -> None:
        return None


class Quiet:
    """Processes of a world that has none."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def run(self, command: Command, output: Callable[[bytes], None]) -> Exit:
        raise ToolFailed(f"there are no processes here: {command.argv}")

    async def sweep(self) -> None:
        self._log.append("sweep begins")
        await trio.sleep(0.5)
        self._log.append("sweep ends")

    def hurry(self) -> None:
        return None

    def waiting_for(self) -> tuple[str, ...]:
        return ()

    @property
    def reaped(self) -> Reaped:
        return Reaped()


class HookLog(NoHooks):
    """Hooks that only write down what they saw."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def pre_tool_use(self, call: ToolCall) -> HookAnswer:
        self._log.append(f"pre {call.id}")
        return HookAnswer(call)

    async def post_tool_use(self, call: ToolCall, result: Any) -> Any:
        self._log.append(f"post {call.id}")
        return result


class SnapshotLog(NoSnapshots):
    """Snapshots that only write down when they were taken."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def take(self, call: Any, paths: Sequence[Path]) -> Sequence[Notice]:
        self._log.append(f"take {call}")
        return ()

    async def record(self, call: Any, name: str) -> None:
        self._log.append(f"record {call}")


class World:
    """An agent on doubles. `log` is what happened in order, `events` what was said about it.

    It is a `novacode.lab.stage.Stage`, so that the lab can attack it.
    """

    prompt = "go"
    written = cleaning = ()  # nothing is written here, and nothing tells its clean-up from its work

    def __init__(
        self,
        replies: Sequence[Sequence[Any]] = (),
        *,
        limits: Limits | None = None,
        overlap: Overlap = Overlap.DECLARED,
        somebody: bool = True,
        retries: int = 2,
        timeout: float | None = None,
        services: Mapping[str, Any] | None = None,
        window: int | None = None,
    ) -> None:
        self.log: list[str] = []
        self.events: list[Stamped] = []
        self._answering: Callable[[Stamped], None] | None = None
        self._limits = limits or Limits()
        self.model = FakeModel(replies, self.log)
        names = ("work", "asks", "denied", "slow", "off")
        self.ran: dict[CallId, ToolCall] = {}
        self.tools = [Work(name, self.log, timeout, self.ran) for name in names]
        self.permissions: Any = Rules()
        made = Services(
            model=self.model,
            tools=Toolset(self.tools, disabled=("off",)),
            hooks=HookLog(self.log),
            permissions=self.permissions,
            snapshots=SnapshotLog(self.log),
            workspace=Workspace(ROOT),
            processes=Quiet(self.log),
            seen=SeenFiles(),
            spill=ROOT / "spill",
            request=_request,
            retry=lambda stage, times, failure: Wait(1.0) if failure.retryable and times <= retries else GiveUp(),
            clock=trio.current_time,
        )
        self.services = attrs.evolve(made, **(services or {}))
        self.bus = Bus(trio.current_time)
        self.bus.subscribe(self._note)
        options = AgentOptions(limits or Limits(), overlap, somebody=somebody, model="fake", window=window)
        self.talk = Conversation()
        self.agent = Agent(self.services, self.talk, self.bus, IdSource(SessionId("s")), options)

    def _note(self, stamped: Stamped) -> None:
        self.events.append(stamped)
        if isinstance(stamped.event, RunEnded):
            self.log.append("run ended")

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the events of one class, in order."""
        return [stamped.event for stamped in self.events if isinstance(stamped.event, kind)]

    def answer_all(self, *, allowed: bool) -> None:
        """Answer every question as soon as it is asked."""

        def on(stamped: Stamped) -> None:
            if isinstance(stamped.event, ApprovalAsked):
                given = Answer(allowed=allowed, by="the test")
                trio.lowlevel.current_trio_token().run_sync_soon(
                    self.agent.answer, stamped.run_id, stamped.event.approval_id, given
                )

        self._answering = on
        self.bus.subscribe(on)

    async def person(self) -> None:
        """Do nothing: questions are answered where they are asked, if at all."""
        await trio.sleep_forever()

    def next_act(self, *, asking: bool) -> str:
        """Have the model say that all is fine, after one call that asks where that is wanted."""
        self.unsubscribe_answers()
        asks = [[call("next", "asks", 1), end(StopReason.TOOL_USE)]] if asking else []
        self.model.replies = [*asks, [say("fine"), end()]]
        self.agent.options = attrs.evolve(self.agent.options, limits=Limits())
        return "again"

    @property
    def noted(self) -> Sequence[str]:
        """Which steps around a call are in the log: those of seams that keep it."""
        services = self.agent.services
        hooks = ("pre", "post") if hasattr(services.hooks, "_log") else ()
        return (*hooks, *(("take", "record") if hasattr(services.snapshots, "_log") else ()))

    @property
    def limits(self) -> Limits:
        """The limits of the first run."""
        return self._limits

    @property
    def requests(self) -> list[ModelRequest]:
        """What the model was asked; asking once more for a lost response is not another request."""
        asked = self.model.requests
        return [request for at, request in enumerate(asked) if at == 0 or asked[at - 1] is not request]

    @property
    def streams(self) -> int:
        """How many of its responses are open."""
        return self.model.open

    def unsubscribe_answers(self) -> None:
        """Answer no more."""
        if self._answering is not None:
            self.bus.unsubscribe(self._answering)
            self._answering = None

    @property
    def alive(self) -> set[str]:
        """Tools that were entered and not left."""
        return set().union(*(tool.alive for tool in self.tools))


def _request(history: History, output_left: int | None) -> ModelRequest:
    return ModelRequest("fake-1", "", history, max_output_tokens=output_left)
