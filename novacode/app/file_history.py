"""The file history of a session, from settings; and where it is found again by `novacode rewind`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from novacode.sessions.store import Session, project_key
from novacode.values.events import FilesChanged, Notice
from novacode.values.ids import CallId
from novacode.workspace.base import NoSnapshots, Snapshots

if TYPE_CHECKING:
    from novacode.app.settings import Settings
    from novacode.app.setup import Setup
    from novacode.workspace.pruning import Keep

__all__ = ["file_history", "history_folder", "keep_of"]

_MB = 1_000_000


def history_folder(home: Path, cwd: Path) -> Path:
    """Return the store for sessions begun in `cwd`: one for all of them, so that nothing is kept twice."""
    return home / "snapshots" / project_key(cwd)


def file_history(setup: Setup, session: Session) -> Snapshots:
    """Return what keeps the files of `session`.

    A session that is kept nowhere has no file history either: there would be nothing to find it by. Nor has a
    simulation, which changes no file.
    """
    if session.path is None or setup.simulate:
        return NoSnapshots()
    return _WhenNeeded(lambda: _real(setup, session))


class _WhenNeeded:
    """Implements `Snapshots` with what `make` returns, made for the first call that may change anything.

    Nine modules belong to it, 12 ms of a start, and many a run reads and answers only.
    """

    def __init__(self, make: Callable[[], Snapshots]) -> None:
        self._make = make
        self._made: Snapshots | None = None

    async def take(self, call: CallId, paths: Sequence[Path]) -> Sequence[Notice]:
        """Keep the state before `call`; see `Snapshots.take`."""
        if not paths:
            return ()
        self._made = self._made or self._make()
        return await self._made.take(call, paths)

    async def record(self, call: CallId, name: str) -> FilesChanged | None:
        """Record what `call` has changed; see `Snapshots.record`."""
        return await self._made.record(call, name) if self._made is not None else None

    def close(self, call: CallId) -> None:
        """Forget that `call` was taken."""
        if self._made is not None:
            self._made.close(call)


def _real(setup: Setup, session: Session) -> Snapshots:
    from novacode.workspace.listing import Bounds
    from novacode.workspace.snapshots import FileHistory, Keeping, SwitchedOff

    settings, header = setup.settings, session.loaded.header
    if not settings.snapshots_enabled:
        return SwitchedOff()
    begun_in = Path(header.cwd) if header and header.cwd else setup.cwd
    bounds = Bounds(
        settings.snapshots_max_file_mb * _MB,
        settings.snapshots_max_files,
        settings.snapshots_max_total_mb * _MB,
        settings.snapshots_ignored,
    )
    roots = tuple(path.resolve() for path in (setup.cwd, *setup.extra))
    folder = history_folder(setup.home, begun_in)
    # A session id can be used again (`s-deterministic`); what its log holds then is another session's past.
    fresh = not session.loaded.runs
    apart = (setup.home.resolve(),)
    return FileHistory(Keeping(folder, session.id, roots, bounds, apart, fresh, keep=keep_of(settings)))


def keep_of(settings: Settings) -> Keep:
    """Return how long file history is kept, and how much of it."""
    from novacode.workspace.pruning import Keep  # lazy: see `_WhenNeeded`

    return Keep(settings.snapshots_keep_days, settings.snapshots_keep_mb)
