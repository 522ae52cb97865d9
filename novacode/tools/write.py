"""The `write` tool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import attrs

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.diffs import unified
from novacode.tools.encodings import detect, is_binary, mark_bad_bytes
from novacode.tools.files import Loaded, digest_of, load, load_now, printable, put, require_regular, worded
from novacode.tools.filetool import summary, target
from novacode.tools.schema import text_of
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["WriteArgs", "WriteTool"]

_PREVIEW = 1_000_000  # bytes, old and new, up to which a change is shown

_DESCRIPTION = """Create a file, or replace the whole content of one that has been read. Folders are made as needed.
What is written is exactly `content`, in UTF-8: line ends are not changed, no newline is added.
Refused if the file exists and has not been read, or has changed since. To change a part of a file, use `edit`."""


@attrs.frozen
class WriteArgs:
    """Parameters of `write`."""

    path: Annotated[str, "the file, absolute or relative to the workspace"]
    content: Annotated[str, "all the file shall hold; may be empty"]


class WriteTool:
    """Makes a file hold exactly what was given."""

    spec = ToolSpec("write", _DESCRIPTION, WriteArgs)

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Writing its path, by where it really leads."""
        path = target(arguments, workspace)
        return Claims(writes=frozenset({path} if path else ()))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """Writing its path; the details are the change, where it is cheap to work out."""
        path, content = target(arguments, workspace), text_of(arguments, "content")
        shown = text_of(arguments, "path") or ""
        details = _preview(path, content, shown) if path and content is not None else ""
        return Effects(summary("write", arguments, workspace), writes=(path,) if path else (), details=details)

    def limit(self, args: WriteArgs) -> float | None:
        """None of its own."""
        return None

    async def run(self, permit: Permit[WriteArgs], ctx: ToolContext) -> ToolOutput:
        """Write the file: whole, or not at all. Raises `ToolFailed` with what to do, the file unchanged.

        From the change of the file to the note of what it holds there is no checkpoint.
        """
        args = permit.args
        path = ctx.workspace.resolve(args.path)
        data = _encoded(args.content)
        old = await _old(path, args.path, ctx)
        if old is None:
            with worded(args.path):
                os.makedirs(path.parent, exist_ok=True)
        await put(path, args.path, data, None if old is None else old.status)
        ctx.seen.note(path, digest_of(data))
        done = "Created" if old is None else "Replaced"
        text = f"{done} `{printable(args.path)}`: {len(data)} bytes, {args.content.count(chr(10))} newlines."
        diff = _diff(old.data if old else b"", data, ctx.workspace.display(path))
        return ToolOutput.of(text, diff=diff)


def _encoded(content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as refused:
        raise ToolFailed(
            f"`content` has half of a surrogate pair at character {refused.start}, which UTF-8 cannot hold. "
            "Nothing was written."
        ) from None


async def _old(path: Path, shown: str, ctx: ToolContext) -> Loaded | None:
    """Return what `path` holds, after making sure that the model knows it; `None` where there is nothing."""
    try:
        with worded(shown):
            require_regular(os.stat(path), shown)
    except ToolFailed as refused:
        if isinstance(refused.__cause__, FileNotFoundError):
            return None
        raise
    seen = ctx.seen.digest(path)
    if seen is None:
        raise ToolFailed(f"`{printable(shown)}` exists and has not been read. Read it first, or use another name.")
    loaded = await load(path, shown)
    if seen != digest_of(loaded.data):
        raise ToolFailed(f"`{printable(shown)}` has changed since it was read. Read it again before replacing it.")
    return loaded


def _diff(old: bytes, new: bytes, name: str) -> str:
    if len(old) + len(new) > 2 * _PREVIEW or is_binary(old) or detect(old).name != "utf-8":
        return ""
    before = old.decode("utf-8", "surrogateescape")  # with its byte order mark: losing that is a change too
    return mark_bad_bytes(unified(before, new.decode("utf-8"), printable(name)))[0]


def _preview(path: Path, content: str, name: str) -> str:
    old = load_now(path, _PREVIEW) or b""
    try:
        return _diff(old, content.encode("utf-8"), name) if len(content) <= _PREVIEW else ""
    except UnicodeEncodeError:
        return ""
