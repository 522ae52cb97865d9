"""Frames for a terminal: what is final, then the live lines. Of a run, the only module that knows rich."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.text import Text

from novacode.cli.escape import visible
from novacode.cli.progress import Block, Kind

__all__ = ["Painter"]

_MOST_DIFF_LINES = 200
_STYLES = {Kind.NOTICE: "dim", Kind.WARNING: "yellow"}
_NARROWEST = 10


class Painter:
    """Makes frames. Remembers how many lines of the last one are live, to take them away with the next.

    The text that goes in is visible already (`escape.visible`): rich is not trusted to take control characters out.
    """

    def __init__(self, marks: tuple[str, str], environ: Mapping[str, str]) -> None:
        self._marks = marks
        self._live = 0
        self._console = Console(
            file=io.StringIO(),
            force_terminal=True,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            _environ=environ,
        )

    @property
    def width(self) -> int:
        """Columns a line may have."""
        return self._console.width

    def resize(self, columns: int, rows: int) -> None:
        """Take the size of the terminal; 0 means it does not say."""
        self._console.size = (max(_NARROWEST, columns or 80), max(3, rows or 24))

    def frame(self, blocks: Sequence[Block], text: str, live: Sequence[str]) -> str:
        """Return what to write: the old live lines taken away, `blocks`, and the new live lines under them.

        Live lines never fill the screen, so that the cursor can always come back to the first of them.
        """
        final = "".join(self._rendered(renderable) for block in blocks for renderable in self._of(block))
        shown = self._rendered(_markdown(visible(text, prose=True))) if text.strip() else ""
        lines = [*shown.splitlines(), *(self._rendered(Text(line, "cyan", no_wrap=True)).rstrip("\n") for line in live)]
        lines = lines[-(self._console.height - 2) :]
        back = f"\x1b[{self._live}A" if self._live else ""
        clear = f"\r{back}\x1b[J" if self._live else ""
        self._live = len(lines)
        return clear + final + "".join(f"{line}\n" for line in lines)

    def _of(self, block: Block) -> Sequence[RenderableType]:
        match block.kind:
            case Kind.TEXT:
                return [_markdown(block.text)]
            case Kind.CALL:
                return [self._call(block)]
            case Kind.DIFF:
                return [_diff(block.text)]
            case Kind.NOTICE | Kind.WARNING:
                return [Text(block.text, _STYLES[block.kind])]

    def _call(self, block: Block) -> Text:
        good, bad = self._marks
        room = max(20, 3 * self._console.width)
        summary = block.text if len(block.text) <= room else f"{block.text[:room]}... ({len(block.text)} characters)"
        line = Text()
        line.append(f"{good if block.good else bad} ", "green" if block.good else "red")
        line.append(f"{block.name} ", "bold")
        line.append(summary)
        if block.detail:
            line.append(f"  ({block.detail})", "dim" if block.good else "red")
        return line

    def _rendered(self, renderable: RenderableType) -> str:
        with self._console.capture() as captured:
            self._console.print(renderable)
        return captured.get()


def _markdown(text: str) -> Markdown:
    """Return Markdown whose links cannot lie: the address stands behind their words, where one sees it."""
    return Markdown(text, hyperlinks=False)


def _diff(text: str) -> Text:
    lines = text.splitlines()
    shown = Text()
    for line in lines[:_MOST_DIFF_LINES]:
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        shown.append(f"{line}\n", "bold" if line.startswith(("+++", "---")) else style)
    if len(lines) > _MOST_DIFF_LINES:
        shown.append(f"[... {len(lines) - _MOST_DIFF_LINES} more lines of the diff ...]\n", "dim")
    shown.rstrip()
    return shown
