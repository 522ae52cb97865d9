"""The `grep` tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated

import attrs
import trio
from attrs.validators import ge, le, min_len

from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.bytepattern import byte_pattern
from novacode.tools.context import ToolContext
from novacode.tools.encodings import detect, is_binary, mark_bad_bytes
from novacode.tools.files import load_listed, open_regular, printable
from novacode.tools.filetool import search_summary, target
from novacode.tools.glob import require_folder
from novacode.tools.matches import LARGEST_SEARCHED, Matches
from novacode.tools.pathglob import PathGlob
from novacode.tools.patterns import Search, compiled
from novacode.tools.sieve import BREATH, Sieve
from novacode.tools.walk import walk
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["GrepArgs", "GrepTool"]

_MOST = LARGEST_SEARCHED + 1  # bytes read of a file: one more tells that there is more
_BREATH_BYTES = 100_000  # of one file that count as another file

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
        prefix = _prefix(start, args, ctx.workspace)
        kept_back: set[str] = set()
        sieve = Sieve(
            iter(_files(start, args, ctx.unreadable, kept_back)),
            start,
            byte_pattern(args.pattern, ignore_case=args.ignore_case),
            _MOST,
        )
        due = 0
        while not sieve.ended:
            for path in await sieve.next(ctx):
                due += 1
                if due >= BREATH:
                    due = 0
                    await trio.lowlevel.checkpoint()
                data = load_listed(f"{start}/{path}" if path else str(start), _MOST)
                if data is None:
                    continue
                due += len(data) // _BREATH_BYTES
                matches.cut_files += len(data) == _MOST
                text = _text_of(data[:LARGEST_SEARCHED], search)
                if text:
                    await matches.look_in(printable(prefix + path), text)
        report = matches.report(f"Nothing below `{args.path}` matches `{args.pattern}`.")
        return ToolOutput.of(f"{report}\n{_left_out(len(kept_back))}" if kept_back else report)


def _prefix(start: Path, args: GrepArgs, workspace: Workspace) -> str:
    """Return what comes before a path below `start` when it is shown. Raises `ToolFailed` for what is not there."""
    try:
        is_file = start.exists() and not start.is_dir()
    except (OSError, ValueError):
        is_file = False
    if is_file:
        handle, _ = open_regular(start, args.path)  # for its words about what is no regular file
        os.close(handle)
        return workspace.display(start)
    shown = workspace.display(require_folder(start, args.path))
    return "" if shown == "." else f"{shown}/"


def _files(
    start: Path, args: GrepArgs, unreadable: Callable[[Path], bool] | None, kept_back: set[str]
) -> Iterable[str | None]:
    """Yield the paths below `start` that are searched, an empty one for `start` itself; `None` to take a breath.

    Those that are `unreadable` go to `kept_back`.
    """
    if not start.is_dir():
        yield ""
        return
    wanted = PathGlob(args.glob) if args.glob else None
    for path in walk(start):
        if path is not None and wanted is not None and not wanted.fits(path):
            continue
        if path is not None and unreadable is not None and unreadable(start / path):
            kept_back.add(path)
        else:
            yield path


def _left_out(count: int) -> str:
    return f"[{count} files were left out: a rule keeps them from being read]"


def _text_of(data: bytes, search: Search) -> str:
    """Return the text of a file; empty where it is binary, or cannot hold a match."""
    encoding = detect(data)
    if is_binary(data) or (encoding.name == "utf-8" and search.literal.encode("utf-8", "surrogatepass") not in data):
        return ""
    try:
        return mark_bad_bytes(encoding.decode(data))[0]
    except UnicodeDecodeError:
        return ""
