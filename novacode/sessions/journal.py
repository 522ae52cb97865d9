"""The journal of a session: appending is synchronous, reaching the disk is not.

An event is in the file before anybody else sees it. So what a person saw, and what a process did, is on record even
when the next instruction is the last one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Protocol

import trio

from novacode.errors import SessionError
from novacode.grace import DEFAULT, cleanup
from novacode.sessions.lines import FORMAT, load_line
from novacode.sessions.record import Header, encode, is_kept
from novacode.sessions.secrets import Secrets
from novacode.values.events import Stamped

__all__ = ["Journal", "Journaling", "MemoryJournal"]

_CHUNK = 64 * 1024


class Journaling(Protocol):
    """What the engine needs of a journal."""

    @property
    def failed(self) -> SessionError | None:
        """Why nothing more is kept; `None` while all is well."""
        ...

    def append(self, stamped: Stamped) -> None:
        """Keep `stamped`, where it matters for history. Not a checkpoint. Raises `SessionError` at most once."""
        ...

    async def flush(self) -> bool:
        """Bring what was appended to the disk; bounded. Returns whether it is there."""
        ...

    def close(self) -> None:
        """Nothing more will be appended. Idempotent."""
        ...


class Journal:
    """The file at `path`, opened for appending, and held by an exclusive lock until `close` or the process's end.

    Opening mends the end of the file: a record without line end gets one, half a record is cut off. A new or empty
    file starts with `header`; with `fresh` what the file held is thrown away first. `mended` says in words what was
    done, for people. What `secrets` hide is not written.

    Raises `BlockingIOError` where another process (or this one) holds the lock, `SessionError` for a file that is no
    session, and `OSError` where the file cannot be opened or written.
    """

    def __init__(
        self, path: Path, header: Header | None = None, *, fresh: bool = False, secrets: Secrets | None = None
    ) -> None:
        self.path = path
        self._secrets = secrets or Secrets()
        self.failed: SessionError | None = None
        self.mended = ""
        self._unflushed = False
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
        try:
            # On the file itself and not on one beside it: two links to one session are one session.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if fresh:
                os.ftruncate(self._fd, 0)
            self._size = os.fstat(self._fd).st_size
            self._mend()
            if self._size == 0 and header is not None:
                self._write(encode(header))
        except BaseException:
            os.close(self._fd)
            self._fd = -1
            raise

    def append(self, stamped: Stamped) -> None:
        """Write `stamped` as one line with one system call, where it is of a kind that is kept. Not a checkpoint.

        Raises `SessionError` the first time it does not succeed (disk full, file system gone, file removed); what was
        written of the record is taken back. From then on `failed` is set and appending does nothing, so that the run
        can end.
        """
        if self.failed is not None or not is_kept(stamped.event):
            return
        if self._fd < 0:
            raise SessionError(f"the journal {self.path} is closed; event {stamped.seq} was not kept")
        try:
            self._write(self._secrets.hide(stamped, encode))
            if os.fstat(self._fd).st_nlink == 0:  # writing to a file that has no name any more succeeds
                raise FileNotFoundError(errno.ENOENT, "it was removed or replaced")
        except OSError as error:
            kept = (
                ""
                if isinstance(error, FileNotFoundError)
                else f" The session is on disk up to event {stamped.seq - 1};"
            )
            self.failed = SessionError(
                f"{self.path} cannot be written: {error.strerror or error}.{kept} What follows is not kept."
            )
            raise self.failed from error

    async def flush(self) -> bool:
        """Wait until what was appended is on the disk, at most `grace.DEFAULT.journal` seconds; shielded.

        Returns whether it is. A disk that does not answer is left alone: its thread is abandoned, never waited for.
        """
        if not self._unflushed or self.failed is not None or self._fd < 0:
            return self.failed is None
        self._unflushed = False
        with cleanup(DEFAULT.journal) as scope:
            try:
                await trio.to_thread.run_sync(os.fsync, self._fd, abandon_on_cancel=True)
            except OSError as error:
                self.failed = SessionError(f"{self.path} did not reach the disk: {error.strerror or error}")
        if scope.cancelled_caught:
            self._unflushed = True  # what a slow disk has not taken yet is tried again
        return self.failed is None and not scope.cancelled_caught

    def copy_records(self, source: Path) -> None:
        """Append every whole line of the session at `source` but its header. Raises `OSError`."""
        with source.open("rb") as file:
            file.readline()
            for line in file:
                if line.endswith(b"\n"):
                    self._write(line)

    def close(self) -> None:
        """Close the file, which gives up its lock. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, line: bytes) -> None:
        """Write all of `line` or nothing. One call, unless the system takes only a part."""
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            if len(rest) < len(line):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(line)
        self._unflushed = True

    def _mend(self) -> None:
        """Make the file end with a whole line, so that the next record is one of its own."""
        tail_start = self._last_line_start()
        tail = os.pread(self._fd, self._size - tail_start, tail_start) if tail_start < self._size else b""
        if not tail:
            return
        if isinstance(load_line(tail), dict):
            self._write(b"\n")
            self.mended = "its last record had no line end; it has one now"
            return
        if isinstance(
            load_line(tail[:-1]), dict
        ):  # half a record is never a whole one and a byte: that was its line end
            os.ftruncate(self._fd, self._size - 1)
            self._size -= 1
            self._write(b"\n")
            self.mended = "the line end of its last record was damaged; it is mended"
            return
        if tail_start == 0 and not f'{{"format":"{FORMAT}"'.startswith(tail[:20].decode("utf-8", "replace")):
            raise SessionError(f"{self.path} is not a NovaCode session. Nothing was changed.")
        os.ftruncate(self._fd, tail_start)
        self._size = tail_start
        self.mended = f"its last record was cut off by a crash; {len(tail)} bytes were removed"

    def _last_line_start(self) -> int:
        """Return the offset behind the last line end, reading backwards."""
        end = self._size
        while end > 0:
            start = max(0, end - _CHUNK)
            at = os.pread(self._fd, end - start, start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            end = start
        return 0


class MemoryJournal:
    """A journal that is kept nowhere but in `records`; what a run without a session has."""

    def __init__(self) -> None:
        self.records: list[Stamped] = []
        self.failed: SessionError | None = None

    def append(self, stamped: Stamped) -> None:
        """Keep `stamped` in memory, where it is of a kind that is kept."""
        if is_kept(stamped.event):
            self.records.append(stamped)

    async def flush(self) -> bool:
        """Return True; a checkpoint, as the real one is."""
        await trio.lowlevel.checkpoint()
        return True

    def close(self) -> None:
        """Do nothing."""
