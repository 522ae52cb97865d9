"""The `glob` tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import attrs
import trio
from attrs.validators import ge, le, min_len

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.files import printable
from novacode.tools.filetool import search_summary, target
from novacode.tools.pathglob import PathGlob
from novacode.tools.walk import walk
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["GlobArgs", "GlobTool", "require_folder"]

_DESCRIPTION = """List files whose path fits a pattern, sorted by path. What git ignores is left out.
`*` stays within one folder, `**` spans folders, `{a,b}` is either. `*.py` finds them at any depth, `src/*.py` only
there."""

_BREATH = 200  # entries between checkpoints


@attrs.frozen
class GlobArgs:
    """Parameters of `glob`."""

    pattern: Annotated[str, "for example `**/*.py`, `src/**/test_*.{js,ts}`"] = attrs.field(validator=min_len(1))
    path: Annotated[str, "the folder to look in"] = "."
    limit: Annotated[int, "how many paths to list"] = attrs.field(default=500, validator=[ge(1), le(5000)])


class GlobTool:
    """Finds files by name."""

    spec = ToolSpec("glob", _DESCRIPTION, GlobArgs)

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Reading the folder it looks in."""
        path = target(arguments, workspace, ".")
        return Claims(reads=frozenset({path} if path else ()))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """Reading the folder it looks in."""
        path = target(arguments, workspace, ".")
        return Effects(search_summary("glob", arguments), reads=(path,) if path else ())

    def limit(self, args: GlobArgs) -> float | None:
        """None of its own."""
        return None

    async def run(self, permit: Permit[GlobArgs], ctx: ToolContext) -> ToolOutput:
        """Walk the folder; a checkpoint every few hundred entries."""
        args = permit.args
        folder = require_folder(ctx.workspace.resolve(args.path), args.path)
        wanted = PathGlob(_relative(args.pattern, folder))
        found: list[str] = []
        count = 0
        for seen, path in enumerate(walk(folder)):
            if seen % _BREATH == 0:
                await trio.lowlevel.checkpoint()
            if path is not None and wanted.fits(path) and not (ctx.unreadable and ctx.unreadable(folder / path)):
                count += 1
                if len(found) < args.limit:
                    found.append(printable(ctx.workspace.display(folder / path)))
        if not found:
            return ToolOutput.of(f"No file below `{args.path}` fits `{args.pattern}`.")
        if count > len(found):
            found.append(f"[{count - len(found)} more of {count} not listed; narrow the pattern or raise `limit`]")
        return ToolOutput.of("\n".join(found))


def require_folder(path: Path, shown: str) -> Path:
    """Return `path`, which is a folder. Raises `ToolFailed` where it is not."""
    try:
        if path.is_dir():
            return path
        there = path.exists()
    except (OSError, ValueError):
        there = False
    raise ToolFailed(f"`{printable(shown)}` {'is not a folder' if there else 'does not exist'}.")


def _relative(pattern: str, folder: Path) -> str:
    """Return an absolute pattern below `folder` as a relative one: models write those too."""
    return pattern.removeprefix(f"{folder}/") if pattern.startswith("/") else pattern
