"""Where output goes that is too long for a result, and how long it stays."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from novacode.sessions.store import Session, project_key

__all__ = ["Removed", "SpillPlace", "prune_spill"]

_DAY = 86_400


@attrs.frozen
class SpillPlace:
    """The folder of one session for such output; it is made when the first of it comes.

    `passing`: of a session that nothing is kept of, this is not kept either. `anew`: the session has an id that others
    had before it, as scripted ones do; what these left would change the names, and with them what the model is told.
    """

    folder: Path
    passing: bool = False
    anew: bool = False

    @classmethod
    def of(cls, session: Session, home: Path, cwd: Path, *, passing: bool, fixed_id: bool) -> SpillPlace:
        """Return the place of `session`: below `home` where it is kept there, else a temporary one.

        `fixed_id` tells that every session of its kind has its id.
        """
        if session.path is not None and os.access(home, os.W_OK):
            base = home / "spill" / session.path.parent.name
        else:
            base = _temporary() / project_key(cwd)
        # What is thrown away at the end is this process's alone: others may have the same id at the same time.
        name = f"{session.id}-{os.getpid()}" if passing else session.id
        return cls((base / name).resolve(), passing, anew=fixed_id and session.loaded.header is None)

    @contextmanager
    def used(self) -> Iterator[Path]:
        """Have the folder as it should be found, and leave it as it should be left. Blocks while it removes."""
        if self.anew:
            shutil.rmtree(self.folder, ignore_errors=True)
        try:
            yield self.folder
        finally:
            if self.passing:
                shutil.rmtree(self.folder, ignore_errors=True)


@attrs.frozen
class Removed:
    """Long outputs that were removed: of how many sessions, and how many bytes."""

    sessions: int = 0
    bytes: int = 0


def prune_spill(home: Path, days: int, now: float) -> Removed:
    """Remove long outputs of sessions that have had none for so many `days`; 0 removes nothing. Blocks."""
    sessions = size = 0
    for folder in (home / "spill").glob("*/*") if days else ():
        try:
            if not folder.is_dir() or folder.is_symlink() or folder.stat().st_mtime >= now - days * _DAY:
                continue
            found = sum(path.lstat().st_size for path in folder.iterdir())
            shutil.rmtree(folder)
        except OSError:
            continue  # the next time it may go
        sessions, size = sessions + 1, size + found
    return Removed(sessions, size)


def _temporary() -> Path:
    """Return a folder for temporary things that is ours alone; made now, so that nobody else can be first.

    Everybody may write where it is, so a link there or a folder of somebody else is not used: what is written would be
    theirs to read, or to choose the place of. Where not even a new one can be made, writing into it will tell why.
    """
    usual = Path(tempfile.gettempdir()) / f"novacode-{os.getuid()}"
    try:
        with suppress(FileExistsError):
            usual.mkdir(mode=0o700)
        return usual if _made_ours_alone(usual) else Path(tempfile.mkdtemp(prefix=f"{usual.name}-"))
    except OSError:
        return usual


def _made_ours_alone(folder: Path) -> bool:
    """Whether `folder` is no link and nobody else's; nobody else can then read in it any more."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(fd).st_uid != os.getuid():
            return False
        os.fchmod(fd, 0o700)
        return True
    finally:
        os.close(fd)
