"""Which places of a workspace commands must not change even where they may write, and what git needs besides."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

__all__ = ["Ground", "below", "bound_sockets", "ground_of"]

_IN_GIT = ("hooks", "config", "config.worktree", "info/attributes")
_IN_ADMIN = ("commondir", "gitdir", "config.worktree")
_LONGEST = 4096  # bytes of a file that holds one path


@attrs.frozen
class Ground:
    """Where commands may write, in the order in which it is mounted; all paths are resolved.

    `guarded` are places in `writable` that stay read-only, `covered` are sockets in it that somebody outside has bound.
    `held` are the folders between, which are mounted on themselves: a folder that is mounted cannot be renamed away
    with what is in it. `blocked` are places in `writable` where nothing is and nothing can be made:
    bubblewrap makes an empty folder there.
    """

    writable: tuple[Path, ...]
    held: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    covered: tuple[Path, ...] = ()
    blocked: tuple[Path, ...] = ()

    def blocking(self, places: Iterable[Path]) -> Ground:
        """Return the same with `places` blocked."""
        return attrs.evolve(self, blocked=tuple(places))


def ground_of(roots: Iterable[Path], own: Iterable[Path] = (), sockets: Iterable[Path] = ()) -> Ground:
    """Return what commands may write of the workspace's folders `roots`.

    Guarded are git's hooks and configuration, and `.novacode`: they decide what runs later, outside. So are `own`,
    NovaCode's own folders, where they are within. Covered are those of `sockets` that are.

    To be asked before the first command of a session. What is a link then is left alone; what is mounted from then on
    no command can replace by one.
    """
    plain = tuple(dict.fromkeys(roots))
    admins = [admin for root in plain if (admin := _admin_folder(root)) is not None]
    commons = tuple(admin.parent.parent for admin in admins)
    writable = (*plain, *(common for common in commons if not below(common, plain)))
    wanted = [*(root / ".novacode" for root in plain), *own]
    wanted += [root / ".git" for root in plain if (root / ".git").is_file()]  # a worktree's, which names its repository
    wanted += [admin / name for admin in admins for name in _IN_ADMIN]
    for git in (*(root / ".git" for root in plain), *commons):
        _have_hooks(git, writable)
        wanted += [git / name for name in _IN_GIT]
    guarded = [path for path in wanted if below(path, writable) and path not in writable and _is_real(path, writable)]
    covered = [path for path in sockets if below(path, writable) and _is_real(path, writable)]
    between = {parent for path in (*guarded, *covered) for parent in _up_to(path, writable)}
    return Ground(writable, tuple(sorted(between)), tuple(dict.fromkeys(guarded)), tuple(covered))


def bound_sockets() -> list[Path]:
    """Return the paths of the sockets somebody has bound in our network namespace; those of others are not told."""
    try:
        lines = Path("/proc/net/unix").read_bytes().splitlines()
    except OSError:
        return []
    names = {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8 and fields[7][:1] == b"/"}
    return [Path(os.fsdecode(name)) for name in sorted(names)]


def below(path: Path, folders: Iterable[Path]) -> bool:
    """Whether `path` is one of `folders` or in one of them."""
    return any(path == folder or folder in path.parents for folder in folders)


def _up_to(path: Path, roots: Sequence[Path]) -> list[Path]:
    return [parent for parent in path.parents if below(parent, roots) and parent not in roots]


def _is_real(path: Path, roots: Sequence[Path]) -> bool:
    """Whether `path` is there, and neither it nor a folder between it and its root is a link."""
    return os.path.lexists(path) and not any(one.is_symlink() for one in (path, *_up_to(path, roots)))


def _have_hooks(git: Path, roots: Sequence[Path]) -> None:
    """Make a repository's folder of hooks where it has none, so that it can be guarded; git does so by itself."""
    if _is_real(git / "config", roots) and not os.path.lexists(git / "hooks"):
        with suppress(OSError):
            (git / "hooks").mkdir()


def _admin_folder(root: Path) -> Path | None:
    """Return where git keeps what it knows of the worktree `root`, in its repository; `None` where `root` is none.

    Its `.git` is a file that a command could have written, to name any folder it likes. So the repository has to name
    the worktree as well, in a file that no command in the sandbox of that worktree could have written.
    """
    admin = _path_in(root / ".git", "gitdir: ", root)
    if admin is None or _path_in(admin / "gitdir", "", admin) != root / ".git":
        return None
    common = _path_in(admin / "commondir", "", admin)
    if common is None or admin != common / "worktrees" / admin.name or not (common / "HEAD").is_file():
        return None
    return admin


def _path_in(file: Path, prefix: str, base: Path) -> Path | None:
    """Return the path that `file` holds behind `prefix`, resolved; `None` where there is no such thing."""
    try:
        if file.is_symlink() or not file.is_file():
            return None
        with file.open("rb") as source:
            text = os.fsdecode(source.read(_LONGEST)).strip()
        return (base / text.removeprefix(prefix)).resolve() if text.startswith(prefix) and text else None
    except (OSError, ValueError):
        return None
