"""A working folder with a file history: calls are functions that change it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from novacode.values.events import FilesChanged
from novacode.workspace.changes import ChangeLog, read_log
from novacode.workspace.contents import Contents
from novacode.workspace.listing import Bounds, Surveyor
from novacode.workspace.restore import Report, Work, next_rewind, restore
from novacode.workspace.rewind import Item, Verdict, plan
from novacode.workspace.snapshots import EXACT, FileHistory, Keeping, log_path
from novacode.workspace.states import digest_of

__all__ = ["EVERYTHING", "History", "git"]

EVERYTHING = Path("/")


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder`, as a person would, and return what it says."""
    who = ["-c", "user.name=p", "-c", "user.email=p@example.com", "-c", "init.defaultBranch=main"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *who, *arguments], cwd=folder, env=environ, capture_output=True, check=True)
    return done.stdout.decode()


class History:
    """`work` is the folder, `store` where its history is. Set `bounds` and `patience` before the first call."""

    def __init__(self, root: Path, store: Path | None = None) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.store = store or root / "home/snapshots"
        self.bounds = Bounds()
        self.patience = 30.0
        self._files: FileHistory | None = None

    @property
    def files(self) -> FileHistory:
        """The history itself; made at its first use."""
        if self._files is None:
            keeping = Keeping(self.store, "s", (self.work,), self.bounds, (self.store.parent,), patience=self.patience)
            self._files = FileHistory(keeping)
        return self._files

    @property
    def log(self) -> Path:
        return log_path(self.store, "s")

    def write(self, name: str, text: str) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def call(
        self, call: str, act: Callable[[], Any], paths: Sequence[Path] = (EVERYTHING,)
    ) -> FilesChanged | None:
        """Take, act and record as the pipeline does; the tool is called `tool`."""
        await self.files.take(call, paths)  # type: ignore[arg-type]
        act()
        try:
            return await self.files.record(call, "tool")  # type: ignore[arg-type]
        finally:
            self.files.close(call)  # type: ignore[arg-type]

    def plan(self, since: str) -> tuple[Item, ...]:
        """Return what going back to before `since` would do."""
        entries = read_log(self.log)
        start = next(place for place, entry in enumerate(entries) if entry.call == since)
        return plan(entries[start:], Surveyor(digest_of, EXACT, beat=_go_on).look)

    def rewind(self, since: str, *, force: bool = False) -> Report:
        """Go back to before `since`."""
        wanted = {Verdict.RESTORE, Verdict.CONFLICT} if force else {Verdict.RESTORE}
        items = [item for item in self.plan(since) if item.verdict in wanted]
        contents = Contents(self.store)
        work = Work(contents, ChangeLog(self.log), Surveyor(contents.put, EXACT, beat=_go_on).look)
        return restore(items, next_rewind(read_log(self.log)), work)

    def tree(self, folder: Path | None = None) -> dict[str, tuple[int, bytes]]:
        """Return all there is below `folder`: kind and mode, and content or target."""
        top = os.fsencode(folder or self.work)
        paths = [os.path.join(parent, name) for parent, *names in os.walk(top) for name in (*names[0], *names[1])]
        return {os.fsdecode(os.path.relpath(path, top)): _there(path) for path in paths}


def _go_on() -> None:
    return None


def _there(path: bytes) -> tuple[int, bytes]:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return stat.S_IFLNK, os.readlink(path)
    if not stat.S_ISREG(mode):
        return mode, b""
    with open(path, "rb") as file:
        return mode, file.read()
