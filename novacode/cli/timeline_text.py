"""A run's time-line in the terminal: a bar for each task, drawn to one scale."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from novacode.cli.escape import in_one_line
from novacode.sessions.timeline import Kind, Lane, Timeline

__all__ = ["draw", "lines"]

_MARKS = {
    Kind.ASKED: ("·", ".", "dim"),
    Kind.STREAM: ("━", "=", "blue"),
    Kind.WAITING: ("·", ".", "dim"),
    Kind.HOOK: ("▚", "h", "magenta"),
    Kind.ASKING: ("?", "?", "yellow"),
    Kind.QUEUED: ("░", ":", "cyan"),
    Kind.RUNNING: ("█", "#", "green"),
    Kind.STOPPING: ("▒", "x", "red"),
}
_WORDS = {
    Kind.STREAM: "answering",
    Kind.WAITING: "waiting",
    Kind.HOOK: "a hook",
    Kind.ASKING: "a person is asked",
    Kind.QUEUED: "queued",
    Kind.RUNNING: "running",
    Kind.STOPPING: "stopping",
}
_NARROWEST = 10
_LABEL = 24
_TAIL = 22


def draw(timeline: Timeline) -> None:
    """Draw on standard output, in its width and with what it can show."""
    plain = not _can_say("".join(mark for mark, _, _ in _MARKS.values()))
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines(timeline, console.width, plain=plain):
        console.print(line)


def lines(timeline: Timeline, width: int, *, plain: bool = False) -> Iterator[Text]:
    """Yield the lines of a drawing that is `width` columns wide; `plain` in ASCII."""
    label = min(_LABEL, max([4, *(len(lane.title) for lane in timeline.lanes)]))
    room = max(_NARROWEST, width - label - _TAIL - 2)
    how = f"{timeline.status} ({timeline.reason})" if timeline.status else "without an end"
    yield Text(in_one_line(f"{timeline.run_id}: {timeline.prompt}", max(width, 20)))
    yield Text(f"{_seconds(timeline.seconds)}, {how}{_stop_words(timeline)}", "dim")
    for lane in timeline.lanes:
        yield _line(lane, timeline.seconds, (label, room), plain=plain)
    used = {span.kind for lane in timeline.lanes for span in lane.spans}
    legend = Text()
    for kind, words in _WORDS.items():
        if kind in used:
            mark, ascii_, style = _MARKS[kind]
            legend.append((ascii_ if plain else mark) * 2, style).append(f" {words}  ")
    yield legend


def _line(lane: Lane, seconds: float, columns: tuple[int, int], *, plain: bool) -> Text:
    label, room = columns
    line = Text(f"{in_one_line(lane.title, label):<{label}} ")
    for kind in _cells(lane, seconds, room):
        if kind is None:
            line.append(" ")
        else:
            mark, ascii_, style = _MARKS[kind]
            line.append(ascii_ if plain else mark, style)
    took = sum(span.end - span.begin for span in lane.spans)
    return line.append(f" {_seconds(took):>8} {in_one_line(lane.outcome, _TAIL - 10)}")


def _cells(lane: Lane, seconds: float, room: int) -> list[Kind | None]:
    """Return what each column shows. The longest stretch in a column wins; what was there is never drawn as nothing."""
    cells: list[Kind | None] = [None] * room
    held = [0.0] * room
    scale = room / seconds if seconds > 0 else 0.0
    for span in lane.spans:
        first, last = int(span.begin * scale), max(int(span.begin * scale), int(span.end * scale - 1e-9))
        for column in range(min(first, room - 1), min(last, room - 1) + 1):
            share = min(span.end * scale, column + 1) - max(span.begin * scale, column)
            if cells[column] is None or share > held[column]:
                cells[column], held[column] = span.kind, share
    return cells


def _stop_words(timeline: Timeline) -> str:
    if timeline.stop_at is None:
        return ""
    tail = timeline.seconds - timeline.stop_at
    return f"; asked to stop at {_seconds(timeline.stop_at)}, quiet {_seconds(tail)} later"


def _seconds(value: float) -> str:
    if value < 10:
        return f"{value:.3f} s"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def _can_say(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
