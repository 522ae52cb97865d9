"""Text of models, tools and files made safe to look at: nothing in it can act on a terminal or hide from the eye.

Everything a face shows that came from outside goes through here, in the plain fall-back as well.
"""

from __future__ import annotations

import functools
import re

__all__ = ["for_encoding", "in_one_line", "visible"]

# Controls (C0 but newline and tab, DEL, C1), format characters (zero width, bidi, tags), spaces that are none,
# fillers and blanks that show nothing, surrogates, private use.
_HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1680\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_SUSPECT = re.compile(r"[^\t\n -~]")
_HARMLESS_IN_PROSE = frozenset("\xa0\xad\u200c\u200d\u202f\u3000")
"""Typography and the joiners of emoji and of several scripts: kept where no decision depends on the text."""

_GAP = re.compile(r"(?<=\S) {16,}(?=\S)")
"""Spaces that push what follows them out of sight."""


def visible(text: str, *, prose: bool = False) -> str:
    r"""Return `text` with every character that acts or hides written as an escape (`\x1b`, `\u202e`).

    Newlines and tabs stay. Long runs of spaces inside a line are written as their number. With `prose`, typographic
    spaces and joiners stay as well: for what a model says, never for what a person is asked to allow.
    """
    shown = text
    if _SUSPECT.search(text):
        kept = _HARMLESS_IN_PROSE if prose else ()
        shown = _hidden().sub(lambda found: found[0] if found[0] in kept else _escape(found[0]), text)
    if prose:
        return shown
    return _GAP.sub(lambda found: f" [{len(found[0])} spaces] ", shown)


def in_one_line(text: str, width: int) -> str:
    """Return `text` visible and in one line of at most `width` characters; an ellipsis says that it was cut."""
    shown = " ".join(visible(text).split())
    return shown if len(shown) <= width else f"{shown[: max(0, width - 3)]}..."[: max(0, width)]


def for_encoding(text: str, encoding: str) -> str:
    """Return `text` as far as `encoding` can say it; the rest as escapes."""
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


@functools.cache
def _hidden() -> re.Pattern[str]:
    """Return the pattern of what is escaped: 6 ms to compile, so not before there is more than plain ASCII."""
    return re.compile(_HIDDEN)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
