"""What the floors above see of processes and snapshots: the seams, without the machinery behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs

from novacode.values.events import FilesChanged, Notice, Reaped
from novacode.values.ids import CallId

if TYPE_CHECKING:
    from trio.abc import SendStream

__all__ = ["Command", "Dialogue", "Exit", "NoSnapshots", "Processes", "Snapshots"]


@attrs.frozen(eq=False, repr=False)
class Dialogue:
    """A process that is talked to while it runs. `write` has its stdin, which is closed when `write` returns.

    `closed` is called, synchronously, when nobody holds its stdout any more, alive as it may be. Before it is sent a
    signal its stdin is closed, and it has `patience` seconds to end by itself.
    """

    write: Callable[[SendStream], Awaitable[None]]
    closed: Callable[[], None]
    patience: float


@attrs.frozen(eq=False, repr=False)
class Command:
    """A program to run: `argv` as it is, never through a shell unless `argv` names one.

    `marker` goes into the environment of the process and so of everything it starts; it is how a daemon that left
    its session is found again. `env` is added to a cleaned copy of our own environment.

    It runs in the sandbox where there is one, unless it is not `confined`: that is for programs a person has chosen,
    and for searches of our own, never for what a model writes.
    """

    argv: Sequence[str]
    cwd: Path
    marker: CallId
    env: Mapping[str, str] = attrs.field(factory=dict)
    stdin: bytes = b""
    confined: bool = True
    dialogue: Dialogue | None = None


@attrs.frozen
class Exit:
    """How a process ended. `code` is its exit code, or minus the signal that killed it, as in `subprocess`.

    `background` are the pids it left running: alive until `Processes.sweep`. `confined` says that it ran in a sandbox:
    what it left running has ended with it, and a signal that killed it shows as 128 and its number, as in a shell.
    """

    code: int
    background: tuple[int, ...] = ()
    confined: bool = False


class Processes(Protocol):
    """Spawns, pumps and reaps. The only thing that signals anything."""

    async def run(
        self,
        command: Command,
        output: Callable[[bytes], None],
        errors: Callable[[bytes], None] | None = None,
    ) -> Exit:
        """Run `command` to its end; `output` gets stdout and stderr, in the order they came, synchronously.

        With `errors`, stderr goes there instead, through a pipe of its own.

        Ends when the process has: a background grandchild that holds the pipe does not hold the call (its output is
        taken for a moment longer, then it is left to `sweep`). Raises `ToolFailed` where the program cannot be
        started. Cancelling sends SIGTERM to all that belongs to the command, then SIGKILL, waits until everything is
        reaped (bounded by the grace), and only then lets `Cancelled` through.
        """
        ...

    async def sweep(self) -> None:
        """Stop and reap everything any command has left running. Shielded and bounded; never raises for a survivor."""
        ...

    def hurry(self) -> None:
        """Skip what is left of every grace that is under way: SIGKILL now. Synchronous; for the second Ctrl-C."""
        ...

    def waiting_for(self) -> tuple[str, ...]:
        """Name what is still being reaped, for people: pid and command line."""
        ...

    @property
    def reaped(self) -> Reaped:
        """What stopping has taken so far: processes signalled, escalated, surviving. `tasks` and `ms` are 0 here."""
        ...


class Snapshots(Protocol):
    """Keeps what a call may change, so that it can be taken back. Cancellation is not rollback: this is."""

    async def take(self, call: CallId, paths: Sequence[Path]) -> Sequence[Notice]:
        """Keep the state of `paths` before `call` runs: what it may write, a folder standing for all below it.

        The root folder stands for the whole workspace, as far as bounded; without a path nothing is kept and nothing
        is done. Returns what a person should know: the cost, what is not covered. Never raises for what cannot be
        kept; cancelling stops it at once.
        """
        ...

    async def record(self, call: CallId, name: str) -> FilesChanged | None:
        """Note what `call`, of the tool `name`, has changed, whatever became of it; `None` where that is nothing."""
        ...

    def close(self, call: CallId) -> None:
        """Nothing more will be recorded for `call`. Synchronous; harmless for one that was never taken."""
        ...


class NoSnapshots:
    """Keeps nothing."""

    async def take(self, call: CallId, paths: Sequence[Path]) -> Sequence[Notice]:
        """Do nothing; not a checkpoint."""
        return ()

    async def record(self, call: CallId, name: str) -> FilesChanged | None:
        """Do nothing; not a checkpoint."""
        return None

    def close(self, call: CallId) -> None:
        """Do nothing."""
