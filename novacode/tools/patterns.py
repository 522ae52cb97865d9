"""What can be told about a regular expression without running it. Pure.

A text that every match must contain lets most files and lines be passed over without running it at all.
"""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

from novacode.errors import ToolFailed

__all__ = ["QUANTIFIER", "Search", "compiled", "pieces_of"]

# What asks about the ends of the text, or looks around: on a line alone the answer can be another.
_LINE_BOUND = re.compile(r"\\[ABZ]|\(\?")

QUANTIFIER = re.compile(r"[*+?]|\{\d*,?\d*\}")
"""A piece that says how often; `{}` alone, which looks like one, stands for itself."""


class Search(NamedTuple):
    """A pattern ready to run on a line, and two ways to tell that a whole text has no such line.

    `literal` is in everything it matches (empty where none is known). `anywhere`, searched for in a text whose lines
    end with a newline, finds something if any line of it matches; `None` where that cannot be promised.
    """

    regex: re.Pattern[str]
    literal: str
    anywhere: re.Pattern[str] | None

    def may_be_in(self, text: str) -> bool:
        """Whether some line of `text` may match. Takes as long as the pattern does."""
        return self.literal in text and (self.anywhere is None or self.anywhere.search(text) is not None)


def compiled(pattern: str, *, ignore_case: bool) -> Search:
    """Return `pattern` ready to run. Raises `ToolFailed`, with the place, where it is not valid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubtful but valid patterns are the model's business
            flags = re.IGNORECASE if ignore_case else re.NOFLAG
            regex = re.compile(pattern, flags)
            anywhere = None if _LINE_BOUND.search(pattern) else re.compile(pattern, flags | re.MULTILINE)
    except re.error as wrong:
        place = f" at character {wrong.pos + 1}" if wrong.pos is not None else ""
        raise ToolFailed(
            f"`pattern` is not a valid regular expression: {wrong.msg}{place}. It is read as Python's `re` does; "
            "put a backslash before a character that stands for itself."
        ) from None
    except (OverflowError, RecursionError) as wrong:
        raise ToolFailed(f"`pattern` is too large to be used: {wrong}.") from None
    # Upper and lower case are not always one to one (the Kelvin sign is a "k"), so no literal can be required then.
    return Search(regex, "" if ignore_case or "(?" in pattern else _literal(pieces_of(pattern)), anywhere)


def pieces_of(pattern: str) -> list[str]:
    """Return the pattern cut into escapes, classes, quantifiers, brackets and single characters."""
    pieces, at = [], 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "\\":
            end = at + 2
        elif pattern[at] == "[":
            end = _end_of_class(pattern, at)
        elif quantifier := QUANTIFIER.match(pattern, at):
            end = quantifier.end()
        pieces.append(pattern[at:end])
        at = end
    return pieces


def _end_of_class(pattern: str, at: int) -> int:
    at += 2 if pattern.startswith("[^", at) else 1
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _literal(pieces: list[str]) -> str:
    """Return the longest run of plain characters outside groups that every match contains."""
    if "|" in pieces:
        return ""
    runs, run, depth = [""], "", 0
    for piece, after in zip(pieces, [*pieces[1:], ""], strict=True):
        depth += (piece == "(") - (piece == ")")
        char = _plain_character(piece)
        optional = bool(QUANTIFIER.fullmatch(after)) and after != "+"
        if char and depth == 0 and not optional:
            run += char
        if not char or depth or optional or after == "+":
            runs.append(run)
            run = ""
    return max([*runs, run], key=len)


def _plain_character(piece: str) -> str:
    if len(piece) == 2 and piece[0] == "\\":
        return "" if piece[1].isalnum() else piece[1]
    return piece if len(piece) == 1 and piece not in ".^$*+?()|[]{}\\" else ""
