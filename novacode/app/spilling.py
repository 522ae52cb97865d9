"""Where output goes that is too long for a result, and how long it stays."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from novacode.sessions.store import Session, project_key

__all__ = ["SpillPlace"]


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
            base = Path(tempfile.gettempdir()) / f"novacode-{os.getuid()}" / project_key(cwd)
        return cls(base / session.id, passing, anew=fixed_id and session.loaded.header is None)

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
