"""Bytes to lines that may be messages. Sans I/O."""

from __future__ import annotations

__all__ = ["LONGEST", "Lines"]

LONGEST = 64 << 20
"""Bytes of the longest message that is taken: a tool may well return some megabytes, and memory has an end."""


class Lines:
    """Cuts what a server writes into lines, and keeps only those that may be a JSON object.

    `noise` counts lines that cannot be one; of such a line, and of one over `longest` bytes, nothing is kept while it
    comes. Empty lines are nothing.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self.noise = 0
        self._longest = longest
        self._part = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes, return the lines that are complete now."""
        made: list[bytes] = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._take(piece)
            if not self._skipping and (line := bytes(self._part).strip()):
                made.append(line)
            self._part.clear()
            self._skipping = False
        self._take(rest)
        return made

    def _take(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._part += piece
        begin = self._part[:64].lstrip()
        if (begin and not begin.startswith(b"{")) or len(self._part) > self._longest:
            self.noise += 1
            self._skipping = True
            self._part.clear()
