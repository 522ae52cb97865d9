"""What to say about text that is not there: where something like it is. Pure."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence

__all__ = ["describe_nearest"]

_WINDOWS = 20  # places compared in full: difflib needs milliseconds for each
_SCANNED = 5000  # lines looked at for one that resembles the first when none is equal
_ALIKE = 0.5  # the least likeness worth telling of
_MOST_SHOWN = 20  # lines
_LONGEST = 200  # characters of a line that are compared or shown
_LARGEST = 4_000_000  # characters of a text that is searched
_NUMBERED = re.compile(r"\s*\d+\t")


def describe_nearest(text: str, old: str) -> str:
    """Return what to do about `old`, which is not in `text`: the probable mistake, or the place most like it."""
    if "\ufffd" in old:
        return "It has the mark \ufffd, which stands for bytes that are not text: choose a piece without it."
    wanted = old.split("\n")
    if all(_NUMBERED.match(line) for line in wanted if line):
        return "It begins with line numbers, which `read` adds and which are not in the file: leave them out."
    if len(text) > _LARGEST:
        return "Read the file again and copy the text exactly."
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    wanted = _without_blank_ends(wanted)
    best = max(((_likeness(lines, at, wanted), -at) for at in _candidates(lines, wanted)), default=(0.0, 0))
    if best[0] < _ALIKE:
        return "Nothing in the file is much like it; read the file again and copy the text exactly."
    at = -best[1]
    window = lines[at : at + len(wanted)]
    only_space = _squeezed(window) == _squeezed(wanted)
    why = "It differs only in white space" if only_space else "The nearest place"
    last = at + len(window)
    where = f"line {last}" if len(window) == 1 else f"lines {at + 1} to {last}"
    shown = "\n".join(f"{at + 1 + n:6}\t{line[:_LONGEST]}" for n, line in enumerate(window[:_MOST_SHOWN]))
    return f"{why}{' from' if only_space else ' is'} {where}:\n{shown}"


def _without_blank_ends(lines: list[str]) -> list[str]:
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else lines[:1]


def _candidates(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Yield where a window may begin: around the rarest line both have, else where a line resembles the longest."""
    bare = [_squeeze(line) for line in lines]
    counts = Counter(bare)
    shared = [(counts[key], at, key) for at, line in enumerate(wanted) if (key := _squeeze(line)) and counts[key]]
    if shared:
        _, offset, key = min(shared)
        places = [at for at, line in enumerate(bare) if line == key]
    else:
        offset = max(range(len(wanted)), key=lambda at: len(wanted[at]))
        places = _resembling(lines, wanted[offset].strip()[:_LONGEST])
    return (max(0, at - offset) for at in places[:_WINDOWS])


def _resembling(lines: Sequence[str], wanted: str) -> list[int]:
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    scored: list[tuple[float, int]] = []
    for at, line in enumerate(lines[:_SCANNED]):
        matcher.set_seq1(line.strip()[:_LONGEST])
        if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE:
            scored.append((matcher.quick_ratio(), -at))
    return [-at for _, at in sorted(scored, reverse=True)]


def _likeness(lines: Sequence[str], at: int, wanted: Sequence[str]) -> float:
    there = "\n".join(_squeeze(line)[:_LONGEST] for line in lines[at : at + len(wanted)][:_MOST_SHOWN])
    sought = "\n".join(_squeeze(line)[:_LONGEST] for line in wanted[:_MOST_SHOWN])
    return difflib.SequenceMatcher(None, there, sought, autojunk=False).ratio()


def _squeeze(line: str) -> str:
    return " ".join(line.split())


def _squeezed(lines: Sequence[str]) -> list[str]:
    return [_squeeze(line) for line in lines if line.strip()]
