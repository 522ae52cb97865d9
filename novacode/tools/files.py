"""Files as the file tools need them: only regular ones are opened, and a replacement is whole or not there at all."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import trio

from novacode.errors import ToolFailed

__all__ = [
    "LARGEST",
    "Loaded",
    "Replacement",
    "chunks",
    "digest_of",
    "finish_digest",
    "load",
    "load_listed",
    "load_now",
    "open_regular",
    "printable",
    "put",
    "replace",
    "require_regular",
    "worded",
]

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that is edited, or replaced after it was read."""

_CHUNK = 1024 * 1024
_PAGE = 4096
_DIGEST_BYTES = 16
_NEIGHBOURS = 2000  # names looked at for "did you mean"


class Loaded(NamedTuple):
    """A file's content, and its status before it was read."""

    data: bytes
    status: os.stat_result


def digest_of(data: bytes) -> bytes:
    """Return what `SeenFiles` keeps of a content."""
    return finish_digest(hashlib.sha256(data))


def finish_digest(hashed: hashlib._Hash) -> bytes:
    """Return the same of a content that was hashed piece by piece with SHA-256."""
    return hashed.digest()[:_DIGEST_BYTES]


def printable(name: str) -> str:
    """Return a file name as one line of valid text: what is not printable, or not UTF-8, as an escape."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


@contextmanager
def worded(shown: str) -> Iterator[None]:
    """Turn what the system says about the file called `shown` into a `ToolFailed` for the model."""
    try:
        yield
    except OSError as refused:
        raise ToolFailed(f"`{printable(shown)}`: {refused.strerror or refused}.") from refused
    except ValueError as refused:  # a NUL byte or a lone surrogate in the path
        raise ToolFailed(f"`{printable(shown)}` cannot be the name of a file: {refused}.") from refused


_KINDS = (
    (stat.S_ISDIR, "is a folder, not a file; list it with `glob`"),
    (stat.S_ISFIFO, "is a named pipe; reading it could wait for ever"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device; reading it could wait for ever or never end"),
    (stat.S_ISBLK, "is a block device"),
)


def require_regular(status: os.stat_result, shown: str) -> None:
    """Raise `ToolFailed` where `status` is not that of a regular file."""
    for is_kind, words in _KINDS:
        if is_kind(status.st_mode):
            raise ToolFailed(f"`{printable(shown)}` {words}. Nothing was read or written.")


def open_regular(path: Path, shown: str) -> tuple[int, os.stat_result]:
    """Open `path` for reading and return its descriptor and status. Never waits, whatever `path` is.

    Raises `ToolFailed` for what is not a regular file (which is not opened: opening alone acts on some devices) and
    for what is not there.
    """
    with worded(shown):
        try:
            require_regular(os.stat(path), shown)
        except FileNotFoundError:
            raise ToolFailed(f"`{printable(shown)}` does not exist{_did_you_mean(path)}.") from None
        # Something else may have taken its place since: not waiting, and a second look, close the gap.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            status = os.fstat(handle)
            require_regular(status, shown)
        except BaseException:
            os.close(handle)
            raise
    return handle, status


def _did_you_mean(path: Path) -> str:
    try:
        with os.scandir(path.parent) as entries:
            names = sorted(entry.name for _, entry in zip(range(_NEIGHBOURS), entries, strict=False))
    except (OSError, ValueError):
        return f"; neither does the folder `{printable(path.parent.name)}`" if path.parent.name else ""
    near = difflib.get_close_matches(path.name, names, 3)
    return f"; in the same folder there is {', '.join(f'`{printable(name)}`' for name in near)}" if near else ""


def chunks(handle: int, most: int) -> Iterator[bytes]:
    """Yield what is read from `handle`, up to `most` bytes, in chunks: the caller checkpoints between them."""
    # A buffer no larger than the file: most are small, and filling a megabyte costs more than reading one.
    size = min(_CHUNK, max(_PAGE, os.fstat(handle).st_size + 1))
    while most > 0 and (data := os.read(handle, min(size, most))):
        most -= len(data)
        yield data


async def load(path: Path, shown: str) -> Loaded:
    """Return the whole content of `path`. Checkpoints between chunks; nothing is left open when it is cancelled.

    Raises `ToolFailed` for what `open_regular` refuses, and for a file of more than `LARGEST` bytes.
    """
    handle, status = open_regular(path, shown)
    data = bytearray()
    try:
        with worded(shown):
            for chunk in chunks(handle, LARGEST + 1):
                data += chunk
                await trio.lowlevel.checkpoint()
    finally:
        os.close(handle)
    if len(data) > LARGEST:
        raise ToolFailed(f"`{printable(shown)}` is larger than {LARGEST} bytes; change it with a shell command.")
    return Loaded(bytes(data), status)


def load_now(path: Path, most: int) -> bytes | None:
    """Return the content of `path` for a preview, or `None` where it has more than `most` bytes or cannot be read."""
    try:
        handle, _ = open_regular(path, "")
    except ToolFailed:
        return None
    try:
        data = b"".join(chunks(handle, most + 1))
    except OSError:
        return None
    finally:
        os.close(handle)
    return data if len(data) <= most else None


def load_listed(path: str, most: int) -> bytes | None:
    """Return the first `most` bytes of a file that a listing has just shown to be one; `None` where it is none by now.

    For very many files: three system calls for a small one. A link is not followed.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    try:
        return b"".join(chunks(handle, most)) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(handle)


class Replacement:
    """New content for a file, written beside it and put in its place by `commit`.

    Until then the old content is there, whole; from then on the new. On Linux the new content has no name until it
    is complete, so that a process killed in the middle of writing leaves nothing behind; elsewhere a kill can leave
    one hidden file. Mode and owner are kept; other hard links keep the old content. Synchronous throughout.
    """

    def __init__(self, path: Path, old: os.stat_result | None) -> None:
        self._path = path
        self._old = old
        self._name = f".{path.name[:200]}.{os.getpid()}.novacode"
        self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._handle, self._named = self._create()
        except BaseException:
            os.close(self._folder)
            raise

    def _create(self) -> tuple[int, bool]:
        unnamed = getattr(os, "O_TMPFILE", None)
        if unnamed is not None and os.path.exists("/proc/self/fd"):
            with suppress(OSError):  # not every file system has files without a name
                return os.open(".", unnamed | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=self._folder), False
        with suppress(FileNotFoundError):  # of an earlier process with our pid
            os.unlink(self._name, dir_fd=self._folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._name, flags, 0o666, dir_fd=self._folder), True

    def write(self, data: bytes) -> None:
        """Write more of the new content."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def commit(self) -> None:
        """Put the new content in place. Not a checkpoint: note what was done before the next one."""
        if self._old is not None:
            with suppress(PermissionError):
                os.fchown(self._handle, self._old.st_uid, self._old.st_gid)
            os.fchmod(self._handle, stat.S_IMODE(self._old.st_mode))
        if not self._named:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._folder)
            # `dst_dir_fd` makes this `linkat`, which alone follows the link in /proc to the unnamed file.
            os.link(f"/proc/self/fd/{self._handle}", self._name, dst_dir_fd=self._folder, follow_symlinks=True)
            self._named = True
        os.rename(self._name, self._path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._named = False

    def close(self) -> None:
        """Let go of everything; without a `commit` nothing remains of the new content."""
        os.close(self._handle)
        if self._named:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)
        os.close(self._folder)


@contextmanager
def replace(path: Path, old: os.stat_result | None) -> Iterator[Replacement]:
    """Give a `Replacement` of `path`, whose status was `old`, and clean up after it on every way out."""
    replacement = Replacement(path, old)
    try:
        yield replacement
    finally:
        replacement.close()


async def put(path: Path, shown: str, data: bytes, old: os.stat_result | None) -> None:
    """Make `data` the content of `path`. Checkpoints while writing; from the change on it is not a checkpoint.

    Raises `ToolFailed` where the system refuses, or where `path` is no longer as `old` says (`None`: not there).
    Cancelled or failed, `path` is what it was. A file that may not be written is not replaced either, though the
    system would allow that.
    """
    if old is not None and not os.access(path, os.W_OK):
        raise ToolFailed(f"`{printable(shown)}` is write-protected; nothing was changed.")
    with worded(shown), replace(path, old) as replacement:
        for start in range(0, len(data), _CHUNK):
            replacement.write(data[start : start + _CHUNK])
            await trio.lowlevel.checkpoint()
        if _identity(_status(path)) != _identity(old):
            raise ToolFailed(f"`{printable(shown)}` was changed by somebody else just now; read it again.")
        replacement.commit()


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    return status and (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
