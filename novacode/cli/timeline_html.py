"""A run's time-line as one page: drawn in SVG, light and dark, with nothing to load and nothing that runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from novacode.cli.escape import in_one_line, visible
from novacode.sessions.timeline import Kind, Lane, Timeline

__all__ = ["timeline_page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #5b6470; --paper: #fff; --line: #d8dce1;
  --asked: #b3c9e8; --stream: #3b76c4; --waiting: #b9c0c9; --hook: #8e5bb5; --asking: #d9a520; --queued: #63b3c8;
  --running: #3f9a5b; --stopping: #cf4436; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa3ae; --paper: #14171b; --line: #363d46; --asked: #3d5a80; --waiting: #5a636e;
    --stream: #5b93dd; --running: #54b173; --asking: #e0b544; --stopping: #e2685c; }
}
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; max-width: 80rem;
  margin: clamp(1rem, 3vw, 2rem) auto; padding: 0 clamp(1rem, 3vw, 2rem); overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 0; } p { margin: .4rem 0 1rem; }
.wide { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 46rem; height: auto; font: 12px system-ui, sans-serif; }
text { fill: var(--ink); } .soft { fill: var(--soft); color: var(--soft); } .grid { stroke: var(--line); }
.stop { stroke: var(--stopping); stroke-dasharray: 4 3; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
i { display: inline-block; width: 1em; height: .8em; margin-right: .4em; border-radius: 2px; }
table { border-collapse: collapse; margin-top: .5rem; white-space: nowrap; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .8rem; text-align: right; vertical-align: bottom;
  font-variant-numeric: tabular-nums; }
th { font-weight: 600; } th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td:first-child { white-space: normal; min-width: 9rem; }
"""
_WORDS = {
    Kind.ASKED: "the model is asked",
    Kind.STREAM: "the model answers",
    Kind.WAITING: "waiting",
    Kind.HOOK: "a hook",
    Kind.ASKING: "a person is asked",
    Kind.QUEUED: "queued",
    Kind.RUNNING: "running",
    Kind.STOPPING: "stopping",
}
_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 190, 900, 110, 24, 30
_TICKS = 8


def timeline_page(timeline: Timeline) -> str:
    """Return the page of one run."""
    title = escape(in_one_line(timeline.prompt or timeline.run_id, 120))
    how = f"{timeline.status} ({timeline.reason})" if timeline.status else "without an end"
    facts = f"{timeline.run_id}: {timeline.seconds:.3f} s, {how}"
    if timeline.stop_at is not None:
        tail = timeline.seconds - timeline.stop_at
        facts += f"; asked to stop at {timeline.stop_at:.3f} s, quiet {tail:.3f} s later"
    used = [kind for kind in _WORDS if any(span.kind is kind for lane in timeline.lanes for span in lane.spans)]
    legend = "".join(f'<span><i style="background:var(--{kind})"></i>{_WORDS[kind]}</span>' for kind in used)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n<h1>{title}</h1>\n"
        f'<p class="soft">{escape(visible(facts))}</p>\n<div class="wide">{"".join(_svg(timeline))}</div>\n'
        f'<p class="legend">{legend}</p>\n<div class="wide">{"".join(_table(timeline, used))}</div>\n</html>\n'
    )


def _svg(timeline: Timeline) -> Iterator[str]:
    height = _TOP + _ROW * len(timeline.lanes) + 10
    width = _LEFT + _WIDTH + _RIGHT
    yield f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="What overlapped">'
    scale = _WIDTH / timeline.seconds if timeline.seconds > 0 else 0.0
    for at in _ticks(timeline.seconds):
        x = _LEFT + at * scale
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height}"/>'
        yield f'<text class="soft" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">{at:g} s</text>'
    for row, lane in enumerate(timeline.lanes):
        yield from _lane(lane, _TOP + row * _ROW, scale)
    if timeline.stop_at is not None:
        x = _LEFT + timeline.stop_at * scale
        yield f'<line class="stop" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height}"><title>stop</title></line>'
    yield "</svg>"


def _lane(lane: Lane, y: int, scale: float) -> Iterator[str]:
    yield f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(in_one_line(lane.title, 28))}</text>'
    end = 0.0
    for span in lane.spans:
        x, width = _LEFT + span.begin * scale, max(1.0, (span.end - span.begin) * scale)
        words = f"{lane.title}: {_WORDS[span.kind]}, {span.begin:.3f} s to {span.end:.3f} s"
        yield (
            f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_ROW - 8}" rx="2" fill="var(--{span.kind})">'
            f"<title>{escape(visible(words))}</title></rect>"
        )
        end = max(end, x + width)
    if lane.outcome:
        yield f'<text class="soft" x="{max(end, _LEFT) + 6:.1f}" y="{y + 15}">{escape(lane.outcome)}</text>'


def _table(timeline: Timeline, used: list[Kind]) -> Iterator[str]:
    """The same in numbers, for who cannot see the drawing or wants to copy it."""
    heads = "".join(f"<th>{_WORDS[kind]}</th>" for kind in used)
    yield f"<table><tr><th>seconds</th>{heads}<th>outcome</th></tr>"
    for lane in timeline.lanes:
        spent = (lane.of(kind) if any(span.kind is kind for span in lane.spans) else None for kind in used)
        cells = "".join("<td></td>" if seconds is None else f"<td>{seconds:.3f}</td>" for seconds in spent)
        yield f"<tr><td>{escape(visible(lane.title))}</td>{cells}<td>{escape(lane.outcome)}</td></tr>"
    yield "</table>"


def _ticks(seconds: float) -> Iterator[float]:
    """Yield round times from 0 to the end, at most about `_TICKS` of them."""
    if seconds <= 0:
        return
    step = 10 ** math.floor(math.log10(seconds / _TICKS))
    step *= next((times for times in (1, 2, 5) if step * times * _TICKS >= seconds), 10)
    yield from (round(step * number, 6) for number in range(int(seconds / step) + 1))
