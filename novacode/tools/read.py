"""The `read` tool."""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import attrs
import trio
from attrs.validators import ge, le

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.encodings import Encoding, detect, is_binary, mark_bad_bytes
from novacode.tools.files import LARGEST, chunks, digest_of, finish_digest, load, open_regular, printable, worded
from novacode.tools.filetool import summary, target
from novacode.tools.window import LineWindow
from novacode.values.parts import JSON, Image, Text
from novacode.workspace.paths import Workspace

__all__ = ["ReadArgs", "ReadTool"]

_BUDGET = 60_000  # characters of one result
_IMAGE_LIMIT = 3_750_000  # bytes: 5 MB as base64, the least that a provider takes

_DESCRIPTION = """Read a file. Text comes with line numbers: a number, a tab, the line; they are not part of the file.
At most 2000 lines or about 60,000 characters at a time: read on with `offset`. Lines over 2000 characters are cut.
PNG, JPEG, GIF and WebP files are shown as images. Folders, pipes and devices are refused.
A file has to be read before `edit` or `write` may change it."""


@attrs.frozen
class ReadArgs:
    """Parameters of `read`."""

    path: Annotated[str, "the file, absolute or relative to the workspace"]
    offset: Annotated[int, "first line to show, counted from 1"] = attrs.field(default=1, validator=ge(1))
    limit: Annotated[int, "how many lines to show"] = attrs.field(default=2000, validator=[ge(1), le(20_000)])


class ReadTool:
    """Shows a file, and notes what it held."""

    spec = ToolSpec("read", _DESCRIPTION, ReadArgs)

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Reading its path."""
        path = target(arguments, workspace)
        return Claims(reads=frozenset({path} if path else ()))

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """Reading its path."""
        path = target(arguments, workspace)
        return Effects(summary("read", arguments, workspace), reads=(path,) if path else ())

    def limit(self, args: ReadArgs) -> float | None:
        """None of its own."""
        return None

    async def run(self, permit: Permit[ReadArgs], ctx: ToolContext) -> ToolOutput:
        """Read the file, in chunks with a checkpoint after each. Raises `ToolFailed` for what cannot be shown."""
        args = permit.args
        path = ctx.workspace.resolve(args.path)
        handle, status = open_regular(path, args.path)
        try:
            with worded(args.path):
                start = os.pread(handle, 16, 0) if status.st_size else b""
            media_type = _image_type(start)
            if media_type is None:
                return await _read_text(handle, path, args, ctx)
        finally:
            os.close(handle)
        return await _read_image(path, media_type, args, ctx)


async def _read_text(handle: int, path: Path, args: ReadArgs, ctx: ToolContext) -> ToolOutput:
    reader = _Reader(args)
    with worded(args.path):
        for chunk in chunks(handle, LARGEST + 1):
            reader.feed(chunk)
            await trio.lowlevel.checkpoint()
    text = reader.close()
    if reader.size <= LARGEST:
        ctx.seen.note(path, reader.digest)
    return ToolOutput.of(text)


async def _read_image(path: Path, media_type: str, args: ReadArgs, ctx: ToolContext) -> ToolOutput:
    loaded = await load(path, args.path)
    size = len(loaded.data)
    if size > _IMAGE_LIMIT:
        raise ToolFailed(
            f"`{args.path}` is an image of {size} bytes; {_IMAGE_LIMIT} can be shown at most. Make a smaller copy."
        )
    ctx.seen.note(path, digest_of(loaded.data))
    picture = Image(media_type, base64.b64encode(loaded.data).decode("ascii"))
    return ToolOutput((Text(f"{args.path}: {media_type}, {size} bytes"), picture))


class _Reader:
    """Takes a file's bytes chunk by chunk; gives the text for the model and the digest of the whole."""

    def __init__(self, args: ReadArgs) -> None:
        self._args = args
        self._window = LineWindow(args.offset, args.limit, _BUDGET)
        self._hash = hashlib.sha256()
        self._encoding = Encoding()
        self._decoder: codecs.IncrementalDecoder | None = None
        self._bad = self._nuls = 0
        self.size = 0

    def feed(self, chunk: bytes) -> None:
        """Take more of the file."""
        self._hash.update(chunk)
        self.size += len(chunk)
        if self._decoder is None:
            if is_binary(chunk):
                raise ToolFailed(
                    f"`{self._args.path}` is a binary file; it is not shown. Look at it with a shell command, "
                    "for example `file`, `strings` or `xxd | head`."
                )
            self._encoding = detect(chunk)
            errors = self._encoding.errors if self._encoding.name == "utf-8" else "replace"
            self._decoder = codecs.getincrementaldecoder(self._encoding.name)(errors)
            chunk = chunk[len(self._encoding.bom) :]
        self._show(self._decoder.decode(chunk))

    def close(self) -> str:
        """The file has ended; return what the model gets."""
        if self._decoder is not None:
            self._show(self._decoder.decode(b"", final=True))
        unfinished = self._window.unfinished
        self._window.close()
        if self.size == len(self._encoding.bom):
            return f"(`{printable(self._args.path)}` is empty: {self.size} bytes)"
        if self._args.offset > self._window.lines:
            raise ToolFailed(f"`offset` is {self._args.offset}, but the file has only {self._window.lines} lines.")
        return "\n".join([*self._window.shown, self._footer(unfinished)])

    @property
    def digest(self) -> bytes:
        """The digest of all that was fed, as `digest_of` gives it."""
        return finish_digest(self._hash)

    def _show(self, text: str) -> None:
        text, bad = mark_bad_bytes(text)
        self._bad += bad if self._encoding.name == "utf-8" else text.count("\ufffd")
        nuls = text.count("\0")
        if nuls:
            self._nuls += nuls
            text = text.replace("\0", "\u2400")
        self._window.feed(text)

    def _footer(self, unfinished: bool) -> str:
        window, first = self._window, self._args.offset
        last = first + len(window.shown) - 1
        more = "" if self.size <= LARGEST else " or more: the file is larger than can be read here, or edited"
        notes = [f"lines {first} to {last} of {window.lines}{more}"]
        if last < window.lines:
            notes.append(f"read on with offset={last + 1}")
        elif unfinished:
            notes.append("no newline at the end")
        if window.crlf:
            notes.append("line ends are CRLF" if window.crlf == window.lines else "line ends are mixed: LF and CRLF")
        if self._encoding.words:
            notes.append(self._encoding.words)
        if self._bad:
            notes.append(
                f"{self._bad} bytes or characters are not valid {self._encoding.name.upper()}, shown as \ufffd"
            )
        if self._nuls:
            notes.append(f"{self._nuls} NUL characters, shown as \u2400")
        return f"[{'; '.join(notes)}]"


def _image_type(start: bytes) -> str | None:
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return None
