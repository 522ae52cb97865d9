"""The object graph of one session, built in one place from settings. No globals, nothing looked up later."""

from __future__ import annotations

import os
import random  # noqa: TID251 - the one generator of a session is made here, seeded where that is wanted
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from novacode import grace
from novacode.app.choosing import Choice, choose
from novacode.app.clocks import ScriptClock, WallClock
from novacode.app.file_history import file_history
from novacode.app.hooking import hook_facts, hooks_of
from novacode.app.instructions import load_instructions
from novacode.app.interrupts import Ladder
from novacode.app.rule_store import RuleStore
from novacode.app.settings import Settings
from novacode.app.shell_lines import analyse, reads_only
from novacode.authority.permissions import Permissions
from novacode.authority.policy import Policy
from novacode.engine.agent import Agent, AgentOptions
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.engine.gate import Overlap
from novacode.engine.kit import Services
from novacode.engine.limits import Limits
from novacode.engine.patience import Retry
from novacode.engine.prompt import Prompt, requests
from novacode.models.backoff import GiveUp, RetryLimits, Stage, Wait, decide
from novacode.models.catalog import context_window, cost_usd
from novacode.models.client import ModelClient
from novacode.sessions.secrets import Secrets
from novacode.sessions.store import Session, Store, memory_session
from novacode.tools.base import SeenFiles
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.events import Stamped, TurnCommitted
from novacode.values.failure import Failure
from novacode.values.ids import CallIds, IdSource, SessionId
from novacode.values.request import Usage
from novacode.workspace.base import Processes
from novacode.workspace.environment import is_provider_key
from novacode.workspace.paths import Workspace
from novacode.workspace.processes import RealProcesses

__all__ = ["App", "SessionWish", "Setup", "open_app"]

_DETERMINISTIC_ID = SessionId("s-deterministic")


@attrs.frozen
class SessionWish:
    """Which session to use: a new one, the latest of this folder, or one by id; perhaps a copy; perhaps none kept."""

    latest: bool = False
    wanted: str = ""
    fork: bool = False
    keep: bool = True


@attrs.frozen
class Setup:
    """What a session is made from. `somebody` is whether a person can be asked.

    `simulate` puts a world in memory behind the tools: nothing real is run, read or written.

    `choice` is a model that was chosen already; without it the settings name one. `rules_of` is the folder whose
    "always" rules are read and written, where that is another than `cwd`: a worktree comes and goes.
    """

    settings: Settings
    environ: Mapping[str, str]
    home: Path
    cwd: Path
    extra: tuple[Path, ...] = ()
    session: SessionWish = attrs.field(factory=SessionWish)
    somebody: bool = False
    deterministic: bool = False
    seed: int = 0
    choice: Choice | None = None
    simulate: bool = False
    rules_of: Path | None = None


@attrs.frozen
class App:
    """A session, ready to run. `notices` are for the person who opened it."""

    setup: Setup
    choice: Choice
    session: Session
    agent: Agent
    processes: Processes
    ladder: Ladder
    tools: Toolset
    notices: tuple[str, ...]
    deterministic: bool
    _client: ModelClient
    _dirty: list[trio.Event] = attrs.field(factory=lambda: [trio.Event()])

    @property
    def bus(self) -> Bus:
        """Where faces subscribe."""
        return self.agent.bus

    async def background(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive signals and bring the journal to the disk, until cancelled; started once signals are received."""
        self.bus.subscribe(self._note_turn)
        async with trio.open_nursery() as nursery:
            await nursery.start(self.ladder.listen)
            nursery.start_soon(self._flush_turns)
            task_status.started()

    def _note_turn(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, TurnCommitted):
            self._dirty[0].set()

    async def _flush_turns(self) -> None:
        while True:
            await self._dirty[0].wait()
            self._dirty[0] = trio.Event()
            await self.session.journal.flush()
            if (failed := self.session.journal.failed) is not None:
                self.bus.fail(failed)


@asynccontextmanager
async def open_app(setup: Setup) -> AsyncIterator[App]:
    """Build everything, and take it down again: connections closed, the journal on the disk, the session released.

    Raises the `NovaError` that says what is missing: credentials, a script that cannot be read, a locked session.
    """
    choice = setup.choice or choose(setup.settings.model, setup.settings.base_url, setup.environ)
    deterministic = setup.deterministic or choice.scripted
    session = _session(setup, deterministic=deterministic)
    try:
        app = _assemble(setup, choice, session, deterministic=deterministic)
        try:
            yield app
        finally:
            await _say_goodbye(app)
            with grace.cleanup(grace.DEFAULT.wire):
                await app._client.aclose()
            with grace.cleanup(grace.DEFAULT.journal):
                await session.journal.flush()
    finally:
        session.close()


async def _say_goodbye(app: App) -> None:
    """Let hooks know that the session ends, and leave nothing of theirs behind."""
    with grace.cleanup(grace.DEFAULT.hooks):
        await app.agent.services.hooks.session_ended("other")
    with grace.cleanup(grace.DEFAULT.hooks):
        await app.processes.sweep()


def _session(setup: Setup, *, deterministic: bool) -> Session:
    wish = setup.session
    clock = WallClock()
    store = Store(setup.home, clock, secrets=_secrets(setup))
    wanted = wish.wanted or (store.latest(setup.cwd) if wish.latest else None)
    if wanted:
        return store.fork(wanted, setup.cwd) if wish.fork else store.open(wanted)
    if not wish.keep:
        return memory_session(_DETERMINISTIC_ID if deterministic else SessionId("s-unkept"))
    return store.replace(_DETERMINISTIC_ID, setup.cwd) if deterministic else store.create(setup.cwd)


def _secrets(setup: Setup) -> Secrets:
    """Return what no session file may hold: the keys of providers, and what the settings name."""
    return Secrets((*filter(is_provider_key, setup.environ), *setup.settings.secrets), setup.environ)


def _assemble(setup: Setup, choice: Choice, session: Session, *, deterministic: bool) -> App:
    settings, loaded = setup.settings, session.loaded
    script_clock = ScriptClock()
    script_clock.set(loaded.last_at if deterministic else 0.0)
    clock: Callable[[], float] = script_clock if deterministic else WallClock()
    if setup.simulate:
        clock = trio.current_time  # of the virtual clock, which also moves with the simulated tools
    client = choice.client(CallIds(loaded.call_ids), settings.idle_timeout, script_clock.set)
    spill = _spill(setup, session)
    tools, stand_in = _simulation(setup, choice) if setup.simulate else (Toolset(builtin_tools(reads_only)), None)
    instructions = load_instructions(setup.cwd)
    keep = frozenset(settings.env_keep)
    real = RealProcesses(drop_env=lambda name: is_provider_key(name) and name not in keep)
    processes = stand_in or real
    permissions = Permissions(
        Policy(settings.mode, settings.rules, analyse), RuleStore(setup.home, setup.rules_of or setup.cwd).add
    )
    workspace = Workspace.at(setup.cwd, (*setup.extra, spill))
    services = Services(
        model=client,
        tools=tools,
        hooks=hooks_of(setup, permissions, lambda: (hook_facts(setup, choice, session, workspace), processes, clock)),
        permissions=permissions,
        snapshots=file_history(setup, session),
        workspace=workspace,
        processes=processes,
        seen=SeenFiles(),
        spill=spill,
        request=requests(choice.name, _prompt(setup, instructions.text), tools),
        retry=_retry(settings, setup.seed if deterministic else None),
        clock=clock,
    )
    bus = Bus(clock, loaded.last_seq)
    bus.subscribe(session.journal.append)
    agent = Agent(
        services,
        Conversation(loaded.history),
        bus,
        IdSource(session.id, loaded.runs),
        _options(setup, choice),
    )
    return App(
        setup,
        choice,
        session,
        agent,
        processes,
        Ladder(first=lambda name: _stop(agent, name), second=processes.hurry),
        tools,
        (*settings.warnings, *session.notices, *instructions.notices, *_unheld(settings, choice)),
        deterministic,
        client,
    )


def _simulation(setup: Setup, choice: Choice) -> tuple[Toolset, Processes]:
    """Return tools over a world in memory, and what takes the place of processes."""
    # What follows takes 12 ms to import, and hardly any run is a simulation.
    from novacode.tools.simulated import simulated_tools
    from novacode.workspace.simulated import NoProcesses, SimulatedWorld

    return Toolset(simulated_tools(SimulatedWorld(setup.cwd, choice.simulation), reads_only)), NoProcesses()


def _options(setup: Setup, choice: Choice) -> AgentOptions:
    settings = setup.settings

    def cost(usage: Usage) -> float | None:
        return None if choice.scripted else cost_usd(choice.label, usage)

    return AgentOptions(
        limits=Limits(
            max_turns=settings.max_turns,
            max_seconds=settings.max_seconds,
            max_output_tokens=settings.max_output_tokens,
            max_budget_usd=settings.max_budget_usd,
        ),
        overlap=Overlap(settings.overlap),
        somebody=setup.somebody,
        model=choice.label,
        cost=cost,
        window=settings.context_window or (None if choice.scripted else context_window(choice.label)),
    )


def _unheld(settings: Settings, choice: Choice) -> tuple[str, ...]:
    """Say which limit cannot be held."""
    if settings.max_budget_usd is None or choice.scripted or cost_usd(choice.label, Usage(1, 1)) is not None:
        return ()
    return (f"the price of {choice.label} is not known, so --max-budget-usd cannot be held",)


def _stop(agent: Agent, signal_name: str) -> None:
    agent.cancel(signal_name)


def _prompt(setup: Setup, instructions: str) -> Prompt:
    settings = setup.settings
    return Prompt(str(setup.cwd), sys.platform, instructions, settings.system_prompt, settings.append_system_prompt)


def _retry(settings: Settings, seed: int | None) -> Retry:
    chance = random.Random(seed)
    limits = RetryLimits(settings.retries, settings.stream_retries)

    def retry(stage: Stage, times: int, failure: Failure) -> Wait | GiveUp:
        return decide(stage, times, failure, chance.random(), limits)

    return retry


def _spill(setup: Setup, session: Session) -> Path:
    """Return where output that is too long for a result goes; made when the first of it comes."""
    if session.path is not None and os.access(setup.home, os.W_OK):
        return setup.home / "spill" / session.id
    return Path(tempfile.gettempdir()) / f"novacode-{os.getuid()}" / session.id
