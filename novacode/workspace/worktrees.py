"""A folder of its own for one run: a git worktree on a new branch, outside of the repository's folder.

Calls of one run can get in each other's way, and in a person's; a worktree keeps a whole run apart. It is made from
the last commit: what is not committed stays where it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from novacode.errors import ToolFailed, UsageError
from novacode.values.ids import CallId
from novacode.workspace.base import Command, Processes

__all__ = ["PREFIX", "Worktree", "add_worktree", "is_worktree_name", "remove_unchanged"]

PREFIX = "novacode/"
"""What the branches of worktrees begin with."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock$|$)){0,63}")
_MARKER = CallId("worktree")
_MISLEADING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")
"""With one of these set, git works on another tree than that of the folder it is called in: ours, or a person's."""


@attrs.frozen
class Worktree:
    """A worktree at `path` on `branch`, made at the commit `base` of `repository`, the folder it was asked for in.

    `cwd` is the folder in it that corresponds to the one it was asked for in. `notices` say what is not in it.
    """

    path: Path
    branch: str
    base: str
    repository: Path
    cwd: Path
    notices: tuple[str, ...] = ()


@attrs.frozen
class _Said:
    """What a git command ended with."""

    code: int
    out: str
    err: str


def is_worktree_name(text: str) -> bool:
    """Whether `text` can name a worktree, and so the end of a branch and a folder."""
    return _NAME.fullmatch(text) is not None


async def add_worktree(
    processes: Processes, cwd: Path, folder: Path, name: str, environ: Mapping[str, str]
) -> Worktree:
    """Make the worktree `folder/name` of the repository that `cwd` is in, on the new branch `novacode/name`.

    Raises `UsageError` where that cannot be done, and says what to do; nothing is left behind then. Cancelled, git is
    stopped; what it has made until then stays, and `git worktree prune` knows it.
    """
    if not is_worktree_name(name):
        raise UsageError(f"{name!r} cannot name a worktree: letters, digits, `.`, `_` and `-`, beginning with no sign")
    if misleading := [variable for variable in _MISLEADING if environ.get(variable)]:
        raise UsageError(
            f"{' and '.join(misleading)} would lead git out of a worktree: unset it, or leave --worktree out"
        )
    git = _Git(processes, cwd)
    prefix = await _prefix(git)
    base = await git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if base.code:
        raise UsageError(f"{cwd} is in a repository without a commit, so there is nothing to make a worktree from")
    notices = await _left_behind(git)
    path, branch = folder / name, f"{PREFIX}{name}"
    known = await git.run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    _must_be_free(path, branch, taken=known.code == 0)
    await git.must("worktree", "add", "--quiet", "-b", branch, str(path), base.out)
    made = Worktree(path, branch, base.out, cwd, path / prefix, notices)
    if not made.cwd.is_dir():
        await remove_unchanged(processes, made)
        raise UsageError(f"{cwd} is in no commit of its repository, so a worktree does not have it: commit it first")
    return made


async def remove_unchanged(processes: Processes, made: Worktree) -> bool:
    """Remove the worktree and its branch where nothing was committed or changed in it; whether it is gone.

    Files that the repository ignores do not count, and go with it. Never raises for git: what cannot be looked at or
    removed stays.
    """
    inside, outside = _Git(processes, made.path), _Git(processes, made.repository)
    try:
        status = await inside.run("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty")
        heads = [await inside.run("rev-parse", ref) for ref in ("HEAD", f"refs/heads/{made.branch}")]
        if status.code or status.out or [(head.code, head.out) for head in heads] != [(0, made.base)] * 2:
            return False
        if await _has_entered_submodule(inside):
            return False
        if (await outside.run("worktree", "remove", str(made.path))).code:
            return False
        return (await outside.run("branch", "-D", "--quiet", made.branch)).code == 0
    except ToolFailed:
        return False


async def _has_entered_submodule(git: _Git) -> bool:
    """Whether something is in the folder of a submodule, which is empty in a new worktree.

    A command, sandboxed or not, may have made a repository there. Git would go into it to see whether it is clean, and
    start what its configuration names (`core.fsmonitor`, a filter): outside, and without anybody having allowed it.
    """
    listed = await git.run("ls-files", "--stage", "-z")
    links = [entry.partition("\t")[2] for entry in listed.out.split("\0") if entry.startswith("160000 ")]
    return listed.code != 0 or _any_there(git.cwd / link / ".git" for link in links)


def _any_there(paths: Iterable[Path]) -> bool:
    return any(os.path.lexists(path) for path in paths)


class _Git:
    """git in one folder."""

    def __init__(self, processes: Processes, cwd: Path) -> None:
        self._processes = processes
        self.cwd = cwd

    async def run(self, *arguments: str) -> _Said:
        """Run it to its end. Raises `ToolFailed` where there is no git."""
        out, err = bytearray(), bytearray()
        ended = await self._processes.run(Command(("git", *arguments), self.cwd, _MARKER), out.extend, err.extend)
        return _Said(ended.code, out.decode("utf-8", "replace").strip(), err.decode("utf-8", "replace").strip())

    async def must(self, *arguments: str) -> str:
        """Run it and return what it says. Raises `UsageError` with its own words where it fails."""
        said = await self.run(*arguments)
        if said.code:
            raise UsageError(f"git {arguments[0]} {arguments[1]} failed: {said.err or f'exit {said.code}'}")
        return said.out


async def _prefix(git: _Git) -> str:
    """Return the path of the folder within its repository."""
    try:
        said = await git.run("rev-parse", "--is-inside-work-tree", "--show-prefix")
    except ToolFailed as error:
        raise UsageError(f"--worktree needs git: {error}") from error
    inside, _, prefix = said.out.partition("\n")
    if said.code or inside != "true":
        why = f" ({said.err})" if said.err and "not a git repository" not in said.err else ""
        raise UsageError(
            f"--worktree needs a git repository, and {git.cwd} is in no working tree of one{why}: `git init` and"
            " commit, or leave --worktree out"
        )
    return prefix


async def _left_behind(git: _Git) -> tuple[str, ...]:
    """Return notices on what the worktree will not have. Raises `UsageError` for submodules with changes.

    Their commits may be nowhere but here, and a worktree that lacks them does not even say so when it is built.
    """
    said = await git.must(
        "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=none"
    )
    lines = [line.split(" ", 8) for line in said.split("\0") if line]
    dirty = [fields[-1] for fields in lines if fields[0] != "?" and fields[2].startswith("S") and fields[2] != "S..."]
    if dirty:
        raise UsageError(
            f"submodules with changes ({', '.join(dirty)}): a worktree would be made without them; commit them and the"
            " new state of the submodule first"
        )
    notices = []
    if lines:
        notices.append(f"{len(lines)} uncommitted change{'s' * (len(lines) != 1)} are not in the worktree")
    if await git.must("ls-files", "--stage", "--", ":(top,glob)**/.gitmodules"):
        notices.append("submodules are not checked out in the worktree: `git submodule update --init` there does it")
    return tuple(notices)


def _must_be_free(path: Path, branch: str, *, taken: bool) -> None:
    if path.exists():
        raise UsageError(
            f"the worktree {path} is there already: work in it (-C {path}), choose another name, or remove it with"
            f" `git worktree remove {path}` and `git branch -D {branch}`"
        )
    if taken:
        raise UsageError(
            f"the branch {branch} is there already: choose another name, or remove it with `git branch -D {branch}`"
        )
