r"""A Python regular expression as one over bytes, for ripgrep to tell which files may hold a match. Pure.

Python's and Rust's dialects differ in what looks alike (`$`, `\w`, `{,3}`, bytes that are no text). So nothing of
the original is handed on: Python itself is asked which ASCII characters each class and each letter fits, and what is
written uses byte sets, groups, `|`, `* + ? {m,n}` and anchors, in which there is only one dialect. It may match more
than the original, never less.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence

from novacode.tools.patterns import QUANTIFIER, pieces_of

__all__ = ["byte_pattern"]

_LONGEST = 1000  # characters of a pattern that is translated
_MOST_REPEATED = 20  # more repetitions than that are "as many as there are"
_MOST_OPEN = 4  # quantifiers without an upper limit: with more, Python may try for ever where none of them fits
_FOREIGN = r"[\x80-\xff]+"  # the bytes of any characters beyond ASCII, and bytes that are no text

# Characters beyond ASCII that are a letter of ASCII where case does not count (i, s and k).
_FOLDED = "\u0130\u0131\u017f\u212a"

# Files that ripgrep would have to decode to judge them: what begins with a byte order mark.
_MARKED = r"^(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf|\x00\x00\xfe\xff)"

_COUNTS = re.compile(r"\{(\d*)(,?)(\d*)\}")


class _Unsure(Exception):
    """The pattern holds something whose meaning is not known here for certain."""


def byte_pattern(pattern: str, *, ignore_case: bool) -> str | None:
    r"""Return a byte pattern, in ASCII, that matches on every line on which `pattern`, which is valid, matches.

    Lines end with `\n` or `\r\n`, in UTF-8 with or without bad bytes; a first line with a byte order mark is matched
    whatever it holds. `None` where the pattern has anything but literals, classes, groups, `|`, anchors, `\b` and
    quantifiers; where it matches a line that is empty; and where a repetition is repeated, since Python may give up on
    such a pattern, and then has to be the one that is asked.
    """
    if len(pattern) > _LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about classes that may get another meaning one day
            flags = re.IGNORECASE if ignore_case else re.NOFLAG
            if re.search(pattern, "", flags):
                return None
            made = _Translation(pieces_of(pattern), flags).whole()
            # It is one to Python too: what fits every line, now that less is asked of it, would pass every file.
            return None if re.search(made.encode(), b"") else f"(?-u:(?:{made})|{_MARKED})"
    except (_Unsure, re.error):
        return None


class _Translation:
    """Goes through the pieces of a pattern once, from left to right."""

    def __init__(self, pieces: Sequence[str], flags: re.RegexFlag) -> None:
        self._pieces, self._flags, self._at = pieces, flags, 0
        self._made: list[str] = []
        self._groups: list[bool] = [False]  # of the open groups, innermost last: whether one holds `|` or a quantifier
        self._last = ""  # what a quantifier now would be about: "atom", "group" or "choice"; empty for nothing
        self._open_ended = 0
        self._sets: dict[str, str] = {}
        # A class such as `[^a]` can lead a match of a whole text over a line end. Then the end of the line says
        # nothing about whether Python looks into a file, and is left out.
        self._crosses = any(self._fits(piece, "\n") for piece in pieces if piece[0] in "[\\" and piece[-1] not in "bB")

    def whole(self) -> str:
        """Return the translation. Raises `_Unsure`."""
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            self._at += 1
            self._step(piece)
        if len(self._groups) != 1:
            raise _Unsure
        return "".join(self._made)

    def _step(self, piece: str) -> None:
        if piece == "(":
            self._open()
        elif piece == ")":
            self._close()
        elif piece == "|":
            self._groups[-1] = True
            self._put("|", "")
        elif piece == "^":
            self._put("^", "")
        elif piece == "$":
            self._put("" if self._crosses else r"\x0d?$", "")
        elif piece in (r"\b", r"\B"):
            self._put("", "")
        elif QUANTIFIER.fullmatch(piece):
            self._repeat(piece)
        else:
            self._put(self._atom(piece), "atom")

    def _put(self, text: str, last: str) -> None:
        self._made.append(text)
        self._last = last

    def _open(self) -> None:
        if self._pieces[self._at : self._at + 1] == ["?"]:
            if self._pieces[self._at + 1 : self._at + 2] != [":"]:
                raise _Unsure
            self._at += 2
        self._groups.append(False)
        self._put("(?:", "")

    def _close(self) -> None:
        loose = self._groups.pop()
        if not self._groups:
            raise _Unsure
        self._groups[-1] |= loose
        self._put(")", "choice" if loose else "group")

    def _repeat(self, piece: str) -> None:
        if not self._last or (self._last == "choice" and piece != "?"):
            raise _Unsure
        self._groups[-1] = True
        made = _repetition(piece)
        self._open_ended += made.endswith(("*", "+", ",}"))
        if self._open_ended > _MOST_OPEN:
            raise _Unsure
        self._put(made, "")
        if self._pieces[self._at : self._at + 1] in (["?"], ["+"]):  # lazy or possessive: how, not what
            self._at += 1

    def _atom(self, piece: str) -> str:
        """Return what one character of the original is in bytes."""
        made = self._sets.get(piece)
        if made is None:
            made = self._sets[piece] = self._set(piece)
        return made

    def _set(self, piece: str) -> str:
        is_class = piece[0] == "[" or piece == "."
        escaped = piece[1:] if piece[0] == "\\" else ""
        if escaped and escaped.isalnum() and escaped not in "dDsSwWtrfv":
            raise _Unsure
        if not is_class and not piece.isascii() and not self._flags:
            return _bytes_of(escaped or piece)
        codes = [code for code in range(0x80) if code != 0x0A and self._fits(piece, chr(code))]
        foreign = (
            piece == "."
            or piece.startswith("[^")
            or not piece.isascii()
            or re.search(r"\\\w", piece) is not None
            or any(self._fits(piece, char) for char in _FOLDED)
        )
        if not codes and not foreign:
            raise _Unsure
        ascii_part = f"[{_ranges(codes)}]" if codes else ""
        return f"(?:{ascii_part}{'|' if codes else ''}{_FOREIGN})" if foreign else ascii_part

    def _fits(self, piece: str, char: str) -> bool:
        return re.fullmatch(piece, char, self._flags) is not None


def _repetition(piece: str) -> str:
    """Return a quantifier in the form both dialects share, with small numbers."""
    counts = _COUNTS.fullmatch(piece)
    if counts is None:
        return piece
    low, comma, high = counts.groups()
    if not (low or comma):  # `{}` stands for itself
        raise _Unsure
    least = min(int(low or 0), _MOST_REPEATED)
    most = (int(high) if high else None) if comma else int(low)
    return f"{{{least},}}" if most is None or most > _MOST_REPEATED else f"{{{least},{most}}}"


def _bytes_of(char: str) -> str:
    if char == "\ufffd":  # what bad bytes are shown as
        raise _Unsure
    try:
        return f"(?:{''.join(f'{chr(92)}x{byte:02x}' for byte in char.encode('utf-8'))})"
    except UnicodeEncodeError:
        raise _Unsure from None


def _ranges(codes: Iterable[int]) -> str:
    made: list[list[int]] = []
    for code in codes:
        if made and made[-1][1] == code - 1:
            made[-1][1] = code
        else:
            made.append([code, code])
    return "".join(f"\\x{low:02x}" + (f"-\\x{high:02x}" if high > low else "") for low, high in made)
