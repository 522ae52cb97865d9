"""Work that outlives the call that started it, and never its run: a development server, a long build.

Each job is one task in a nursery of the run, so it ends when the run does, by the same rules as a call that is
cancelled: what it started has stopped before anybody goes on. What it does is handed in as a function; for a command
that is `Processes.run`, so whoever implements that protocol has jobs, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from novacode.errors import ToolFailed
from novacode.values.clip import Clip
from novacode.workspace.base import Exit
from novacode.workspace.spill import Capture

__all__ = ["Job", "Jobs", "Work"]

_OUTPUT = 30_000  # bytes of what is new that one look gives
_MOST = 20  # jobs of one run that are alive at a time

Work = Callable[[Callable[[bytes], None]], Awaitable[Exit]]
"""Does the work, gives its output to the function it is handed, and stops everything it started when cancelled."""


@attrs.define(eq=False, repr=False)
class Job:
    """One job. `ended` is set when it has, whatever the way; `exit` or `problem` says how, neither that it was stopped.

    `asked` is whether somebody has asked it to stop, and not just the end of its run.
    """

    name: str
    title: str
    exit: Exit | None = None
    problem: str = ""
    asked: bool = False
    ended: trio.Event = attrs.field(factory=trio.Event)
    news: trio.Event = attrs.field(factory=trio.Event)
    _unread: Clip = attrs.field(factory=lambda: Clip(_OUTPUT))
    _all: Capture | None = None
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def read(self) -> str:
        """Return what it has said since this was last asked: head and tail where that is much."""
        text = self._unread.text(self._where())
        self._unread = Clip(_OUTPUT)
        if not self.ended.is_set():
            self.news = trio.Event()
        return text

    def stop(self) -> None:
        """Ask it to stop. It has when `ended` is set."""
        self.asked = self.asked or not self.ended.is_set()
        self._scope.cancel()

    @property
    def cut_off(self) -> bool:
        """Whether the end of its run has stopped it."""
        return self.ended.is_set() and self.exit is None and not self.problem and not self.asked

    @property
    def state(self) -> str:
        """How it is, in words."""
        if not self.ended.is_set():
            return "being stopped" if self.asked else "running"
        if self.problem:
            return f"failed: {self.problem}"
        if self.exit is None:
            return "stopped"
        left = f"; pid {', '.join(map(str, self.exit.background))} still running" if self.exit.background else ""
        return f"ended with exit code {self.exit.code}{left}"

    def _take(self, data: bytes) -> None:
        self._unread.feed(data)
        if self._all is not None:
            self._all.feed(data)
        self.news.set()

    def _where(self) -> str:
        return f"all of it is in {self._all.shown}" if self._all is not None and self._all.shown else ""

    async def _do(self, work: Work) -> None:
        try:
            with self._scope:
                self.exit = await work(self._take)
        except ToolFailed as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001 - like a tool's: it must not end the run
            self.problem = f"{type(error).__name__}: {error}"
        finally:
            if self._all is not None:
                self._all.close()
            self.ended.set()
            self.news.set()


class Jobs:
    """The jobs of one run. `prefix` begins their names, so that no two of a session have the same one."""

    def __init__(self, prefix: str = "job_") -> None:
        self._prefix = prefix
        self._jobs: dict[str, Job] = {}
        self._nursery: trio.Nursery | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Have jobs while the body runs. When it is over, in whatever way, all of them have been stopped."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                yield
            finally:
                self._nursery = None
                nursery.cancel_scope.cancel()

    def start(self, title: str, work: Work, spill: Path, show: Callable[[Path], str] = str) -> Job:
        """Start a job. Synchronous: its task begins to run at the next checkpoint. Raises `ToolFailed`.

        Where its output is long the whole of it is in `spill`, in a file that is called what `show` says.
        """
        if self._nursery is None:
            raise ToolFailed("there is no run that could have a background job. Nothing was started.")
        if len(self.running) >= _MOST:
            raise ToolFailed(f"{_MOST} background jobs are running; stop one first. Nothing was started.")
        name = f"{self._prefix}{len(self._jobs) + 1}"
        job = self._jobs[name] = Job(name, title, all=Capture(_OUTPUT, spill, f"{name}.txt", show))
        self._nursery.start_soon(job._do, work, name=name)
        return job

    def find(self, name: str) -> Job | None:
        """Return the job called `name`."""
        return self._jobs.get(name)

    def stop(self, name: str) -> bool:
        """Ask the job called `name` to stop; whether there is one that was running."""
        job = self._jobs.get(name)
        if job is None or job.ended.is_set():
            return False
        job.stop()
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all jobs there were, the oldest first."""
        return tuple(self._jobs)

    @property
    def cut_off(self) -> tuple[Job, ...]:
        """Those that the end of the run has stopped; known when `open` is over."""
        return tuple(job for job in self._jobs.values() if job.cut_off)

    @property
    def running(self) -> tuple[Job, ...]:
        """Those that have not ended."""
        return tuple(job for job in self._jobs.values() if not job.ended.is_set())
