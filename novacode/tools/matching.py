r"""Where in a text an edit belongs, and what it puts there. Pure.

The rules, in order; the first that finds anything decides:

1. the old text as it is, except that a line end in it matches `\n` and `\r\n` alike;
2. whole lines that are equal but for white space at their ends;
3. whole lines that are equal but for one indentation all of them have more, or less; the new lines are shifted alike.

2 and 3 apply to one place only. New text takes the line ends of the place it goes to. Matches that overlap count as
several when one is asked for; when all are asked for they are replaced from left to right, without overlap. Matches
beyond the first thousand are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from novacode.errors import ToolFailed
from novacode.tools.nearest import describe_nearest

__all__ = ["Change", "plan"]

_MOST_COUNTED = 1000
_MOST_LISTED = 10
_LARGEST_FUZZY = 4_000_000  # characters; beyond this only the exact rule is tried


class Span(NamedTuple):
    """A place in a text and what comes there instead."""

    start: int
    end: int
    new: str


class Change(NamedTuple):
    """The text after an edit. `lines` are where it changed (from 1), `how` says so where the match was not exact."""

    text: str
    lines: tuple[int, ...]
    how: str = ""


def plan(text: str, old: str, new: str, *, everywhere: bool) -> Change:
    """Return `text` with `old` replaced by `new`. Raises `ToolFailed`, with what to do, where it is not that clear."""
    old, new = _unix(old), _unix(new)
    if not old:
        raise ToolFailed("`old` is empty. Give the text to replace, or use `write` to make a new file.")
    if old == new:
        raise ToolFailed(
            "`old` and `new` are the same (line ends aside, which `edit` keeps): there is nothing to change."
        )
    found, how = _find(text, old, new, everywhere=everywhere)
    if not found:
        raise ToolFailed(f"`old` was not found. {describe_nearest(text, old)}")
    if how and len(found) > 1:
        raise ToolFailed(
            f"`old` was not found exactly; {how} it fits {len(found)} places, {_listed(_line_numbers(text, found))}. "
            "Give it exactly as it is in the file."
        )
    if not everywhere and len(found) > 1:
        raise ToolFailed(
            f"`old` was found {_counted(found)} times, at {_listed(_line_numbers(text, found))}. "
            "Give more of the text around the place you mean, or set replace_all to change every one."
        )
    return _apply(text, found, how)


def _find(text: str, old: str, new: str, *, everywhere: bool) -> tuple[list[Span], str]:
    pattern = re.compile("\r?\n".join(re.escape(line) for line in old.split("\n")))
    places = (match.span() for match in pattern.finditer(text)) if everywhere else _overlapping(pattern, text, old)
    exact = [Span(start, end, _with_ends_of(text, start, end, new)) for start, end in places]
    if exact or len(text) > _LARGEST_FUZZY or not old.strip():
        return exact, ""
    lines = _Lines(text)
    trimmed = list(_trimmed(lines, old, new))
    if trimmed:
        return trimmed, "ignoring white space at the ends of lines"
    return list(_shifted(lines, old, new)), "with another indentation (the new lines are shifted alike)"


def _overlapping(pattern: re.Pattern[str], text: str, old: str) -> Iterator[tuple[int, int]]:
    at = 0
    for _ in range(_MOST_COUNTED):
        match = pattern.search(text, at)
        if match is None:
            return
        yield match.span()
        at = match.start() + (2 if match[0].startswith("\r\n") and old[0] == "\n" else 1)


def _counted(found: Sequence[Span]) -> str:
    return f"{len(found)} or more" if len(found) == _MOST_COUNTED else str(len(found))


def _apply(text: str, spans: Sequence[Span], how: str) -> Change:
    pieces, at = [], 0
    for span in spans:
        pieces += [text[at : span.start], span.new]
        at = span.end
    changed = "".join([*pieces, text[at:]])
    if changed == text:
        raise ToolFailed("The file already reads as it would after this edit: there is nothing to change.")
    return Change(changed, _line_numbers(text, spans), how)


# --- line ends ----------------------------------------------------------------------------------------------------


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _with_ends_of(text: str, start: int, end: int, new: str) -> str:
    """Return `new` with the line ends of what it replaces: one for one where they are as many, else those there."""
    wanted = new.count("\n")
    if not wanted:
        return new
    there = re.findall("\r?\n", text[start:end])
    if len(there) != wanted:
        there = [_common_end(there) or _end_nearby(text, start, end)] * wanted
    first, *others = new.split("\n")
    return first + "".join(f"{ending}{line}" for ending, line in zip(there, others, strict=True))


def _common_end(there: Sequence[str]) -> str:
    return max(("\n", "\r\n"), key=there.count) if there else ""


def _end_nearby(text: str, start: int, end: int) -> str:
    """Return the line end of the line that holds `end`, else of the line before `start`."""
    after = text.find("\n", end)
    at = after if after >= 0 else text.rfind("\n", 0, start)
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _line_numbers(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    numbers, line, at = [], 1, 0
    for span in spans:
        line += text.count("\n", at, span.start)
        at = span.start
        numbers.append(line)
    return tuple(numbers)


def _listed(numbers: Sequence[int]) -> str:
    some = ", ".join(map(str, numbers[:_MOST_LISTED]))
    more = f" and {len(numbers) - _MOST_LISTED} more" if len(numbers) > _MOST_LISTED else ""
    return f"line{'s' if len(numbers) > 1 else ''} {some}{more}"


# --- whole lines ----------------------------------------------------------------------------------------------------


class _Lines:
    """A text's lines without their ends, and where each begins and ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self.starts: list[int] = []
        at = 0
        for line in text.split("\n"):
            self.lines.append(line.removesuffix("\r"))
            self.starts.append(at)
            at += len(line) + 1

    def span(self, first: int, count: int, new: str, *, with_last_end: bool) -> Span | None:
        """Return the place of `count` lines; `None` where the last should have an end and has none."""
        last = first + count - 1
        if with_last_end:
            if last + 1 >= len(self.starts):
                return None
            end = self.starts[last + 1]
        else:
            end = self.starts[last] + len(self.lines[last])
        start = self.starts[first]
        return Span(start, end, _with_ends_of(self.text, start, end, new))


def _whole_lines(old: str) -> tuple[list[str], bool]:
    """Return the lines of `old`, and whether it ends with a line end."""
    lines = old.split("\n")
    return (lines[:-1], True) if lines[-1] == "" else (lines, False)


def _trimmed(lines: _Lines, old: str, new: str) -> Iterator[Span]:
    wanted, ended = _whole_lines(old)
    wanted = [line.rstrip() for line in wanted]
    there = [line.rstrip() for line in lines.lines]
    for first in _starts(there, wanted[0], len(wanted)):
        if there[first : first + len(wanted)] == wanted:
            span = lines.span(first, len(wanted), new, with_last_end=ended)
            if span is not None:
                yield span


def _shifted(lines: _Lines, old: str, new: str) -> Iterator[Span]:
    wanted, ended = _whole_lines(old)
    bare = [line.strip() for line in lines.lines]
    for first in _starts(bare, wanted[0].strip(), len(wanted)):
        window = lines.lines[first : first + len(wanted)]
        shift = _shift(wanted, window)
        moved = shift and _moved(new, *shift)
        if moved is not None:
            span = lines.span(first, len(wanted), moved, with_last_end=ended)
            if span is not None:
                yield span


def _starts(lines: Sequence[str], first: str, count: int) -> Iterator[int]:
    return (at for at in range(len(lines) - count + 1) if lines[at] == first)


def _shift(wanted: Sequence[str], there: Sequence[str]) -> tuple[str, str] | None:
    """Return the indentation to take off and the one to put on that make `wanted` into `there`."""
    pairs = [(w.rstrip(), t.rstrip()) for w, t in zip(wanted, there, strict=True)]
    filled = [(w, t) for w, t in pairs if w or t]
    if not filled:
        return None
    w_indent, t_indent = (line[: len(line) - len(line.lstrip())] for line in filled[0])
    if t_indent.endswith(w_indent):
        off, on = "", t_indent.removesuffix(w_indent)
    elif w_indent.endswith(t_indent):
        off, on = w_indent.removesuffix(t_indent), ""
    else:
        off, on = w_indent, t_indent
    return (off, on) if all(w and w.startswith(off) and t == on + w.removeprefix(off) for w, t in filled) else None


def _moved(new: str, off: str, on: str) -> str | None:
    """Return `new` with the indentation changed on every line that is not blank; `None` where a line has too little."""
    lines = new.split("\n")
    if any(line.strip() and not line.startswith(off) for line in lines):
        return None
    return "\n".join(on + line.removeprefix(off) if line.strip() else line for line in lines)
