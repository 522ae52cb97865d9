"""Matching lines of one file after another, up to a number of them, the rest counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import trio

from novacode.errors import ToolFailed
from novacode.tools.cputime import CpuTimeOver, cpu_limit
from novacode.tools.patterns import Search
from novacode.tools.plain import plain

__all__ = ["LARGEST_SEARCHED", "Matches"]

LARGEST_SEARCHED = 16 * 1024 * 1024  # bytes of a file
_LONGEST_SEARCHED = 10_000  # characters of a line
_LONGEST_SHOWN = 400
_BUDGET = 40_000  # characters of a report
_STRETCH = 5000  # lines between checkpoints
_PATIENCE = 1.0  # seconds of processor time for so many lines


class Matches:
    """Collects what `grep` reports."""

    def __init__(self, search: Search, context: int, limit: int) -> None:
        self._search, self._context, self._limit = search, context, limit
        self._budget = _BUDGET
        self._report: list[str] = []
        self._shown = 0
        self._total = 0
        self._files = 0
        self._cut_lines = 0
        self.cut_files = 0

    async def look_in(self, name: str, text: str) -> None:
        """Search the text of the file `name`. A checkpoint now and then in a long one.

        Raises `ToolFailed` where the pattern takes too long, which no cancel could stop.
        """
        text = text.replace("\r\n", "\n")
        with suppress(CpuTimeOver), cpu_limit(_PATIENCE):  # line by line it may be quick
            if not self._search.may_be_in(text):
                return
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        hits: list[int] = []
        long: list[int] = []
        for start in range(0, len(lines), _STRETCH):
            if start:
                await trio.lowlevel.checkpoint()
            try:
                with cpu_limit(_PATIENCE):
                    hits.extend(self._hits(lines, start, long))
            except CpuTimeOver:
                raise ToolFailed(
                    f"The pattern takes too long on `{name}`, somewhere in lines {start + 1} to "
                    f"{min(start + _STRETCH, len(lines))}: it can match in too many ways. Make it simpler, for example "
                    "without a repetition inside a repetition, or leave that file out with `glob`."
                ) from None
        if hits:
            self._files += 1
            self._total += len(hits)
            self._show(name, lines, hits)
        if hits or self._matches_further_on(lines, long):
            self._cut_lines += len(long)

    def report(self, nothing: str) -> str:
        """Return the lines found; `nothing` where there are none."""
        lines = self._report or [nothing]
        if self._total > self._shown:
            lines.append(
                f"[{self._total - self._shown} more matching lines, {self._total} in all in {self._files} files; "
                "narrow the pattern, the path or `glob`]"
            )
        if self._cut_lines:
            lines.append(f"[{self._cut_lines} long lines were searched in their first {_LONGEST_SEARCHED} characters]")
        if self.cut_files:
            lines.append(f"[{self.cut_files} large files were searched in their first {LARGEST_SEARCHED} bytes]")
        return "\n".join(lines)

    def _matches_further_on(self, lines: Sequence[str], long: Sequence[int]) -> bool:
        """Whether one of the `long` lines, none of which matches in its first part, does so as a whole, or may."""
        with suppress(CpuTimeOver), cpu_limit(_PATIENCE):
            return any(self._search.regex.search(lines[at]) for at in long)
        return True

    def _hits(self, lines: Sequence[str], start: int, long: list[int]) -> Iterator[int]:
        """Yield which lines from `start` on match, as far as one stretch goes, and put the cut ones on `long`."""
        literal, find = self._search.literal, self._search.regex.search
        for at in range(start, min(start + _STRETCH, len(lines))):
            line = lines[at]
            if literal and literal not in line:
                continue
            if len(line) > _LONGEST_SEARCHED:
                long.append(at)
                line = line[:_LONGEST_SEARCHED]
            if find(line):
                yield at

    def _show(self, name: str, lines: Sequence[str], hits: Sequence[int]) -> None:
        last = -1
        for hit, following in zip(hits, [*hits[1:], len(lines)], strict=True):
            if self._budget <= 0 or self._shown == self._limit:
                return
            first = max(last + 1, hit - self._context)
            if self._context and self._report and (first > last + 1 or last < 0):
                self._report.append("--")
            last = min(hit + self._context, following - 1)
            for at in range(first, last + 1):
                self._add(name, at, lines[at], ":" if at == hit else "-")
            self._shown += 1

    def _add(self, name: str, at: int, line: str, mark: str) -> None:
        text = f"{name}{mark}{at + 1}{mark}{self._cut(line)}"
        self._budget -= len(text) + 1
        self._report.append(text)

    def _cut(self, line: str) -> str:
        """Return `line` made printable, and a long one cut around its match."""
        if len(line) <= _LONGEST_SHOWN:
            return plain(line)
        found = self._search.regex.search(line[:_LONGEST_SEARCHED])
        start = max(0, (found.start() if found else 0) - _LONGEST_SHOWN // 4)
        end = start + _LONGEST_SHOWN
        before, after = ("[...]" if start else ""), (f"[... {len(line) - end} more]" if end < len(line) else "")
        return f"{before}{plain(line[start:end])}{after}"
