"""Bytes of a text file as text and back, so that what is not touched comes back bit for bit."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

__all__ = ["Encoding", "detect", "is_binary", "mark_bad_bytes"]

_PROBE = 8192  # bytes at the start of a file that are looked at for a NUL, as git and grep do
_BAD = re.compile("[\udc80-\udcff]")


class Encoding(NamedTuple):
    """How a file's text is written: a codec, a byte order mark (often none), and what to do with bad bytes.

    UTF-8 lets bytes that are none through as lone surrogates, which encode back to the same bytes.
    """

    name: str = "utf-8"
    bom: bytes = b""
    errors: str = "surrogateescape"

    @property
    def words(self) -> str:
        """It in words, empty for plain UTF-8."""
        return f"{self.name.upper()} with byte order mark" if self.bom else ""

    def decode(self, data: bytes) -> str:
        """Return the text of a whole file. Raises `UnicodeDecodeError` where it could not be written back exactly."""
        return data[len(self.bom) :].decode(self.name, self.errors)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a whole file; the inverse of `decode`."""
        return self.bom + text.encode(self.name, self.errors)


_MARKED = (  # the longer marks first: that of UTF-32 LE begins with that of UTF-16 LE
    Encoding("utf-32-le", codecs.BOM_UTF32_LE, "surrogatepass"),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE, "surrogatepass"),
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE, "surrogatepass"),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE, "surrogatepass"),
)


def detect(start: bytes) -> Encoding:
    """Return the encoding of a file that begins with `start`: what its byte order mark says, else UTF-8."""
    return next((encoding for encoding in _MARKED if start.startswith(encoding.bom)), Encoding())


def is_binary(start: bytes) -> bool:
    """Whether a file that begins with `start` is no text: a NUL early on, and no mark of an encoding that has them."""
    return b"\0" in start[:_PROBE] and not detect(start).bom


def mark_bad_bytes(text: str) -> tuple[str, int]:
    """Return decoded text with its bad bytes as U+FFFD, and how many they were."""
    return ("\ufffd".join(parts), len(parts) - 1) if len(parts := _BAD.split(text)) > 1 else (text, 0)
