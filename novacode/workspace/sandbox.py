"""The sandbox of commands on Linux: what bubblewrap is told, so that a command writes in the workspace alone.

The whole file system is there, read-only. Writable are the workspace's folders and a `/tmp` of the session's own.
`/run` is empty, and sockets anywhere else are covered: a daemon that answers there (docker, D-Bus) would do outside
what a command may not do inside. Users, processes, IPC and, unless it is allowed, the network are namespaces of their
own; nothing of a command outlives it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from novacode.values.parts import JSON
from novacode.workspace.sandbox_places import Ground, below, bound_sockets

__all__ = ["Sandbox"]

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")

_TMP = Path("/tmp")
_RUN = Path("/run")

# Where what they lead to is not there; programs do better without them than with an address that is dead.
_UNSET = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "SSH_AUTH_SOCK",
    "TEMP",
    "TMP",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
)


@attrs.frozen
class Sandbox:
    """One session's. `private` is the folder that is `/tmp` inside; `spill` is writable wherever it is."""

    program: str
    version: str
    ground: Ground
    private: Path
    spill: Path | None = None
    network: bool = False

    def argv(self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> list[str]:
        """Return what to start in place of `argv`, which is to run in `cwd`. Reads `/proc` and looks at files."""
        shown = sorted(_shown(environment, network=self.network))
        words = [self.program, "--die-with-parent", *_NAMESPACES, *(() if self.network else ("--unshare-net",))]
        words += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        words += ["--tmpfs", str(_RUN), "--bind", str(self.private), str(_TMP)]
        words += _binds("--ro-bind-try", shown)
        words += _binds("--ro-bind", self._sockets(shown), source=os.devnull)
        words += _binds("--bind", (*self.ground.writable, *self.ground.held))
        words += _binds("--ro-bind", self.ground.guarded)
        words += _binds("--ro-bind", filter(os.path.lexists, self.ground.covered), source=os.devnull)
        for path in map(str, self.ground.blocked):
            words += ["--tmpfs", path, "--remount-ro", path]
        words += _binds("--bind-try", () if self.spill is None else (self.spill,))
        words += ["--setenv", "TMPDIR", str(_TMP)]
        for name in _UNSET:
            words += ["--unsetenv", name]
        return [*words, "--chdir", str(cwd), "--", *argv]

    def with_spill(self, spill: Path) -> Sandbox:
        """Return the same with `spill` writable, which need not be there yet."""
        return attrs.evolve(self, spill=spill.resolve())

    @property
    def summary(self) -> str:
        """What it does, in one line for people."""
        places = ", ".join(map(str, self.ground.writable))
        network = "network allowed" if self.network else "no network"
        return f"sandbox ({self.version}): commands write only in {places} and a /tmp of their own; {network}"

    @property
    def facts(self) -> Mapping[str, JSON]:
        """The same for programs."""
        return {
            "program": self.version,
            "writable": [*map(str, self.ground.writable)],
            "guarded": [*map(str, self.ground.guarded)],
            "network": self.network,
        }

    def _sockets(self, shown: Sequence[Path]) -> list[Path]:
        """Return the sockets outside that a command would see and could talk to: a read-only mount does not stop that.

        Those in a writable folder are known from the start (`Ground.covered`); a new one may be a command's.
        """
        hidden = (_TMP, _RUN)
        return [
            path
            for path in bound_sockets()
            if not below(path, self.ground.writable)
            and (below(path, shown) or not below(path, hidden))
            and _reachable(path)
        ]


def _binds(option: str, paths: Iterable[Path], source: str = "") -> Iterator[str]:
    for path in paths:
        yield from (option, source or str(path), str(path))


def _shown(environment: Mapping[str, str], *, network: bool) -> set[Path]:
    """Return what of the hidden folders commands need: programs that are installed there, the addresses of names."""
    places = [sys.prefix, sys.base_prefix, environment.get("VIRTUAL_ENV", "")]
    places += environment.get("PATH", "").split(os.pathsep)
    if network:
        places.append(os.path.realpath("/etc/resolv.conf"))
    hidden = (_TMP, _RUN)
    paths = {Path(place) for place in places if place.startswith("/")}
    return {path for path in paths if below(path, hidden) and path not in hidden and ".." not in path.parts}


def _reachable(path: Path) -> bool:
    """Whether a command would get to `path`: inside, root has no more rights than the owner of its files."""
    try:
        parents = [os.stat(parent) for parent in path.parents]
        os.lstat(path)
    except OSError:
        return False
    return os.geteuid() != 0 or all(parent.st_uid == 0 or parent.st_mode & 0o001 for parent in parents)
