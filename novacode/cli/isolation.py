"""The folder a session works in: the one it was asked for in, or a worktree made for it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from novacode import grace
from novacode.app.settings import environment, home_folder
from novacode.cli.escape import visible
from novacode.cli.opening import Opening
from novacode.errors import UsageError
from novacode.sessions.store import project_key
from novacode.workspace.processes import RealProcesses

if TYPE_CHECKING:
    from novacode.workspace.worktrees import Worktree

__all__ = ["working_folder"]

_REMOVING = 10.0
"""Seconds git may take to remove a worktree in which nothing was changed."""


@asynccontextmanager
async def working_folder(opening: Opening) -> AsyncIterator[Path]:
    """Yield the folder to work in. A worktree is told of before and after, and removed where nothing was changed.

    It is in NovaCode's own folder, where no `git status` of the project sees it. Raises `UsageError` where there
    cannot be one.
    """
    if opening.worktree is None:
        yield opening.cwd
        return
    # Imported where there is to be one: other runs start 3 ms sooner.
    from novacode.workspace.worktrees import add_worktree, remove_unchanged

    _must_be_new(opening)
    processes, environ = RealProcesses(), environment()
    folder = home_folder(environ) / "worktrees" / project_key(opening.cwd)
    name = opening.worktree or f"w-{os.urandom(4).hex()}"
    made = await add_worktree(processes, opening.cwd, folder, name, environ)
    if not opening.quiet:
        _tell(f"working in {made.path}, on the new branch {made.branch}", *made.notices)
    try:
        yield made.cwd
    finally:
        gone = False
        with grace.cleanup(_REMOVING):
            gone = await remove_unchanged(processes, made)
            await processes.sweep()
        _tell(_end(made, gone=gone))


def _must_be_new(opening: Opening) -> None:
    """Refuse what does not go with a folder that has not been there before."""
    if opening.simulate:
        raise UsageError("--worktree makes a real folder, and with --simulate nothing real is changed: leave one out")
    if opening.session.latest or opening.session.wanted:
        raise UsageError(
            "--worktree begins in a new folder, where there is no session to go on with: leave it out and go on in the"
            " folder of the session (-C DIR)"
        )


def _end(made: Worktree, *, gone: bool) -> str:
    if gone:
        return f"nothing was changed in the worktree, so it is removed, and the branch {made.branch} with it"
    return (
        f"the work is in {made.path}, on the branch {made.branch}. To take over what is committed there:"
        f" git merge {made.branch}; to remove it: git worktree remove {made.path} && git branch -D {made.branch}"
    )


def _tell(*lines: str) -> None:
    for line in lines:
        click.echo(f"novacode: {visible(line)}", err=True)
