"""What a foreign tool returns, as a result: clipped like the output of a command, the whole of it in a file."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence

from novacode.tools.context import ToolContext
from novacode.tools.plain import plain
from novacode.values.parts import JSON, Image, Text
from novacode.values.results import ResultPart
from novacode.workspace.spill import Capture

__all__ = ["result_parts"]

_RESULT_LIMIT = 30_000  # bytes, as for the shell tool
_IMAGE_LIMIT = 4 << 20  # characters of base64; providers refuse more than about five million
_MOST_IMAGES = 8
_MOST_FILES = 20
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def result_parts(result: Mapping[str, JSON], ctx: ToolContext) -> tuple[ResultPart, ...]:
    """Return the content of `result`: one text, then its images. Never raises for what a server makes of it."""
    gathered = _Gathered(ctx)
    items = result.get("content")
    for item in items if isinstance(items, list) else ():
        gathered.take(item if isinstance(item, Mapping) else {"type": "text", "text": str(item)})
    structured = result.get("structuredContent")
    if structured is not None and not items:  # servers that have it say the same as text, for clients like this one
        gathered.say(json.dumps(structured, ensure_ascii=False))
    return gathered.parts()


class _Gathered:
    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._text = Capture(_RESULT_LIMIT, ctx.spill, f"{ctx.call_id}.txt", ctx.workspace.display)
        self._images: list[Image] = []
        self._files = 0

    def say(self, text: str) -> None:
        if self._text.total:
            self._text.feed(b"\n")
        self._text.feed(text.encode("utf-8", "replace"))

    def take(self, item: Mapping[str, JSON]) -> None:
        kind, about = item.get("type"), item.get("resource")
        if kind == "text":
            self.say(str(item.get("text", "")))
        elif kind in ("image", "audio"):
            self._data(str(kind), item.get("mimeType"), item.get("data"))
        elif kind == "resource" and isinstance(about, Mapping):
            if isinstance(about.get("text"), str):
                self.say(f"[resource {about.get('uri', '')}]\n{about['text']}")
            else:
                self._data(f"resource {about.get('uri', '')}", about.get("mimeType"), about.get("blob"))
        elif kind == "resource_link":
            self.say(f"[resource {item.get('uri', '')}: {item.get('name', '')}]")
        else:
            self.say(json.dumps(item, ensure_ascii=False))

    def parts(self) -> tuple[ResultPart, ...]:
        try:
            text = plain(self._text.text())
        finally:
            self._text.close()
        return (*((Text(text),) if text else ()), *self._images)

    def _data(self, kind: str, media_type: JSON, data: JSON) -> None:
        """Take an image as an image where it can be one, and everything else as a file."""
        small = isinstance(data, str) and len(data) <= _IMAGE_LIMIT and len(self._images) < _MOST_IMAGES
        try:
            raw = base64.b64decode(data if isinstance(data, str) else "", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if not raw:
            self.say(f"[{kind} {media_type}: its data is not base64 and is left out]")
        elif small and media_type in _IMAGE_TYPES:
            self._images.append(Image(str(media_type), str(data)))
        elif self._files >= _MOST_FILES:
            self.say(f"[{kind} {media_type} of {len(raw)} bytes: left out, the result has too many files]")
        else:
            self._files += 1
            self.say(f"[{kind} {media_type} of {len(raw)} bytes{self._kept(raw)}]")

    def _kept(self, raw: bytes) -> str:
        capture = Capture(2, self._ctx.spill, f"{self._ctx.call_id}-{self._files}.bin", self._ctx.workspace.display)
        capture.feed(raw)
        capture.close()
        return f", in {capture.shown}" if capture.shown else ", which could not be kept"


def text_of(parts: Sequence[ResultPart]) -> str:
    """Return the text of `parts`."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))
