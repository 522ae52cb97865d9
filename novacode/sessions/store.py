"""Where sessions live: `<home>/sessions/<project>/<session>.jsonl`, one folder a project, one file a session.

One process writes a session at a time. The lock is the kernel's, on the file itself, so it is gone when its holder
is; a file beside it only says who that is.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from novacode.errors import SessionError
from novacode.sessions.fold import Loaded, load
from novacode.sessions.journal import Journal, Journaling, MemoryJournal
from novacode.sessions.listing import Summary, summarise
from novacode.sessions.record import Header
from novacode.values.ids import SessionId

__all__ = ["Session", "Store", "memory_session", "project_key", "session_id"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TRIES = 8


@attrs.frozen
class Session:
    """A session that can be appended to. `path` is `None` for one that is kept in memory only.

    `loaded` is what was there when it was opened; `notices` are for the person who opened it.
    """

    id: SessionId
    journal: Journaling
    loaded: Loaded = attrs.field(factory=Loaded)
    path: Path | None = None
    notices: tuple[str, ...] = ()

    def close(self) -> None:
        """Give up the file, its lock, and the note of who holds it. Idempotent."""
        self.journal.close()
        if self.path is not None:
            _lock_note(self.path).unlink(missing_ok=True)


def session_id(now: float, chance: bytes) -> SessionId:
    """Return an id: `now` (seconds since 1970) as UTC, which sorts by age, and `chance`, which keeps ids apart."""
    at = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return SessionId(f"s-{at:%Y%m%d-%H%M%S}-{chance.hex()}")


def memory_session(chosen: SessionId, *notices: str) -> Session:
    """Return a session that is kept nowhere."""
    return Session(chosen, MemoryJournal(), notices=notices)


def project_key(cwd: Path) -> str:
    """Return the folder name for sessions begun in `cwd`: readable, and different for different folders."""
    real = cwd.resolve()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", real.name).strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
    return f"{readable[:40]}-{digest}"


class Store:
    """The sessions below `home`. `now` is the wall clock in seconds since 1970, `chance` a source of random bytes."""

    def __init__(self, home: Path, now: Callable[[], float], chance: Callable[[int], bytes] = os.urandom) -> None:
        self._root = home / "sessions"
        self._now = now
        self._chance = chance

    def create(self, cwd: Path) -> Session:
        """Begin a session in `cwd`. Where its file cannot be made, it is kept in memory and a notice says why."""
        now = self._now()
        try:
            folder = self._folder(cwd)
            return self._begin(folder, self._free_id(folder, now), cwd, now)
        except OSError as error:
            return memory_session(session_id(now, self._chance(3)), self._not_kept(error))

    def replace(self, chosen: SessionId, cwd: Path) -> Session:
        """Begin the session `chosen` in `cwd`, in the place of one of that id: for runs whose id must not vary.

        Where the file cannot be made, or another process is using it, the session is kept in memory and a notice
        says why.
        """
        try:
            return self._begin(self._folder(cwd), chosen, cwd, self._now(), fresh=True)
        except BlockingIOError:
            return memory_session(chosen, f"this session is not kept: another process is writing {chosen} here")
        except OSError as error:
            return memory_session(chosen, self._not_kept(error))

    def open(self, wanted: str) -> Session:
        """Go on with the session whose id is `wanted`, or begins with it where only one does.

        Raises `SessionError` where there is none, where another process holds it (its pid is named), and for files
        that cannot be read. One that can be read and not written is given without a file: what is added is not kept.
        """
        path = self.find(wanted)
        try:
            journal = Journal(path)
        except BlockingIOError as error:
            raise SessionError(
                f"session {path.stem} is in use by {_holder(path)}. Wait until that has ended, or take a copy of it"
                " with --fork-session."
            ) from error
        except OSError as error:
            loaded = load(path)
            notice = f"what follows is not kept: {path} cannot be written ({error.strerror or error})"
            return Session(_id_of(path, loaded), MemoryJournal(), loaded, notices=(*loaded.notices, notice))
        try:
            loaded = load(path)
        except BaseException:
            journal.close()
            raise
        _note_holder(path)
        notices = (journal.mended, *loaded.notices) if journal.mended else loaded.notices
        return Session(_id_of(path, loaded), journal, loaded, path, notices)

    def fork(self, wanted: str, cwd: Path) -> Session:
        """Begin a session in `cwd` that starts as a copy of the session `wanted`; that one is only read.

        The copy is of whole lines, so it is right also while another process is writing the original.
        """
        source = self.find(wanted)
        loaded = load(source)
        made = self.create(cwd)
        if not isinstance(made.journal, Journal):
            return attrs.evolve(made, loaded=loaded, notices=(*loaded.notices, *made.notices))
        try:
            made.journal.copy_records(source)
        except OSError as error:
            made.close()
            raise SessionError(f"{source} could not be copied: {error.strerror or error}") from error
        return attrs.evolve(made, loaded=load(made.journal.path), notices=loaded.notices)

    def find(self, wanted: str) -> Path:
        """Return the file of the session `wanted` (an id, or the beginning of one). Raises `SessionError`."""
        if not _ID.fullmatch(wanted):
            raise SessionError(f"{wanted!r} is not a session id; `novacode sessions list` shows those there are")
        found = sorted(path for path in self._files() if path.stem.startswith(wanted))
        exact = [path for path in found if path.stem == wanted]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if not found:
            raise SessionError(f"there is no session {wanted!r}; `novacode sessions list` shows those there are")
        raise SessionError(f"{wanted!r} could be any of {', '.join(path.stem for path in found[:5])}: write more of it")

    def latest(self, cwd: Path) -> SessionId | None:
        """Return the session of `cwd` that was written last. Opens no file and looks into no other project's folder."""
        ages = [(mtime, path.stem) for path in self._files(project_key(cwd)) if (mtime := _mtime(path)) is not None]
        return SessionId(max(ages)[1]) if ages else None

    def list(self, cwd: Path | None = None) -> tuple[Summary, ...]:
        """Return the sessions of `cwd`, or all, latest first. Reads the head and the tail of each file, no more."""
        found = [summarise(path) for path in self._files(None if cwd is None else project_key(cwd))]
        return tuple(sorted((one for one in found if one is not None), key=lambda one: (-one.last, one.id)))

    def _folder(self, cwd: Path) -> Path:
        folder = self._root / project_key(cwd)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _begin(self, folder: Path, chosen: SessionId, cwd: Path, now: float, *, fresh: bool = False) -> Session:
        path = folder / f"{chosen}.jsonl"
        journal = Journal(path, Header(chosen, str(cwd), now), fresh=fresh)
        _note_holder(path)
        return Session(chosen, journal, path=path)

    def _not_kept(self, error: OSError) -> str:
        return f"this session is not kept: {self._root} cannot be written ({error.strerror or error})"

    def _files(self, project: str | None = None) -> Iterator[Path]:
        try:
            folders = [self._root / project] if project else [path for path in self._root.iterdir() if path.is_dir()]
            for folder in folders:
                if folder.is_dir():
                    yield from folder.glob("*.jsonl")
        except OSError:
            return

    def _free_id(self, folder: Path, now: float) -> SessionId:
        for _ in range(_TRIES):
            chosen = session_id(now, self._chance(3))
            if not (folder / f"{chosen}.jsonl").exists():
                return chosen
        raise FileExistsError(17, "no free session id: the source of chance keeps giving the same bytes")


def _id_of(path: Path, loaded: Loaded) -> SessionId:
    """Return the id in the header; the file's name where the header is lost."""
    return loaded.header.session_id if loaded.header and loaded.header.session_id else SessionId(path.stem)


def _mtime(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _lock_note(path: Path) -> Path:
    return path.resolve().with_suffix(".lock")


def _note_holder(path: Path) -> None:
    """Write down who holds the lock. Only for the error text of others, so failing to is no failure."""
    try:
        _lock_note(path).write_text(f"{os.getpid()}\n")
    except OSError:
        return


def _holder(path: Path) -> str:
    try:
        return f"the process {int(_lock_note(path).read_text())}"
    except (OSError, ValueError):
        return "another process"
