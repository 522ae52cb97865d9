"""The parts of a report in which runs are drawn: time-lines of some, and maps of what became of all."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from html import escape

import attrs

from novacode.errors import NovaError
from novacode.lab.faults import planted
from novacode.lab.point import Row
from novacode.lab.report_data import Map, chosen_runs
from novacode.lab.report_parts import folded, legend, table, wide
from novacode.lab.report_svg import heat_map, lanes, stretches
from novacode.lab.scenario import find_scenario
from novacode.lab.trial import carry_out
from novacode.sessions.timeline import Kind, Span, Timeline, timelines

__all__ = ["map_section", "timeline_section"]

_OPEN_MAPS = 6  # maps that are shown at once; the others open when they are asked for
_MOST_MAPS = 40
_STATUSES = ("completed", "cancelled", "limit", "refused", "failed", "crashed", "violated")
_SPANS = {
    Kind.ASKED: "model asked",
    Kind.STREAM: "model answers",
    Kind.WAITING: "waiting",
    Kind.HOOK: "hook",
    Kind.ASKING: "person asked",
    Kind.QUEUED: "queued",
    Kind.RUNNING: "running",
    Kind.STOPPING: "stopping",
}


def timeline_section(rows: Sequence[Row], most: int) -> str:
    """Draw `most` of the runs, each carried out again; nothing where there are none."""
    drawn = "".join(_drawn(why, row) for why, row in chosen_runs(rows, most))
    if not drawn:
        return ""
    return f"<h2>Runs, drawn</h2>\n{legend({f'p-{kind}': _SPANS[kind] for kind in Kind})}{drawn}"


def _drawn(why: str, row: Row) -> str:
    """Return the figure of a run; where its scenario is not to be had any more, the words for that."""
    title = f"{row.point.scenario}: {why}"
    try:
        timeline = _timeline(row)
    except NovaError as error:
        return f"<p>{escape(title)}; it cannot be drawn: {escape(str(error))}</p>\n"
    if timeline is None:
        return f"<p>{escape(title)}; it cannot be drawn: nothing was said before it came to its end.</p>\n"
    stop = "" if row.latency_s is None else f", quiet {row.latency_s:g} s after the request to stop"
    words = f"{title}. {row.status or 'no end'}{stop}."
    spans = (
        (lane.title, _SPANS[span.kind], round(span.begin, 3), round(span.end, 3), lane.outcome)
        for lane in timeline.lanes
        for span in lane.spans
    )
    shown = table(("task", "doing", "from, s", "to, s", "outcome"), spans, "spans")
    return (
        f"<figure><figcaption>{escape(words)} <code>{escape(row.point.command)}</code></figcaption>\n"
        f"{wide(lanes(timeline))}{folded('The same as a table', shown)}</figure>\n"
    )


def _timeline(row: Row) -> Timeline | None:
    """Carry the run of `row` out again, with the fault it had; `None` where not even its beginning was said."""
    fault = row.point.fault
    with planted(fault) if fault else contextlib.nullcontext():
        trial = carry_out(find_scenario(row.point.scenario), row.point)
    # A run that crashed or hung has no end to take stock at: all that was said is drawn then.
    found = next(iter(timelines(trial.first_events or trial.events)), None)
    if found is None or trial.struck_at is None or not trial.struck_run:
        return found
    return _stopped(found, trial.struck_at - found.began_at)


def _stopped(timeline: Timeline, at: float) -> Timeline:
    """Return it with the request to stop at `at`: one from outside is on no record, so the events do not tell."""
    lanes = tuple(attrs.evolve(lane, spans=tuple(_split(lane.spans, at))) for lane in timeline.lanes)
    return attrs.evolve(timeline, lanes=lanes, stop_at=at)


def _split(spans: Sequence[Span], at: float) -> Iterator[Span]:
    for span in spans:
        if span.kind is Kind.STOPPING or span.end <= at:
            yield span
            continue
        if span.begin < at:
            yield Span(span.kind, span.begin, at)
        yield Span(Kind.STOPPING, max(span.begin, at), span.end)


def map_section(maps: Sequence[Map]) -> str:
    """Draw each map; nothing where there are none."""
    if not maps:
        return ""
    words = "Each square is one run: stopped before that step, under that seed. The colour is how the run ended."
    statuses = {status for each in maps for status in each.statuses}
    known = {f"s-{status}": status for status in _STATUSES if status in statuses}
    shown = "".join(map(_map, maps[:_OPEN_MAPS]))
    rest = "".join(map(_map, maps[_OPEN_MAPS:_MOST_MAPS]))
    more = folded(f"{len(maps[_OPEN_MAPS:_MOST_MAPS])} more scenarios", rest) if rest else ""
    left = len(maps) - _MOST_MAPS
    told = f"<p>{left} more scenarios are in the rows.</p>\n" if left > 0 else ""
    return f"<h2>Outcomes by step and seed</h2>\n<p>{words}</p>\n{legend(known)}{shown}{more}{told}"


def _map(found: Map) -> str:
    counts = ", ".join(f"{number} {status}" for status, number in found.statuses.most_common())
    words = f"{found.scenario}, stopped by {found.how}: {counts}"
    if left := found.seeds_left:
        words += f". {left} more seeds are in the rows"
    return (
        f"<figure><figcaption>{escape(words)}</figcaption>\n{wide(heat_map(found))}"
        f"{folded('The same as a table', table(('seeds', 'steps'), _lines(found), 'texts'))}</figure>\n"
    )


def _lines(found: Map) -> Iterator[tuple[str, str]]:
    """Yield what became of the steps under each seed; seeds with the same are in one line."""
    for words, group in itertools.groupby(found.seeds, key=lambda seed: _words(found, seed)):
        seeds = list(group)
        yield str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}", words


def _words(found: Map, seed: int) -> str:
    return "; ".join(
        f"{begin} {status}" if end - begin == 1 else f"{begin}–{end - 1} {status}"
        for status, begin, end in stretches(found, seed)
    )
