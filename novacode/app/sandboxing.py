"""The sandbox of a session: made where the settings ask for one, tried before anything relies on it, or an error."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

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
    _keep_project_settings(roots, TrustedFolders(setup.home))
    # Not in `TMPDIR`: that could be in the workspace, where a command could put links.
    private = Path(tempfile.mkdtemp(prefix="novacode-sandbox-", dir="/tmp"))
    try:
        yield await try_sandbox(setup.environ, roots, setup.home, private, network=setup.settings.sandbox_network)
    finally:
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


def _keep_project_settings(roots: Sequence[Path], trusted: TrustedFolders) -> None:
    """Have a `.novacode` in each folder that is trusted, since one that a command made would count at once."""
    for root in roots:
        if trusted.trusts(root):
            with suppress(OSError):
                (root / ".novacode").mkdir(exist_ok=True)
