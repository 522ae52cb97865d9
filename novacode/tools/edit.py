"""The `edit` tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import attrs

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.diffs import unified
from novacode.tools.encodings import Encoding, detect, mark_bad_bytes
from novacode.tools.files import Loaded, digest_of, load, load_now, printable, put
from novacode.tools.filetool import summary, target
from novacode.tools.matching import Change, plan
from novacode.tools.schema import text_of
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["EditArgs", "EditTool"]

_PREVIEW = 1_000_000  # bytes of the largest file whose change is shown beforehand
_MOST_LISTED = 20

_DESCRIPTION = """Replace text in a file that has been read. `old` must be in the file exactly once, or set replace_all.
Copy it exactly, without the line numbers that `read` shows, and with enough around it to be the only such place.
Line ends, encoding and everything outside the match stay as they are. Refused if the file has changed since it was
read: then read it again."""


@attrs.frozen
class EditArgs:
    """Parameters of `edit`."""

    path: Annotated[str, "the file, absolute or relative to the workspace"]
    old: Annotated[str, "the text to replace"]
    new: Annotated[str, "what to put there; may be empty"]
    replace_all: Annotated[bool, "replace every place where `old` is, not just one"] = False


class EditTool:
    """Replaces text in a file, and touches nothing else of it."""

    spec = ToolSpec("edit", _DESCRIPTION, EditArgs)

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Writing its path, by where it really leads."""
        path = target(arguments, workspace)
        return Claims(writes=frozenset({path} if path else ()))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """Reading and writing its path; the details are the change, where it is cheap to work out."""
        path = target(arguments, workspace)
        paths = (path,) if path else ()
        details = _preview(arguments, path) if path else ""
        return Effects(summary("edit", arguments, workspace), reads=paths, writes=paths, details=details)

    def limit(self, args: EditArgs) -> float | None:
        """None of its own."""
        return None

    async def run(self, permit: Permit[EditArgs], ctx: ToolContext) -> ToolOutput:
        """Do the edit: whole, or not at all. Raises `ToolFailed` with what to do, the file unchanged.

        From the change of the file to the note of what it holds there is no checkpoint.
        """
        args = permit.args
        path = ctx.workspace.resolve(args.path)
        loaded = await load(path, args.path)
        _require_seen(path, loaded, args.path, ctx)
        encoding, text, change = _planned(loaded.data, args)
        data = encoding.encode(change.text)
        await put(path, args.path, data, loaded.status)
        ctx.seen.note(path, digest_of(data))
        return ToolOutput.of(_told(args, change), diff=_diff(text, change.text, ctx.workspace.display(path)))


def _require_seen(path: Path, loaded: Loaded, shown: str, ctx: ToolContext) -> None:
    seen = ctx.seen.digest(path)
    if seen is None:
        raise ToolFailed(f"`{shown}` has not been read yet. Read it first, then edit it.")
    if seen != digest_of(loaded.data):
        raise ToolFailed(f"`{shown}` has changed since it was read. Read it again, then edit it.")


def _planned(data: bytes, args: EditArgs) -> tuple[Encoding, str, Change]:
    encoding = detect(data)
    for name, value in (("old", args.old), ("new", args.new)):
        if not _is_text(value):
            raise ToolFailed(
                f"`{name}` has half of a surrogate pair in it, which no file can hold. Give whole characters."
            )
    try:
        text = encoding.decode(data)
        same = encoding.encode(text) == data
    except UnicodeError:
        text, same = "", False
    if not same:
        raise ToolFailed(
            f"`{args.path}` is marked as {encoding.name.upper()} but is not valid as such; it is left unchanged. "
            "Convert it first, or change it with a shell command."
        )
    return encoding, text, plan(text, args.old, args.new, everywhere=args.replace_all)


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _told(args: EditArgs, change: Change) -> str:
    some = ", ".join(map(str, change.lines[:_MOST_LISTED])) + (", …" if len(change.lines) > _MOST_LISTED else "")
    count = len(change.lines)
    places = f"at line {some}" if count == 1 else f"in {count} places, at lines {some}"
    how = f" `old` was not there exactly; it was matched {change.how}." if change.how else ""
    return f"Edited `{printable(args.path)}` {places}.{how}"


def _diff(old: str, new: str, name: str) -> str:
    return mark_bad_bytes(unified(old, new, printable(name)))[0]


def _preview(arguments: Mapping[str, JSON], path: Path) -> str:
    old, new = text_of(arguments, "old"), text_of(arguments, "new")
    data = load_now(path, _PREVIEW) if old is not None and new is not None else None
    if data is None or old is None or new is None:
        return ""
    args = EditArgs(str(arguments.get("path")), old, new, arguments.get("replace_all") is True)
    try:
        _, text, change = _planned(data, args)
    except ToolFailed as refused:
        return f"This edit would fail: {refused}"
    return _diff(text, change.text, args.path)
