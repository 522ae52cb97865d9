"""Drawings of a report, in SVG that a page can hold: maps, curves, bars and lanes. Colours are the page's variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import attrs

from novacode.lab.report_data import Map
from novacode.sessions.timeline import Timeline

__all__ = ["bars", "curve_legend", "curves", "heat_map", "lanes", "stretches", "strips"]

_WIDTH = 900
_LEFT = 120
_ROW = 22
_HEAD = 10  # above a map, so that its first line can be named where lines are thin
_EVEN = 15.0  # seconds: what takes longer would press the rest of an even axis to one side
DASHES = ("", "7 3", "2 3", "10 3 2 3", "1 5", "14 4")


def heat_map(found: Map) -> str:
    """Draw steps from left to right and seeds from top to bottom; neighbours that are alike are one rectangle."""
    seeds, steps = found.seeds, found.steps
    row = max(4, min(16, 240 // max(1, len(seeds))))
    scale = _WIDTH / max(1, steps)
    height = _HEAD + row * len(seeds) + 40
    parts = [_open(height, f"Outcomes of {found.scenario} by step and seed")]
    for line, seed in enumerate(seeds):
        for status, begin, end in stretches(found, seed):
            title = (
                f"seed {seed}, steps {begin} to {end - 1}: {status}" if end - begin > 1 else _cell(seed, begin, status)
            )
            parts.append(
                f'<rect x="{_LEFT + (begin - 1) * scale:.2f}" y="{_HEAD + line * row}"'
                f' width="{(end - begin) * scale:.2f}" height="{row - 1}" class="{_class(status)}">'
                f"<title>{escape(title)}</title></rect>"
            )
    for line, seed in enumerate(seeds):
        if line % max(1, math.ceil(14 / row)) == 0:
            parts.append(_text(_LEFT - 8, _HEAD + line * row + row - 2, f"seed {seed}", "end"))
    at_steps = (max(1, round(step)) for step in _ticks(steps))
    parts += (_text(_LEFT + (step - 0.5) * scale, height - 22, str(step), "middle") for step in at_steps)
    parts.append(_text(_LEFT + _WIDTH, height - 6, "scheduling step before which it was stopped", "end"))
    return "".join((*parts, "</svg>"))


def _cell(seed: int, step: int, status: str) -> str:
    return f"seed {seed}, step {step}: {status}"


def stretches(found: Map, seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield the steps under `seed` that ended alike: status, first step, and the one behind the last."""
    line = ((found.cells.get((seed, step), ""), step) for step in range(1, found.steps + 1))
    for status, group in itertools.groupby(line, key=lambda cell: cell[0]):
        members = list(group)
        if status:
            yield status, members[0][1], members[-1][1] + 1


@attrs.frozen
class Axis:
    """Seconds from left to right: even, or, where some take very much longer than others, in the logarithm of 1 + x."""

    most: float

    @property
    def bent(self) -> bool:
        """Whether it is logarithmic."""
        return self.most > _EVEN

    def at(self, seconds: float) -> float:
        """Return the place of `seconds`."""
        share = math.log1p(seconds) / math.log1p(self.most) if self.bent else seconds / self.most
        return _LEFT + share * _WIDTH

    def ticks(self) -> Iterator[float]:
        """Yield what is written under it."""
        if not self.bent:
            yield from _ticks(self.most)
            return
        yield 0.0
        marks = (times * 10.0**power for power in itertools.count() for times in (1, 2, 5))
        yield from itertools.takewhile(lambda mark: mark <= self.most, marks)


def curves(samples: Mapping[str, Sequence[float]], label: str) -> str:
    """Draw the share of samples that are at most x, one curve for each entry: sorted samples in seconds."""
    axis = Axis(1.1 * max((values[-1] for values in samples.values() if values), default=0.0) or 1.0)
    height, top = 300, 12
    parts = [_open(height + 50, label)]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + (1 - share) * (height - top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{share:.0%}", "end"))
    parts += (_text(axis.at(tick), height + 18, f"{tick:g}", "middle") for tick in axis.ticks())
    words = "seconds from the request to quiet" + (", logarithmic" if axis.bent else "")
    parts.append(_text(_LEFT + _WIDTH, height + 40, words, "end"))
    for number, (name, values) in enumerate(samples.items()):
        parts.append(_curve(number, _steps(values, axis, height, top), f"<title>{escape(name)}</title>"))
    return "".join((*parts, "</svg>"))


def curve_legend(names: Sequence[str]) -> str:
    """Return the names of the curves, each with a bit of its line."""
    shown = "".join(
        f'<span><svg class="key" viewBox="0 0 44 10" aria-hidden="true">{_curve(number, "M0 5H44", "")}</svg>'
        f"{escape(name)}</span>"
        for number, name in enumerate(names)
    )
    return f'<p class="legend">{shown}</p>\n'


def _curve(number: int, path: str, title: str) -> str:
    dash = DASHES[number % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="curve c{number % len(DASHES)}" d="{path}"{dashed}>{title}</path>'


def _steps(values: Sequence[float], axis: Axis, height: int, top: int) -> str:
    """Return the path of an empirical distribution: a step up at each value, as far as one can be told from the next.

    However many samples there are, the path has not more steps than a drawing can show.
    """
    path, before, y = [f"M{_LEFT:.1f} {height:.1f}"], 0, float(height)
    for x, group in itertools.groupby(round(axis.at(value)) for value in values):
        before += sum(1 for _ in group)
        path.append(f"H{x}")
        y = height - before / len(values) * (height - top)
        path.append(f"V{y:.1f}")
    path.append(f"H{_LEFT + _WIDTH}")
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


def strips(rows: Sequence[tuple[str, Sequence[tuple[int, int]]]], label: str) -> str:
    """Draw a line of boxes for each row; of each box `(all, bad)` the share that is bad is filled, from below."""
    left, width = 170, _WIDTH - 60
    parts = [_open(_ROW * len(rows) + 24, label)]
    for line, (name, boxes) in enumerate(rows):
        y, tall, wide = line * _ROW, _ROW - 5, width / max(1, len(boxes))
        parts.append(_text(left - 8, y + 15, name, "end"))
        for at, (number, bad) in enumerate(boxes):
            if not number:
                continue
            x, full = left + at * wide, bad / number * tall
            title = f"<title>{escape(f'{name}: {bad} of {number}')}</title>"
            place = f'x="{x:.1f}" width="{wide - 2:.1f}"'
            parts.append(f'<rect {place} y="{y + 2}" height="{tall}" class="box">{title}</rect>')
            if bad:
                parts.append(
                    f'<rect {place} y="{y + 2 + tall - full:.1f}" height="{full:.1f}" class="s-violated">{title}</rect>'
                )
    parts.append(_text(left, _ROW * len(rows) + 18, "first step", "start"))
    parts.append(_text(left + width, _ROW * len(rows) + 18, "last step", "end"))
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
