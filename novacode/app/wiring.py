"""The object graph of one session, built in one place from settings. No globals, nothing looked up later."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from novacode import grace
from novacode.app.choosing import Choice, choose
from novacode.app.clocks import ScriptClock, WallClock
from novacode.app.file_history import file_history
from novacode.app.hooking import hook_facts, hooks_of
from novacode.app.instructions import load_instructions
from novacode.app.interrupts import Ladder
from novacode.app.limiting import agent_options, prompt_of, retry_of, unheld
from novacode.app.mcp_servers import McpSession, servers_of
from novacode.app.rule_store import RuleStore
from novacode.app.sandboxing import sandbox_of
from novacode.app.settings import Settings
from novacode.app.setup import Setup
from novacode.app.shell_lines import analyse, reads_only
from novacode.app.spilling import SpillPlace
from novacode.app.tape_seam import NoTape, Surroundings, Taping
from novacode.authority.permissions import Permissions
from novacode.authority.policy import Policy
from novacode.engine.agent import Agent, AgentOptions
from novacode.engine.bus import Bus
from novacode.engine.conversation import Conversation
from novacode.engine.kit import Services
from novacode.engine.prompt import requests
from novacode.models.client import ModelClient
from novacode.sessions.secrets import Secrets
from novacode.sessions.store import Session, Store, memory_session
from novacode.tools.base import SeenFiles
from novacode.tools.builtin import builtin_tools
from novacode.tools.toolset import Toolset
from novacode.values.events import Stamped, TurnCommitted
from novacode.values.ids import CallIds, IdSource, SessionId
from novacode.workspace.base import NoSnapshots, Processes
from novacode.workspace.environment import is_provider_key
from novacode.workspace.paths import Workspace
from novacode.workspace.processes import RealProcesses

if TYPE_CHECKING:
    from novacode.workspace.sandbox import Sandbox

__all__ = ["App", "open_app"]

_DETERMINISTIC_ID = SessionId("s-deterministic")
_NOTHING_EARLIER = "no session was begun in this folder before, so there is none to go on with: this is a new one"


@attrs.frozen(eq=False, repr=False)
class App:
    """A session, ready to run. `notices` are for the person who opened it; `sandbox` is what its commands run in."""

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
    _taping: Taping = attrs.field(factory=NoTape)
    _dirty: list[trio.Event] = attrs.field(factory=lambda: [trio.Event()])
    sandbox: Sandbox | None = None
    mcp: McpSession = attrs.field(factory=McpSession)

    @property
    def bus(self) -> Bus:
        """Where faces subscribe."""
        return self.agent.bus

    @property
    def folder(self) -> Path:
        """Where the session works; for one that is played from a tape, where it worked."""
        return self._taping.folder or self.setup.cwd

    @property
    def unreal(self) -> bool:
        """Whether nothing real is run, so that calls take what a script or a tape says."""
        return self.setup.simulate or self._taping.everything

    def leftovers(self) -> tuple[str, ...]:
        """Return, for people, what is left on the tape that was played."""
        return self._taping.leftovers()

    async def background(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive signals and do the `upkeep`, until cancelled; started once signals are received."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.upkeep)
            await nursery.start(self.ladder.listen)
            task_status.started()

    async def upkeep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Bring the journal to the disk, and the tape, and keep the MCP servers, until cancelled.

        Alone where somebody else receives signals.
        """
        self.bus.subscribe(self._note_turn)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._flush_turns)
            nursery.start_soon(self.mcp.serve)
            nursery.start_soon(self._taping.background, self.agent)
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
    async with sandbox_of(setup) as sandbox, _opened(setup, choice, sandbox, deterministic=deterministic) as app:
        yield app


@asynccontextmanager
async def _opened(setup: Setup, choice: Choice, sandbox: Sandbox | None, *, deterministic: bool) -> AsyncIterator[App]:
    session = _session(setup, deterministic=deterministic)
    try:
        passing = not setup.session.keep
        place = SpillPlace.of(session, setup.home, setup.cwd, passing=passing, fixed_id=deterministic)
        with place.used() as spill:
            app = _assemble(setup, choice, session, spill, sandbox, deterministic=deterministic)
            try:
                yield app
            finally:
                await _close(app)
    finally:
        session.close()


async def _close(app: App) -> None:
    await _say_goodbye(app)
    app._taping.close()
    with grace.cleanup(grace.DEFAULT.wire):
        await app._client.aclose()
    with grace.cleanup(grace.DEFAULT.journal):
        await app.session.journal.flush()


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
        return store.fork(wanted, setup.cwd) if wish.fork else store.open(wanted, setup.cwd)
    if not wish.keep:
        return memory_session(_DETERMINISTIC_ID if deterministic else SessionId("s-unkept"))
    made = store.replace(_DETERMINISTIC_ID, setup.cwd) if deterministic else store.create(setup.cwd)
    return attrs.evolve(made, notices=(*made.notices, _NOTHING_EARLIER)) if wish.latest else made


def _secrets(setup: Setup) -> Secrets:
    """Return what no session file may hold: the keys of providers, and what the settings name."""
    return Secrets((*filter(is_provider_key, setup.environ), *setup.settings.secrets), setup.environ)


def _assemble(
    setup: Setup, choice: Choice, session: Session, spill: Path, sandbox: Sandbox | None, *, deterministic: bool
) -> App:
    settings, loaded = setup.settings, session.loaded
    script_clock = ScriptClock()
    script_clock.set(loaded.last_at if deterministic else 0.0)
    clock: Callable[[], float] = script_clock if deterministic else WallClock()
    if setup.simulate:
        clock = trio.current_time  # of the virtual clock, which also moves with the simulated tools
    taping = _taping(setup, choice, spill, clock)
    clock = taping.clock(clock, script_clock)
    client = choice.client(
        CallIds(loaded.call_ids),
        settings.idle_timeout,
        script_clock.set,
        lambda make: taping.wire(make, script_clock.set),
    )
    tools, stand_in = _world(setup, choice, unreal=taping.everything)
    instructions = load_instructions(setup.cwd)
    processes = stand_in or _processes(settings, sandbox and sandbox.with_spill(spill))
    mcp = McpSession() if stand_in else servers_of(settings, processes, setup.cwd, setup.environ, tools)
    permissions = Permissions(
        Policy(settings.mode, settings.rules, analyse), RuleStore(setup.home, setup.rules_of or setup.cwd).add
    )
    workspace = Workspace.at(taping.folder or setup.cwd, (*setup.extra, spill), spill if deterministic else None)
    services = Services(
        model=taping.model(client),
        tools=taping.tools(tools),
        hooks=taping.hooks(
            lambda: hooks_of(
                setup, permissions, lambda: (hook_facts(setup, choice, session, workspace), processes, clock)
            )
        ),
        permissions=permissions,
        snapshots=NoSnapshots() if taping.everything else file_history(setup, session),
        workspace=workspace,
        processes=processes,
        seen=SeenFiles(),
        spill=spill,
        request=requests(choice.name, prompt_of(setup, instructions.text), tools),
        retry=taping.retry(retry_of(settings, setup.seed if deterministic else None)),
        clock=clock,
        ready=mcp.ready,
    )
    agent = _agent(services, session, agent_options(setup, choice, somebody=setup.somebody or taping.somebody))
    taping.attach(agent)
    return App(
        setup,
        choice,
        session,
        agent,
        processes,
        Ladder(first=lambda name: _stop(agent, name), second=processes.hurry),
        tools,
        (*settings.warnings, *session.notices, *instructions.notices, *unheld(settings, choice), *_confined(sandbox)),
        deterministic,
        client,
        taping,
        sandbox=sandbox,
        mcp=mcp,
    )


def _agent(services: Services, session: Session, options: AgentOptions) -> Agent:
    """Return the agent that goes on with `session`, whose journal sees each event before anybody else."""
    loaded = session.loaded
    bus = Bus(services.clock, loaded.last_seq)
    bus.subscribe(session.journal.append)
    return Agent(services, Conversation(loaded.history), bus, IdSource(session.id, loaded.runs), options)


def _processes(settings: Settings, sandbox: Sandbox | None) -> Processes:
    keep = frozenset(settings.env_keep)
    return RealProcesses(drop_env=lambda name: is_provider_key(name) and name not in keep, sandbox=sandbox)


def _confined(sandbox: Sandbox | None) -> tuple[str, ...]:
    return () if sandbox is None else (sandbox.summary,)


def _taping(setup: Setup, choice: Choice, spill: Path, clock: Callable[[], float]) -> Taping:
    """Return what records or replays the session."""
    if setup.record is None and setup.replay is None:
        return NoTape()
    from novacode.app.taping import taping_of  # hardly any run has a tape

    own = (clock(), setup.seed, setup.somebody, _secrets(setup).text)
    return taping_of(setup.record, setup.replay, Surroundings(choice, setup.cwd, spill, *own))


def _world(setup: Setup, choice: Choice, *, unreal: bool) -> tuple[Toolset, Processes | None]:
    """Return the tools, and what takes the place of processes where none may be started: `unreal`, or a simulation.

    A simulation has tools over a world in memory.
    """
    if not (setup.simulate or unreal):
        return Toolset(builtin_tools(reads_only)), None
    # What follows takes 12 ms to import, and hardly any run needs it.
    from novacode.workspace.simulated import NoProcesses, SimulatedWorld

    if unreal:
        return Toolset(builtin_tools(reads_only)), NoProcesses()
    from novacode.tools.simulated import simulated_tools

    return Toolset(simulated_tools(SimulatedWorld(setup.cwd, choice.simulation), reads_only)), NoProcesses()


def _stop(agent: Agent, signal_name: str) -> None:
    agent.cancel(signal_name)
