"""The sandbox of a session: made where the settings ask for one, tried before anything relies on it, or an error."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from novacode.app.settings import project_folder
from novacode.app.trust import TrustedFolders
from novacode.errors import SettingsError

if TYPE_CHECKING:
    from novacode.app.setup import Setup
    from novacode.workspace.sandbox import Sandbox

__all__ = ["sandbox_of", "try_sandbox"]

_INSTALL = (
    "install bubblewrap (apt install bubblewrap, dnf install bubblewrap, or pip install 'novacode[sandbox]'), or run"
    " without --sandbox (`sandbox = false`): then permissions are all that holds a command back"
)


@asynccontextmanager
async def sandbox_of(setup: Setup) -> AsyncIterator[Sandbox | None]:
    """Have the sandbox that the settings of `setup` ask for, `None` where they ask for none or nothing real is run.

    Raises `SettingsError` where it is asked for and there can be none, with what to do. Its `/tmp` is removed at the
    end; to be left only when all commands have ended.
    """
    unreal = setup.simulate or (setup.replay is not None and setup.replay.everything)
    if not setup.settings.sandbox or unreal:
        yield None
        return
    roots = _resolved(setup.cwd, *setup.extra)
    blocked = tuple(_without_settings(roots, TrustedFolders(setup.home)))
    # Not in `TMPDIR`: that could be in the workspace, where a command could put links.
    private = Path(tempfile.mkdtemp(prefix="novacode-sandbox-", dir="/tmp"))
    try:
        made = await try_sandbox(setup.environ, roots, setup.home, private, network=setup.settings.sandbox_network)
        yield attrs.evolve(made, ground=made.ground.blocking(blocked))
    finally:
        _free_again(blocked)
        shutil.rmtree(private, ignore_errors=True)


async def try_sandbox(
    environ: Mapping[str, str], roots: Sequence[Path], home: Path, private: Path, *, network: bool = False
) -> Sandbox:
    """Return a sandbox that has been seen to work. Raises `SettingsError` with what is missing and what to do."""
    if sys.platform != "linux":
        raise SettingsError(f"--sandbox: there is none for {sys.platform}, only for Linux. Run without it")
    from novacode.workspace.sandbox import Sandbox
    from novacode.workspace.sandbox_places import bound_sockets, ground_of
    from novacode.workspace.sandbox_probe import find_bwrap, probe, version_of

    if Path("/") in roots:
        raise SettingsError("--sandbox: the working folder is /, which leaves nothing to protect. Work in another (-C)")
    program = find_bwrap(environ, roots)
    if program is None:
        raise SettingsError(f"--sandbox: bubblewrap (bwrap) is not on the PATH. What to do: {_INSTALL}")
    version = await version_of(program)
    sandbox = Sandbox(program, version, ground_of(roots, _resolved(home), bound_sockets()), private, network=network)
    await probe(sandbox)
    return sandbox


def _resolved(*paths: Path) -> list[Path]:
    return [path.resolve() for path in paths]


def _without_settings(roots: Sequence[Path], trusted: TrustedFolders) -> Iterator[Path]:
    """Yield the `.novacode` that is not there in each of `roots` where one that a command made would count at once.

    It would where the folder is trusted, and where it took the place of settings further up.
    """
    for root in roots:
        settings = root / ".novacode"
        if not os.path.lexists(settings) and (trusted.trusts(root) or project_folder(root) != root):
            yield settings


def _free_again(folders: Iterable[Path]) -> None:
    """Remove what bubblewrap has made to mount something on, where it is empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
