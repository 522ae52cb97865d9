"""Drawings of a report, in SVG that a page can hold: maps, curves, bars and lanes. Colours are the page's variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from novacode.lab.report_data import Map
from novacode.sessions.timeline import Timeline

__all__ = ["bars", "curves", "heat_map", "lanes"]

_WIDTH = 900
_LEFT = 120
_ROW = 22
DASHES = ("", "7 3", "2 3", "10 3 2 3", "1 5", "14 4")


def heat_map(found: Map) -> str:
    """Draw steps from left to right and seeds from top to bottom; neighbours that are alike are one rectangle."""
    seeds, steps = found.seeds, found.steps
    row = max(4, min(16, 240 // max(1, len(seeds))))
    scale = _WIDTH / max(1, steps)
    height = row * len(seeds) + 34
    parts = [_open(height, f"Outcomes of {found.scenario} by step and seed")]
    for line, seed in enumerate(seeds):
        for status, begin, end in _runs(found, seed, steps):
            title = (
                f"seed {seed}, steps {begin} to {end - 1}: {status}" if end - begin > 1 else _cell(seed, begin, status)
            )
            parts.append(
                f'<rect x="{_LEFT + (begin - 1) * scale:.2f}" y="{line * row}" width="{(end - begin) * scale:.2f}"'
                f' height="{row - 1}" class="{_class(status)}"><title>{escape(title)}</title></rect>'
            )
    for line, seed in enumerate(seeds):
        if line % max(1, math.ceil(14 / row)) == 0:
            parts.append(_text(_LEFT - 8, line * row + row - 2, f"seed {seed}", "end"))
    at_steps = (max(1, round(step)) for step in _ticks(steps))
    parts += (_text(_LEFT + (step - 0.5) * scale, height - 16, str(step), "middle") for step in at_steps)
    parts.append(_text(_LEFT + _WIDTH, height - 2, "scheduling step before which it was stopped", "end"))
    return "".join((*parts, "</svg>"))


def _cell(seed: int, step: int, status: str) -> str:
    return f"seed {seed}, step {step}: {status}"


def _runs(found: Map, seed: int, steps: int) -> Iterator[tuple[str, int, int]]:
    line = ((found.cells.get((seed, step), ""), step) for step in range(1, steps + 1))
    for status, group in itertools.groupby(line, key=lambda cell: cell[0]):
        members = list(group)
        if status:
            yield status, members[0][1], members[-1][1] + 1


def curves(samples: Mapping[str, Sequence[float]], label: str) -> str:
    """Draw the share of samples that are at most x, one curve for each entry: sorted samples in seconds.

    A few that took very long would press all others to one side, so what is far beyond most of them is left out.
    """
    most = 1.25 * max((values[int(0.97 * (len(values) - 1))] for values in samples.values() if values), default=0.0)
    most = most or 1.0
    height, top = 300, 12
    parts = [_open(height + 44, label)]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + (1 - share) * (height - top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{share:.0%}", "end"))
    parts += (_text(_LEFT + at / most * _WIDTH, height + 18, f"{at:g}", "middle") for at in _ticks(most))
    parts.append(_text(_LEFT + _WIDTH, height + 38, "seconds of virtual time from the request to quiet", "end"))
    for number, (name, values) in enumerate(samples.items()):
        path, dash = _steps(values, most, height, top), DASHES[number % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<path class="curve c{number % 6}" d="{path}"{dashed}><title>{escape(name)}</title></path>')
    return "".join((*parts, "</svg>"))


def _steps(values: Sequence[float], most: float, height: int, top: int) -> str:
    """Return the path of an empirical distribution: a step up at each value that occurs."""
    path, before, y = [f"M{_LEFT:.1f} {height:.1f}"], 0.0, float(height)
    for value, group in itertools.groupby(itertools.takewhile(lambda value: value <= most, values)):
        before += len(list(group))
        x = _LEFT + value / most * _WIDTH
        path.append(f"L{x:.1f} {y:.1f}")
        y = height - before / len(values) * (height - top)
        path.append(f"L{x:.1f} {y:.1f}")
    path.append(f"L{_LEFT + _WIDTH:.1f} {y:.1f}")
    return "".join(path)


def bars(rows: Sequence[tuple[str, Mapping[str, int]]], kinds: Sequence[str], label: str) -> str:
    """Draw a bar for each row, of its counts by kind side by side; the number is written behind it."""
    most = max((sum(counts.values()) for _, counts in rows), default=0) or 1
    left, width = 170, _WIDTH - 110
    parts = [_open(_ROW * len(rows) + 8, label)]
    for line, (name, counts) in enumerate(rows):
        y, x = line * _ROW, float(left)
        parts.append(_text(left - 8, y + 15, name, "end"))
        for kind in kinds:
            if count := counts.get(kind, 0):
                wide = count / most * width
                parts.append(
                    f'<rect x="{x:.1f}" y="{y + 3}" width="{wide:.1f}" height="{_ROW - 7}"'
                    f' class="k{kinds.index(kind) % 9}"><title>{escape(f"{name}: {kind} {count}")}</title></rect>'
                )
                x += wide
        parts.append(_text(x + 6, y + 15, str(sum(counts.values())), "start"))
    return "".join((*parts, "</svg>"))


def lanes(timeline: Timeline) -> str:
    """Draw a run: a lane for each stream and each call."""
    height = _ROW * len(timeline.lanes) + 40
    scale = (_WIDTH - 100) / timeline.seconds if timeline.seconds > 0 else 0.0
    parts = [_open(height, f"What overlapped in {timeline.run_id}")]
    for at in _ticks(timeline.seconds):
        x = _LEFT + at * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 24}"/>')
        parts.append(_text(x, height - 8, f"{at:g} s", "middle"))
    for line, lane in enumerate(timeline.lanes):
        y, end = line * _ROW, float(_LEFT)
        parts.append(_text(_LEFT - 8, y + 15, _short(lane.title), "end"))
        for span in lane.spans:
            x, wide = _LEFT + span.begin * scale, max(1.5, (span.end - span.begin) * scale)
            words = f"{lane.title}: {span.kind}, {span.begin:g} s to {span.end:g} s"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{wide:.1f}" height="{_ROW - 7}" class="p-{span.kind}">'
                f"<title>{escape(words)}</title></rect>"
            )
            end = max(end, x + wide)
        parts.append(_text(end + 6, y + 15, lane.outcome, "start"))
    if timeline.stop_at is not None:
        x = _LEFT + timeline.stop_at * scale
        parts.append(
            f'<line class="stop" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 24}"><title>stop</title></line>'
        )
    return "".join((*parts, "</svg>"))


def _open(height: float, label: str) -> str:
    return f'<svg viewBox="0 0 {_LEFT + _WIDTH + 40} {height:.0f}" role="img" aria-label="{escape(label)}">'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _class(status: str) -> str:
    known = ("completed", "cancelled", "failed", "limit", "refused", "crashed", "violated")
    return f"s-{status}" if status in known else "s-other"


def _short(title: str) -> str:
    return title if len(title) <= 18 else f"{title[:17]}…"


def _ticks(most: float) -> Iterator[float]:
    """Yield round numbers from 0 to `most`, about eight of them."""
    if most <= 0:
        return
    step = 10.0 ** math.floor(math.log10(most / 8))
    step *= next((times for times in (1, 2, 5) if step * times * 8 >= most), 10)
    yield from (round(step * number, 9) for number in range(int(most / step + 1e-9) + 1))
