"""Contents of files by their digest, in two files that only grow: one write for many, however small they are.

`content.pack` holds the contents one after another, compressed where that helps; `content.index` a row of fixed size
for each. The pack is written first. So what a crash can leave is bytes nobody refers to, or a part of a row, which is
cut off by the next writer. Writers of several processes take turns by a lock on the index.

Whoever has the store holds a shared lock on `in-use.lock`. Who throws away what nobody needs any more (`pruning`) must
be alone, writes both files anew, and exchanges them once `prune.commit` is there: a crash in between is finished by the
next one who comes.
"""

from __future__ import annotations

import fcntl
import os
import struct
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from novacode.workspace.states import digest_of

__all__ = ["COMMIT", "INDEX", "PACK", "ROW", "Contents", "finish_exchange", "lock_of"]

PACK, INDEX, COMMIT = "content.pack", "content.index", "prune.commit"
ROW = struct.Struct(">20sQII")
"""The key of a content, and its place."""

_LOCK = "in-use.lock"
_BATCH = 4 * 1024 * 1024
_WORTH_PACKING = 64


class _Place(NamedTuple):
    start: int
    stored: int
    size: int  # unlike `stored` where the content is compressed


class Contents:
    """The contents kept in `folder`, which is made at the first write. Synchronous; one thread at a time.

    What is `put` is on its way and reaches the files with `flush`, or when there is enough of it. The store is looked
    into when it is first needed, and nobody prunes it from then on, as long as this object lives.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[bytes, _Place] = {}
        self._read = 0  # bytes of the index that `_places` knows
        self._waiting: dict[bytes, tuple[bytes, int]] = {}
        self._waiting_bytes = 0
        self._looked = self._held = False

    def put(self, data: bytes) -> str:
        """Keep `data` and return its digest. Raises `OSError` where a batch could not be written."""
        digest = digest_of(data)
        key = bytes.fromhex(digest)
        self._look()
        if key not in self._places and key not in self._waiting:
            packed = zlib.compress(data, 1) if len(data) >= _WORTH_PACKING else data
            stored = packed if len(packed) < len(data) else data
            self._waiting[key] = (stored, len(data))
            self._waiting_bytes += len(stored)
            if self._waiting_bytes >= _BATCH:
                self.flush()
        return digest

    def flush(self, *, to_disk: bool = False) -> None:
        """Write what is waiting; with `to_disk` wait until it is on the disk.

        Raises `OSError` where it cannot be written. The files are then as before, and nothing waits any more.
        """
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        if not waiting and not to_disk:
            return
        with self._writing() as (pack, index):
            self._learn(index)
            self._append(pack, index, {key: value for key, value in waiting.items() if key not in self._places})
            if to_disk:
                os.fsync(pack)
                os.fsync(index)

    def get(self, digest: str) -> bytes | None:
        """Return the content of `digest`, or `None` where it is not here or damaged."""
        key = bytes.fromhex(digest)
        self._look()
        if (waiting := self._waiting.get(key)) is not None:
            return _unpacked(*waiting)
        place = self._places.get(key)
        if place is None:
            return None
        try:
            with open(self._folder / PACK, "rb", buffering=0) as pack:
                data = _unpacked(os.pread(pack.fileno(), place.stored, place.start), place.size)
        except (OSError, zlib.error):
            return None
        return data if digest_of(data) == digest else None

    def _look(self) -> None:
        """Learn what is in the store, where there is one and it was not looked into before."""
        if self._looked:
            return
        self._looked = True
        if not self._folder.is_dir():
            return
        self._hold()
        with suppress(OSError), open(self._folder / INDEX, "rb") as index:
            self._learn(index.fileno())

    def _hold(self) -> None:
        """See that nobody prunes the store; where it cannot be written, nobody can."""
        if self._held:
            return
        with suppress(OSError):
            fd = lock_of(self._folder)
            weakref.finalize(self, os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_SH)
            if (self._folder / COMMIT).exists():
                fcntl.flock(fd, fcntl.LOCK_EX)
                finish_exchange(self._folder)
                fcntl.flock(fd, fcntl.LOCK_SH)
            self._held = True

    @contextmanager
    def _writing(self) -> Iterator[tuple[int, int]]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._hold()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        index = os.open(self._folder / INDEX, flags, 0o600)
        try:
            fcntl.flock(index, fcntl.LOCK_EX)
            pack = os.open(self._folder / PACK, flags, 0o600)
            try:
                yield pack, index
            finally:
                os.close(pack)
        finally:
            os.close(index)

    def _append(self, pack: int, index: int, new: dict[bytes, tuple[bytes, int]]) -> None:
        start, rows_end = os.fstat(pack).st_size, self._read
        os.ftruncate(index, rows_end)
        places: dict[bytes, _Place] = {}
        at = start
        for key, (stored, size) in new.items():
            places[key] = _Place(at, len(stored), size)
            at += len(stored)
        try:
            _write(pack, b"".join(stored for stored, _ in new.values()))
            _write(index, b"".join(ROW.pack(key, *place) for key, place in places.items()))
        except OSError:
            with suppress(OSError):
                os.ftruncate(index, rows_end)
                os.ftruncate(pack, start)
            raise
        self._places.update(places)
        self._read = rows_end + len(places) * ROW.size

    def _learn(self, index: int) -> None:
        """Read the rows that were added since, by others; all of them where the file was replaced by a shorter one."""
        size = os.fstat(index).st_size
        if size < self._read:
            self._places, self._read = {}, 0
        whole = size - size % ROW.size
        rows = os.pread(index, whole - self._read, self._read) if whole > self._read else b""
        rows = rows[: len(rows) - len(rows) % ROW.size]
        for key, start, stored, length in ROW.iter_unpack(rows):
            self._places[key] = _Place(start, stored, length)
        self._read += len(rows)


def lock_of(folder: Path) -> int:
    """Return a descriptor of the file that is locked by whoever has the store `folder`; the caller closes it."""
    return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def finish_exchange(folder: Path) -> None:
    """Put the files in place that a pruning has written, where it had finished writing; else remove them.

    For who has the store alone. May be interrupted and done again.
    """
    written = [folder / f"{name}.new" for name in (PACK, INDEX)]
    if (folder / COMMIT).exists():
        for path in written:
            with suppress(FileNotFoundError):  # it is in place already
                path.replace(path.with_suffix(""))
        (folder / COMMIT).unlink(missing_ok=True)
    for path in written:
        path.unlink(missing_ok=True)


def _unpacked(stored: bytes, size: int) -> bytes:
    return stored if len(stored) == size else zlib.decompress(stored)


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
