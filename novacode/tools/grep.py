"""The `grep` tool."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import attrs
import trio
from attrs.validators import ge, le, min_len

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, ToolContext, ToolOutput, ToolSpec
from novacode.tools.encodings import detect, is_binary, mark_bad_bytes
from novacode.tools.files import chunks, open_regular, printable
from novacode.tools.filetool import search_summary, target
from novacode.tools.glob import require_folder
from novacode.tools.matches import LARGEST_SEARCHED, Matches
from novacode.tools.pathglob import PathGlob
from novacode.tools.patterns import Search, compiled
from novacode.tools.walk import walk
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["GrepArgs", "GrepTool"]

_BREATH = 20  # files between checkpoints

_DESCRIPTION = """Search the content of files for a regular expression (Python syntax), line by line.
Gives `path:line:text` for matches and `path-line-text` for context, sorted by path. What git ignores, binary files
and links are left out. Of long lines only the first 10,000 characters are searched."""


@attrs.frozen
class GrepArgs:
    """Parameters of `grep`."""

    pattern: Annotated[str, "regular expression"] = attrs.field(validator=min_len(1))
    path: Annotated[str, "the folder or file to search"] = "."
    glob: Annotated[str | None, "only files that fit, for example `*.py`; `!` before it for all others"] = None
    ignore_case: Annotated[bool, "upper and lower case alike"] = False
    context: Annotated[int, "lines to show around each match"] = attrs.field(default=0, validator=[ge(0), le(20)])
    limit: Annotated[int, "how many matching lines to show"] = attrs.field(default=200, validator=[ge(1), le(2000)])


class GrepTool:
    """Finds lines by what they hold."""

    spec = ToolSpec("grep", _DESCRIPTION, GrepArgs)

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Reading what it searches."""
        path = target(arguments, workspace, ".")
        return Claims(reads=frozenset({path} if path else ()))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """Reading what it searches."""
        path = target(arguments, workspace, ".")
        return Effects(search_summary("grep", arguments), reads=(path,) if path else ())

    def limit(self, args: GrepArgs) -> float | None:
        """None of its own."""
        return None

    async def run(self, permit: Permit[GrepArgs], ctx: ToolContext) -> ToolOutput:
        """Search; a checkpoint every few files and within large ones, so that a cancel is not kept waiting."""
        args = permit.args
        search = compiled(args.pattern, ignore_case=args.ignore_case)
        matches = Matches(search, args.context, args.limit)
        start = ctx.workspace.resolve(args.path)
        for seen, path in enumerate(_files(start, args)):
            if seen % _BREATH == 0:
                await trio.lowlevel.checkpoint()
            data = _data_of(path) if path is not None else None
            if path is not None and data is not None:
                matches.cut_files += len(data) > LARGEST_SEARCHED
                text = _text_of(data[:LARGEST_SEARCHED], search)
                if text:
                    await matches.look_in(printable(ctx.workspace.display(path)), text)
        return ToolOutput.of(matches.report(f"Nothing below `{args.path}` matches `{args.pattern}`."))


def _files(start: Path, args: GrepArgs) -> Iterable[Path | None]:
    try:
        single = not start.is_dir()
    except (OSError, ValueError):
        single = False
    if not single:
        return _walked(require_folder(start, args.path), args)
    handle, _ = open_regular(start, args.path)  # for its words about what is not there, or no file
    os.close(handle)
    return (start,)


def _walked(folder: Path, args: GrepArgs) -> Iterator[Path | None]:
    wanted = PathGlob(args.glob) if args.glob else None
    for path in walk(folder):
        if path is None:
            yield None
        elif wanted is None or wanted.fits(path):
            yield folder / path


def _data_of(path: Path) -> bytes | None:
    """Return what is searched of `path`, and a byte more of a larger file; `None` where it cannot be read."""
    try:
        handle, _ = open_regular(path, str(path))
    except ToolFailed:  # gone, or turned into something else, since it was listed
        return None
    try:
        return b"".join(chunks(handle, LARGEST_SEARCHED + 1))
    except OSError:
        return None
    finally:
        os.close(handle)


def _text_of(data: bytes, search: Search) -> str:
    """Return the text of a file; empty where it is binary, or cannot hold a match."""
    encoding = detect(data)
    if is_binary(data) or (encoding.name == "utf-8" and search.literal.encode("utf-8", "surrogatepass") not in data):
        return ""
    try:
        return mark_bad_bytes(encoding.decode(data))[0]
    except UnicodeDecodeError:
        return ""
