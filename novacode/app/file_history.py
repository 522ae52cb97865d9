"""The file history of a session, from settings; and where it is found again by `novacode rewind`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from novacode.sessions.store import Session, project_key
from novacode.workspace.base import NoSnapshots, Snapshots
from novacode.workspace.listing import Bounds
from novacode.workspace.pruning import Keep
from novacode.workspace.snapshots import FileHistory, Keeping, SwitchedOff

if TYPE_CHECKING:
    from novacode.app.settings import Settings
    from novacode.app.setup import Setup

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
    settings, header = setup.settings, session.loaded.header
    if session.path is None or setup.simulate:
        return NoSnapshots()
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
    return Keep(settings.snapshots_keep_days, settings.snapshots_keep_mb)
