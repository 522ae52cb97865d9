"""One session as the remote has it: who watches it, and, from the first prompt on, the opened session itself.

Watching needs no lock: what is on record is read. The session is opened, and so held against other processes, when
something is to be done in it, and given back some minutes after the last run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import trio

from novacode.app.wiring import App, open_app
from novacode.authority.modes import Mode
from novacode.engine.limits import Limits
from novacode.errors import NovaError
from novacode.remote.audience import Audience
from novacode.remote.missed import last_seq
from novacode.remote.questions import Questions
from novacode.remote.states import Refusal, Shared, Stopping, room_state, stopping_message
from novacode.remote.watcher import Watcher
from novacode.values import events
from novacode.values.events import RunEnded, RunEvent, Stamped
from novacode.values.ids import CallId, RunId
from novacode.values.parts import JSON

__all__ = ["Room"]

_LOOK = 0.25


class Room:
    """A session. Everything but `prompt`, `compact`, `opened` and `give_back` is synchronous."""

    def __init__(self, shared: Shared, session: str, path: Path | None, last_seq: int) -> None:
        self.session = session
        self.path = path
        self.audience = Audience(session, last_seq)
        self.app: App | None = None
        self.run_id = ""
        self.prompt_text = ""
        self.stopping: Stopping | None = None
        self.questions = Questions()
        self.calls: dict[str, CallId] = {}
        """The calls of the run under way."""
        self.mode: Mode | None = None
        self.limits: Limits | None = None
        self.cost_usd = 0.0
        self._shared = shared
        self._lock = trio.Lock()
        self._nursery: trio.Nursery | None = None
        self._touched = trio.Event()
        self._leave = False
        self._gone = trio.Event()
        self._gone.set()
        self._over = trio.Event()

    @property
    def unused(self) -> bool:
        """Whether nobody watches it and nothing is open."""
        return self.app is None and not self.audience.watchers and self._gone.is_set()

    # --- who watches ------------------------------------------------------------------------------------------

    def watch(self, watcher: Watcher) -> None:
        """Send everything that happens here to `watcher`, too."""
        self.audience.watchers.append(watcher)
        self.tell_state()

    def unwatch(self, watcher: Watcher) -> None:
        """Send it no more. Idempotent."""
        if watcher in self.audience.watchers:
            self.audience.watchers.remove(watcher)
            self.tell_state()

    def tell_state(self) -> None:
        """Send everybody the state."""
        if self.audience.watchers:
            self.audience.tell(room_state(self, self._shared.setup_of(self.session)))

    def tell_approvals(self) -> None:
        """Send everybody the open questions."""
        if self.audience.watchers:
            self.audience.tell({"type": "approvals", "session": self.session, "items": self.approvals()})

    def approvals(self) -> list[JSON]:
        """Return the open questions of the active run; none once it is being stopped."""
        run = None if self.app is None else self.app.agent.active
        return [] if run is None or self.app is None else self.questions.items(run, self.app.setup)

    # --- what happens -----------------------------------------------------------------------------------------

    def _take(self, stamped: Stamped) -> None:
        """Take an event of the session; subscribed to its bus."""
        self.audience.take(stamped)
        self._see(stamped.event)

    def _see(self, event: RunEvent) -> None:
        match event:
            case events.RunBegan(prompt=prompt):
                self.prompt_text = prompt.text
                self.tell_state()
            case events.RunEnded(cost_usd=cost):
                self.cost_usd += cost or 0.0
            case events.CallReady(call=call):
                self.calls[call.id] = call.id
            case events.ApprovalAsked():
                self.tell_approvals()
            case events.ApprovalClosed():
                self.questions.closed(event)
                self.tell_approvals()
            case _:
                pass

    def refresh(self) -> None:
        """Take note of what others have put on record since."""
        if self.app is None and self.path is not None:
            self.audience.went_on_to(last_seq(self.path))

    # --- opening and giving back --------------------------------------------------------------------------------

    async def opened(self) -> App:
        """Return the opened session, opening it first where that is needed. Raises `NovaError`, and `Refusal`."""
        self._shared.must_be_open()
        async with self._lock:
            if self.app is None:
                await self._gone.wait()  # it may just be closing, and has its lock until then
                await self._shared.nursery.start(self._hold)
            assert self.app is not None
            self._touched.set()
            return self.app

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """Close the session for the time of the body, in which nobody here opens it. Raises `Refusal` during a run."""
        async with self._lock:
            self._must_be_quiet()
            self._leave = True
            self._touched.set()
            await self._gone.wait()
            yield

    def _must_be_quiet(self) -> None:
        if self.run_id:
            raise Refusal("busy", f"run {self.run_id} is still under way; wait for its end or stop it first")

    async def quiet(self) -> None:
        """Wait until no run is under way."""
        while self.run_id:
            await self._over.wait()

    async def _hold(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have the session open until it is not used any more. A bug after it was opened does not end the server."""
        self._gone = trio.Event()
        started = False
        try:
            async with open_app(self._shared.setup_of(self.session)) as app, trio.open_nursery() as nursery:
                await nursery.start(app.upkeep)
                self._attach(app, nursery)
                nursery.start_soon(self.audience.flush_soon)
                started = True
                task_status.started()
                await self._until_unused()
                self._detach()
                nursery.cancel_scope.cancel()
        except Exception as error:
            if not started:
                raise
            self._shared.bug(error)
        finally:
            self._detach()
            self._gone.set()
        self.tell_state()

    def _attach(self, app: App, nursery: trio.Nursery) -> None:
        self.app, self._nursery, self._leave = app, nursery, False
        self.path = app.session.path or self.path
        self.audience.went_on_to(app.bus.seq)  # elsewhere; or its last run had no end, and has one now
        self.cost_usd = app.session.loaded.cost_usd
        if self.limits is not None:
            self.set_limits(self.limits)
        if self.mode is not None:
            self.set_mode(self.mode)
        app.bus.subscribe(self._take)
        self.tell_state()

    def _detach(self) -> None:
        self.audience.flush()
        self.app, self._nursery = None, None

    async def _until_unused(self) -> None:
        while not self._leave:
            self._touched = trio.Event()
            with trio.move_on_after(self._shared.unused) as waited:
                await self._touched.wait()
            if waited.cancelled_caught and not self.run_id:
                return

    # --- runs ----------------------------------------------------------------------------------------------------

    async def prompt(self, text: str) -> str:
        """Start a run and return its id. Raises `NovaError`, and `Refusal` while another one is under way."""
        app = await self.opened()
        return await self._start(partial(app.agent.run, text))

    async def compact(self, wanted: str) -> str:
        """Start to shorten the conversation; as `prompt`."""
        app = await self.opened()
        return await self._start(partial(app.agent.compact, wanted))

    async def _start(self, work: Callable[[], Awaitable[RunEnded]]) -> str:
        if self._nursery is None:
            raise Refusal("busy", "the session is just being closed; try again")
        self._must_be_quiet()
        self._shared.must_be_open()
        self._over = trio.Event()
        self.run_id = "a new one"  # taken at once: nothing may come between the question and the answer
        run_id: str = await self._nursery.start(self._drive, work)
        return run_id

    async def _drive(
        self, work: Callable[[], Awaitable[RunEnded]], task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Do a run. What it raises before it has an id is for whoever started it, what comes later for everybody."""
        begun = False

        def began(run_id: RunId) -> None:
            nonlocal begun
            begun = True
            self.run_id, self.prompt_text, self.questions, self.calls = run_id, "", Questions(), {}
            task_status.started(run_id)

        assert self.app is not None
        self.app.agent.on_run = began
        try:
            await work()
        except NovaError as error:
            if not begun:
                raise
            self.audience.tell({"type": "error", "code": "failed", "text": str(error), "fatal": False})
        finally:
            self.run_id, self.stopping = "", None
            self._over.set()
            self._touched.set()
            self.tell_approvals()
            self.tell_state()

    def stop(self, reason: str, *, hurry: bool = False) -> None:
        """Ask the active run to stop, and tell everybody what it waits for until it is over."""
        app, nursery = self.app, self._nursery
        if app is None or nursery is None or app.agent.active is None:
            return
        if self.stopping is None:
            self.stopping = Stopping(app.agent.active.id, reason, trio.current_time())
            app.agent.cancel(reason)
            nursery.start_soon(self._tell_stopping, app, self.stopping)
        if hurry:
            self.stopping.hurried = True
            app.processes.hurry()
        self._say_stopping(app, self.stopping)
        self.tell_state()

    async def _tell_stopping(self, app: App, stopping: Stopping) -> None:
        while self.stopping is stopping:
            await trio.sleep(_LOOK)
            now = (*app.processes.waiting_for(), stopping.hurried)
            if self.stopping is stopping and now != stopping.told:
                self._say_stopping(app, stopping)

    def _say_stopping(self, app: App, stopping: Stopping) -> None:
        waiting = app.processes.waiting_for()
        stopping.told = (*waiting, stopping.hurried)
        self.audience.tell(stopping_message(self.session, stopping, waiting))

    def set_mode(self, mode: Mode) -> None:
        """Have calls that are authorised from now on be judged by `mode`."""
        self.mode = mode
        if self.app is not None:
            self.app.agent.services.permissions.set_mode(mode)

    def set_limits(self, limits: Limits) -> None:
        """Have later runs go so far."""
        self.limits = limits
        if self.app is not None:
            agent = self.app.agent
            agent.options = attrs.evolve(agent.options, limits=limits)
