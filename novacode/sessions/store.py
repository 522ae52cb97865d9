"""Where sessions live: `<home>/sessions/<project>/<session>.jsonl`, one folder a project, one file a session.

One process writes a session at a time. The lock is the kernel's, on the file itself, so it is gone when its holder
is; a file beside it only says who that is.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from novacode.errors import SessionError
from novacode.sessions.holders import forget_holder, holder_words, note_holder
from novacode.sessions.journal import Journal, Journaling, MemoryJournal
from novacode.sessions.listing import Summary, list_sessions, project_key, session_files, stem
from novacode.sessions.loaded import Loaded
from novacode.sessions.record import Header
from novacode.sessions.secrets import Secrets
from novacode.values.ids import SessionId

__all__ = ["Session", "Store", "memory_session", "project_key", "session_id"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_TRIES = 8


@attrs.frozen(eq=False, repr=False)
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
        if self.path is not None:
            forget_holder(self.path)  # while the lock is ours: later it could be the note of the next one
        self.journal.close()


def session_id(now: float, chance: bytes) -> SessionId:
    """Return an id: `now` (seconds since 1970) as UTC, which sorts by age, and `chance`, which keeps ids apart."""
    at = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return SessionId(f"s-{at:%Y%m%d-%H%M%S}-{chance.hex()}")


def memory_session(chosen: SessionId, *notices: str) -> Session:
    """Return a session that is kept nowhere."""
    return Session(chosen, MemoryJournal(), notices=notices)


class Store:
    """The sessions below `home`. `now` is the wall clock in seconds since 1970, `chance` a source of random bytes.

    What `secrets` hide is written to none of them.
    """

    def __init__(
        self,
        home: Path,
        now: Callable[[], float],
        chance: Callable[[int], bytes] = os.urandom,
        secrets: Secrets | None = None,
    ) -> None:
        self._root = home / "sessions"
        self._now = now
        self._chance = chance
        self._secrets = secrets

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

    def open(self, wanted: str, near: Path | None = None) -> Session:
        """Go on with the session whose id is `wanted`, or begins with it; see `find` and `open_file`."""
        return self.open_file(self.find(wanted, near))

    def open_file(self, path: Path) -> Session:
        """Go on with the session at `path`.

        Where its last run has no end, because the process died, the events that end it are appended: once, since
        after that it has one. Raises `SessionError` where another process holds it (its pid is named), and for files
        that cannot be read. One that can be read and not written is given without a file: what is added is not kept.
        """
        try:
            # The header is written where a crash has left an empty file.
            journal = Journal(path, Header(SessionId(path.stem), "", self._now()), secrets=self._secrets)
        except BlockingIOError as error:
            raise SessionError(
                f"session {path.stem} is in use by {holder_words(path)}. Wait until that has ended, or take a copy of"
                f" it with --fork-session; `novacode sessions show {path.stem}` only reads it."
            ) from error
        except OSError as error:
            return _unwritable(path, _load(path), f"{path} cannot be written ({error.strerror or error})")
        try:
            loaded = _load(path)
        except BaseException:
            journal.close()
            raise
        try:
            loaded = _repaired(loaded, journal)
        except SessionError as error:
            journal.close()
            return _unwritable(path, loaded, str(error))
        notices = (journal.mended, *loaded.notices) if journal.mended else loaded.notices
        notices += _left_running(note_holder(path))
        return Session(_id_of(path, loaded), journal, loaded, path, notices)

    def fork(self, wanted: str, cwd: Path, near: Path | None = None) -> Session:
        """Begin a session in `cwd` that starts as a copy of the session `wanted` (see `find`); that one is only read.

        The copy is of whole lines, so it is right also while another process is writing the original.
        """
        source = self.find(wanted, near or cwd)
        loaded = _load(source)
        made = self.create(cwd)
        if not isinstance(made.journal, Journal):
            return attrs.evolve(made, loaded=loaded, notices=(*loaded.notices, *made.notices))
        try:
            made.journal.copy_records(source)
            copied = _repaired(_load(made.journal.path), made.journal)
        except OSError as error:
            made.close()
            raise SessionError(f"{source} could not be copied: {error.strerror or error}") from error
        except BaseException:
            made.close()
            raise
        return attrs.evolve(made, loaded=copied, notices=loaded.notices)

    def find(self, wanted: str, near: Path | None = None) -> Path:
        """Return the file of the session `wanted` (an id, or the beginning of one). Raises `SessionError`.

        Where several fit, as with the fixed id of scripted runs, the one of the folder `near` is meant.
        """
        if not _ID.fullmatch(wanted):
            raise SessionError(f"{wanted!r} is not a session id; `novacode sessions list` shows those there are")
        found = sorted(path for path in self._files() if stem(path).startswith(wanted))
        exact = [path for path in found if stem(path) == wanted]
        fitting = exact or found
        if len(fitting) > 1 and near is not None:
            fitting = [path for path in fitting if Path(path).parent.name == project_key(near)] or fitting
        if len(fitting) == 1:
            return Path(fitting[0])
        if not found:
            raise SessionError(f"there is no session {wanted!r}; `novacode sessions list` shows those there are")
        if len(set(map(stem, fitting))) == 1:
            raise SessionError(
                f"{wanted!r} means {len(fitting)} sessions, none of them of this folder: go to its folder"
            )
        raise SessionError(f"{wanted!r} could be any of {', '.join(map(stem, found[:5]))}: write more of it")

    def latest(self, cwd: Path) -> SessionId | None:
        """Return the session of `cwd` that was written last. Opens no file and looks into no other project's folder."""
        ages = [(mtime, stem(path)) for path in self._files(project_key(cwd)) if (mtime := _mtime(path)) is not None]
        return SessionId(max(ages)[1]) if ages else None

    def list(self, cwd: Path | None = None) -> tuple[Summary, ...]:
        """Return the sessions of `cwd`, or all, latest first. Reads the head and the tail of each file, no more."""
        return list_sessions(self._root, None if cwd is None else project_key(cwd))

    def _folder(self, cwd: Path) -> Path:
        folder = self._root / project_key(cwd)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _begin(self, folder: Path, chosen: SessionId, cwd: Path, now: float, *, fresh: bool = False) -> Session:
        path = folder / f"{chosen}.jsonl"
        journal = Journal(path, Header(chosen, str(cwd), now), fresh=fresh, secrets=self._secrets)
        return Session(chosen, journal, path=path, notices=_left_running(note_holder(path)))

    def _not_kept(self, error: OSError) -> str:
        return f"this session is not kept: {self._root} cannot be written ({error.strerror or error})"

    def _files(self, project: str | None = None) -> Iterator[str]:
        return session_files(self._root, project)

    def _free_id(self, folder: Path, now: float) -> SessionId:
        for _ in range(_TRIES):
            chosen = session_id(now, self._chance(3))
            if not (folder / f"{chosen}.jsonl").exists():
                return chosen
        raise FileExistsError(17, "no free session id: the source of chance keeps giving the same bytes")


def _load(path: Path) -> Loaded:
    from novacode.sessions.fold import load  # lazy: 6 ms that only a session which goes on pays

    return load(path)


def _left_running(left: Sequence[str]) -> tuple[str, ...]:
    """Return what a person is told of processes that a NovaCode which was killed could not stop any more."""
    if not left:
        return ()
    what = f"{len(left)} process{'es' * (len(left) != 1)} of its commands {'are' if len(left) != 1 else 'is'}"
    pids = " ".join(one.partition(" ")[0] for one in left)
    return (
        f"NovaCode was killed in this session, and {what} still running: {'; '.join(left)}. To end"
        f" {'them' if len(left) != 1 else 'it'}: kill {pids}",
    )


def _id_of(path: Path, loaded: Loaded) -> SessionId:
    """Return the id in the header; the file's name where the header is lost."""
    return loaded.header.session_id if loaded.header and loaded.header.session_id else SessionId(path.stem)


def _mtime(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _unwritable(path: Path, loaded: Loaded, why: str) -> Session:
    """Return a session that goes on in memory only."""
    notice = f"what follows is not kept: {why}"
    return Session(_id_of(path, loaded), MemoryJournal(), loaded, notices=(*loaded.notices, notice))


def _repaired(loaded: Loaded, journal: Journal) -> Loaded:
    """Append what ends the last run, where it has no end, and return where the session goes on from there."""
    for stamped in loaded.repair:
        journal.append(stamped)
    return attrs.evolve(loaded, last_seq=loaded.last_seq + len(loaded.repair))
