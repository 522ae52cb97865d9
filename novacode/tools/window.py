"""Some lines out of a text that comes in pieces, in bounded memory."""

from __future__ import annotations

__all__ = ["LineWindow"]

_LONGEST_LINE = 2000  # characters; the rest of a longer line is counted, not kept


class LineWindow:
    r"""Keeps lines `first` to `first + most - 1` (from 1) of what is fed, numbered, within `budget` characters.

    Lines end at `\n`; a `\r` before it is not shown, but counted. What is fed may be cut anywhere. Memory stays
    within the budget and one line, whatever is fed.
    """

    def __init__(self, first: int, most: int, budget: int) -> None:
        self._first, self._after, self._budget = first, first + most, budget
        self._line: list[str] = []
        self._kept = self._length = 0
        self._last = ""
        self._full = False
        self.shown: list[str] = []
        self.lines = 0
        self.crlf = 0
        self.cut = 0

    def feed(self, text: str) -> None:
        """Take more of the text."""
        if self._length == 0 and self._outside(self.lines + text.count("\n") + 1):
            self._skip(text)
            return
        *whole, rest = text.split("\n")
        for piece in whole:
            self._extend(piece)
            self._end_line(ended=True)
        if rest:
            self._extend(rest)

    def close(self) -> None:
        """The text has ended; what has no newline at its end is a line too."""
        if self._length:
            self._end_line(ended=False)

    @property
    def unfinished(self) -> bool:
        """Whether the text so far does not end with a newline."""
        return self._length > 0

    def _outside(self, upto: int) -> bool:
        """Whether no line from the current one to line `upto` is wanted."""
        return self._full or upto < self._first or self.lines + 1 >= self._after

    def _skip(self, text: str) -> None:
        newlines = text.count("\n")
        self.lines += newlines
        self.crlf += text.count("\r\n")
        rest = text[text.rfind("\n") + 1 :]
        self._length = len(rest)
        self._last = rest[-1:]
        if self._length:
            self._line, self._kept = [rest[: _LONGEST_LINE + 1]], min(len(rest), _LONGEST_LINE + 1)

    def _extend(self, piece: str) -> None:
        if self._kept <= _LONGEST_LINE and piece:
            part = piece[: _LONGEST_LINE + 1 - self._kept]
            self._line.append(part)
            self._kept += len(part)
        self._length += len(piece)
        self._last = piece[-1:] or self._last

    def _end_line(self, *, ended: bool) -> None:
        self.lines += 1
        carriage = ended and self._length > 0 and self._last == "\r"
        self.crlf += carriage
        if self._first <= self.lines < self._after and not self._full:
            self._show(self._length - carriage)
        self._line, self._kept, self._length, self._last = [], 0, 0, ""

    def _show(self, length: int) -> None:
        text = "".join(self._line)[:length]
        if length > _LONGEST_LINE:
            self.cut += 1
            text = f"{text[:_LONGEST_LINE]} [... {length - _LONGEST_LINE} more characters in this line ...]"
        numbered = f"{self.lines:6}\t{text}"
        if self.shown and len(numbered) > self._budget:
            self._full = True
            return
        self._budget -= len(numbered) + 1
        self.shown.append(numbered)
