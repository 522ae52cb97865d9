"""What a change did, as a unified diff of the real lines."""

from __future__ import annotations

import difflib

__all__ = ["unified"]

_MOST_LINES = 4000  # of the part that differs; beyond this the comparison could take seconds
_CONTEXT = 3


def unified(old: str, new: str, name: str) -> str:
    r"""Return the change from `old` to `new` in the file `name`; empty where there is none.

    Lines end at `\n` and nowhere else, so that a change of line ends, or of a lone `\r`, shows. A change of very many
    lines is only counted.
    """
    if old == new:
        return ""
    before, after = _lines(old), _lines(new)
    head, tail = _common(before, after)
    old_part, new_part = len(before) - head - tail, len(after) - head - tail
    title = f"--- {name}\n+++ {name}\n"
    if old_part + new_part > _MOST_LINES:
        place = f"@@ -{head + 1},{old_part} +{head + 1},{new_part} @@"
        return f"{title}{place} too long to show: {old_part} lines became {new_part}\n"
    # Only the neighbourhood of the change is compared: difflib's time grows with all it is given.
    start, keep = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    hunks = difflib.unified_diff(before[start : len(before) - keep], after[start : len(after) - keep], n=_CONTEXT)
    text = "".join(_finished(_shifted(line, start) if line.startswith("@@") else line) for line in list(hunks)[2:])
    return title + text


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _common(before: list[str], after: list[str]) -> tuple[int, int]:
    """Return how many lines at the start, and how many after those at the end, are equal."""
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    most = shorter - head
    tail = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    return head, tail


def _shifted(header: str, by: int) -> str:
    """Return a hunk header with its line numbers moved down."""
    moved = []
    for word in header.split():
        if word[0] in "+-":
            first, comma, length = word[1:].partition(",")
            word = f"{word[0]}{int(first) + by}{comma}{length}"
        moved.append(word)
    return " ".join(moved) + "\n"


def _finished(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
