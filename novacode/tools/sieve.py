"""Which of very many files are worth reading for a search: ripgrep, where there is one, passes over most of them.

It only ever decides what is not looked at. Which files there are, in which order, and what of them is reported is
decided by the same code with it and without it, so that the answer is the same, byte for byte, on every machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import trio

from novacode.errors import ToolFailed
from novacode.tools.context import ToolContext
from novacode.workspace.base import Command

__all__ = ["BREATH", "Sieve", "find_ripgrep"]

BREATH = 20
"""Files between checkpoints."""

_MOST_FILES = 8000  # in one go
_MOST_ARGUMENTS = 250_000  # bytes of arguments; the tightest system in use takes a megabyte, with the environment
_MOST_BYTES = 200_000_000  # of files
_WORTH = 2_000_000  # bytes of files: fewer are read by ourselves before a process has started
_PATIENCE = 20.0  # seconds for one go
_PER_FILE = 4_000  # bytes that could be read in the time it takes to open a file

# Named files are searched whatever they are called and whoever ignores them; settings of the person do not count.
# Bytes are taken as they are: nothing is decoded and nothing taken for binary.
_OPTIONS = (
    *("--no-config", "--no-messages", "--no-ignore", "--color=never", "--no-mmap"),
    *("--encoding=none", "--text", "--files-with-matches", "--null"),
)


def find_ripgrep(workspace: Path) -> str | None:
    """Return the first `rg` on the search path that the workspace does not hold: the model could have written it."""
    for folder in os.get_exec_path():
        program = os.path.join(folder, "rg")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            places = (Path(folder).resolve(), Path(program).resolve())
            if not any(place == workspace or workspace in place.parents for place in places):
                return program
    return None


class Sieve:
    """Takes the files of a walk below `start` and passes on, in their order, those that may hold a match.

    `pattern` is a byte pattern; without one, or without ripgrep, all files are passed on. So are those of `large` bytes
    or more, and all that are left once ripgrep has failed in any way: then it is not asked again.
    """

    def __init__(self, files: Iterator[str | None], start: Path, pattern: str | None, large: int) -> None:
        self._files, self._start, self._pattern, self._large = files, start, pattern, large
        self._program: str | None = None
        self.ended = False

    async def next(self, ctx: ToolContext) -> Sequence[str]:
        """Return more of the files; `ended` tells whether these were the last. Checkpoints before the first.

        Cancelled, no process is left.
        """
        if self._pattern is not None and self._program is None:
            self._program = find_ripgrep(ctx.workspace.root)
        if self._pattern is None or self._program is None:
            self._pattern = None
            return (await self._some(BREATH))[0]
        listed, asked, size = await self._some(_MOST_FILES)
        if size + _PER_FILE * len(asked) < _WORTH:
            return listed
        names = [f"./{path}" for path in asked]
        command = Command(
            (self._program, *_OPTIONS, "-e", self._pattern, "--", *names), self._start, ctx.call_id, confined=False
        )
        found = await _names_found(command, names, ctx)
        if found is None:
            self._pattern = None
            return listed
        passed_over = set(asked).difference(name.removeprefix("./") for name in found)
        return [path for path in listed if path not in passed_over]

    async def _some(self, most: int) -> tuple[list[str], list[str], int]:
        """Return the next files, those of them that ripgrep can judge, and how many bytes these have."""
        listed: list[str] = []
        asked: list[str] = []
        arguments = size = 0
        await trio.lowlevel.checkpoint()
        for seen, path in enumerate(self._files, 1):
            if seen % BREATH == 0:
                await trio.lowlevel.checkpoint()
            if path is not None:
                listed.append(path)
                length = self._length(path)
                if length is not None:
                    asked.append(path)
                    size += length
                    arguments += len(os.fsencode(path)) + 11  # "./", the end, and the pointer to it
            if len(listed) >= most or arguments >= _MOST_ARGUMENTS or size >= _MOST_BYTES:
                return listed, asked, size
        self.ended = True
        return listed, asked, size

    def _length(self, path: str) -> int | None:
        """Return how many bytes a file has, or `None` where ripgrep is not to be asked about it."""
        if self._pattern is None:
            return None
        try:
            status = os.lstat(f"{self._start}/{path}")
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) and status.st_size < self._large else None


async def _names_found(command: Command, names: Sequence[str], ctx: ToolContext) -> set[str] | None:
    """Return what ripgrep names, or `None` where it has failed, was stopped, or says what cannot be."""
    said = bytearray()

    def output(data: bytes) -> None:
        said.extend(data)

    with trio.move_on_after(_PATIENCE):
        try:
            code = (await ctx.processes.run(command, output, _ignored)).code
        except ToolFailed:  # it could not be started
            return None
        found = {os.fsdecode(name) for name in bytes(said).split(b"\0")[:-1]}
        # 0 is "found", 1 "found nothing", 2 an error, also where there were matches besides.
        return found if code == (0 if found else 1) and found.issubset(names) else None
    return None


def _ignored(_: bytes) -> None:
    """Take no notice of messages: the exit code says enough."""
