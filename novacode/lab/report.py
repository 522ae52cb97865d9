"""One page about what the lab has found: no script, nothing to load, light and dark, printable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import attrs

from novacode.errors import NovaError
from novacode.lab.asyncio_reference import VARIANTS
from novacode.lab.compare import Summary, summaries
from novacode.lab.point import Row
from novacode.lab.report_data import Broken, Data, Map, broken, by_phase, chosen_runs, maps_of
from novacode.lab.report_style import STYLE
from novacode.lab.report_svg import bars, curves, heat_map, lanes
from novacode.lab.scenario import find_scenario
from novacode.lab.trial import carry_out
from novacode.sessions.timeline import Kind, Timeline, timelines

__all__ = ["Wish", "report_page"]

_MOST_BROKEN = 200
_MOST_CURVES = 6  # in one drawing; the table below it has all
_OPEN_MAPS = 6  # maps that are shown at once; the others open when they are asked for


@attrs.frozen
class Wish:
    """What the page is to be like. `timelines` is how many runs are drawn."""

    title: str = "What the cancellation lab found"
    timelines: int = 3


def report_page(data: Data, wish: Wish | None = None) -> str:
    """Return the page about `data`. Runs that are drawn are carried out again, so their scenarios must be there."""
    wish = wish or Wish()
    found = broken(data)
    sections = [
        _facts(data, found),
        _violations(found),
        _timelines(data.rows, wish.timelines),
        _maps(maps_of(data.rows)),
        _latencies(by_phase(data.rows)),
        _compared(summaries(data.compared)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(wish.title)}</title>\n<style>{STYLE}</style>\n"
        f"<main>\n<h1>{escape(wish.title)}</h1>\n{''.join(sections)}</main>\n</html>\n"
    )


def _facts(data: Data, found: Sequence[Broken]) -> str:
    rows = data.rows
    own = sum(bool(row.violations) for row in rows if not row.point.fault)
    own += sum(bool(row.violations) for row in data.compared if row.executor == "trio")
    facts = [
        ("runs", len(rows) + len(data.compared)),
        ("of them stopped", sum(at is not None for at in _strikes(data))),
        ("scenarios", len({row.point.scenario for row in rows} | {row.scenario for row in data.compared})),
        ("different runs", len({row.trace for row in rows})),
        ("runs of the runtime that broke something", own),
    ]
    cards = "".join(
        f'<div class="fact{" bad" if name.endswith("something") and number else ""}"><b>{number:,}</b>{name}</div>'
        for name, number in facts
        if number or name != "different runs"
    )
    planted = sorted({row.point.fault for row in rows} - {""})
    more = f" Planted faults: {', '.join(planted)}." if planted else ""
    read = f"Read from {', '.join(data.sources)}.{more}"
    return f'<div class="facts">{cards}</div>\n<p class="soft">{escape(read)}</p>\n'


def _strikes(data: Data) -> Iterator[float | None]:
    yield from (row.struck_at for row in data.rows)
    yield from (row.struck_at for row in data.compared)


def _violations(found: Sequence[Broken]) -> str:
    if not found:
        return "<h2>Violations</h2>\n<p>None: no invariant was broken in any run.</p>\n"
    own = "" if any(item.own for item in found) else " The runtime itself broke nothing."
    body = "".join(
        f"<tr><td>{escape(item.where)}</td><td><code>{escape(item.kind)}</code></td><td>{item.runs}</td>"
        f"<td>{escape(item.text[:300])}<br><code>{escape(item.command)}</code></td></tr>\n"
        for item in found[:_MOST_BROKEN]
    )
    left = len(found) - _MOST_BROKEN
    more = f"<p>{left} more are in the rows.</p>\n" if left > 0 else ""
    return (
        f"<h2>Violations</h2>\n<p>Each is shown once, with the command that does its first run again.{own}</p>\n"
        '<div class="wide"><table class="texts"><tr><th>where</th><th>invariant</th><th>runs</th>'
        f"<th>the first, and its command</th></tr>\n{body}</table></div>\n{more}"
    )


def _timelines(rows: Sequence[Row], most: int) -> str:
    drawn = "".join(_drawn(why, row) for why, row in chosen_runs(rows, most))
    if not drawn:
        return ""
    return f"<h2>Runs, drawn</h2>\n{_legend({f'p-{kind}': _SPANS[kind] for kind in Kind})}{drawn}"


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


def _drawn(why: str, row: Row) -> str:
    """Return the figure of a run; where its scenario is not to be had any more, the words for that."""
    title = f"{row.point.scenario}: {why}"
    command = f"<code>{escape(row.point.command)}</code>"
    try:
        timeline = _timeline(row)
    except NovaError as error:
        return f"<p>{escape(title)}; it cannot be drawn: {escape(str(error))}</p>\n"
    stop = "" if row.latency_s is None else f", quiet {row.latency_s:g} s after the request to stop"
    words = f"{title}. {row.status or 'no end'}{stop}."
    return (
        f"<figure><figcaption>{escape(words)} {command}</figcaption>"
        f'<div class="wide">{lanes(timeline)}</div></figure>\n'
    )


def _timeline(row: Row) -> Timeline:
    trial = carry_out(find_scenario(row.point.scenario), attrs.evolve(row.point, fault=""))
    return timelines(trial.first_events)[0]


def _maps(maps: Sequence[Map]) -> str:
    if not maps:
        return ""
    words = "Each square is one run: stopped before that step, under that seed. The colour is how the run ended."
    statuses = {status for each in maps for status in each.statuses}
    legend = _legend({f"s-{status}": status for status in _STATUSES if status in statuses})
    shown = "".join(_map(each) for each in maps[:_OPEN_MAPS])
    rest = "".join(_map(each) for each in maps[_OPEN_MAPS:])
    folded = f"<details><summary>{len(maps) - _OPEN_MAPS} more scenarios</summary>{rest}</details>\n" if rest else ""
    return f"<h2>Outcomes by step and seed</h2>\n<p>{words}</p>\n{legend}{shown}{folded}"


_STATUSES = ("completed", "cancelled", "limit", "refused", "failed", "crashed", "violated")


def _map(found: Map) -> str:
    counts = ", ".join(f"{number} {status}" for status, number in found.statuses.most_common())
    words = f"{found.scenario}, stopped by {found.how}: {counts}"
    return f'<figure><figcaption>{escape(words)}</figcaption><div class="wide">{heat_map(found)}</div></figure>\n'


def _latencies(samples: Mapping[str, Sequence[float]]) -> str:
    if not samples:
        return ""
    return (
        "<h2>From the request to quiet</h2>\n<p>By what the run was at when it was stopped; virtual time, in which only"
        f" what a scenario says takes time.</p>\n{_curves(samples, 'Latency by phase', 'phase')}"
    )


def _curves(samples: Mapping[str, Sequence[float]], label: str, of: str) -> str:
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{len(values)}</td>"
        + "".join(f"<td>{_quantile(values, share):g}</td>" for share in (0.5, 0.9, 0.99, 1.0))
        + "</tr>\n"
        for name, values in samples.items()
    )
    drawn = dict(list(samples.items())[:_MOST_CURVES])
    legend = _legend({f"l{number}": name for number, name in enumerate(drawn)})
    return (
        f'{legend}<div class="wide">{curves(drawn, label)}</div>\n<div class="wide"><table><tr><th>{of}</th>'
        f"<th>runs</th><th>median</th><th>90 %</th><th>99 %</th><th>most, s</th></tr>\n{body}</table></div>\n"
    )


def _quantile(values: Sequence[float], share: float) -> float:
    return values[max(0, math.ceil(share * len(values)) - 1)]


def _compared(found: Sequence[Summary]) -> str:
    if not found:
        return ""
    kinds = [kind for kind, _ in sum((Counter(each.kinds) for each in found), Counter[str]()).most_common()]
    phases = _phases(found)
    parts = [
        "<h2>Beside asyncio</h2>\n",
        "<p>The same scripts, stopped at each step, on the trio runtime and on asyncio executors.</p>\n",
        f'<div class="wide"><table class="first">{"".join(_compared_rows(found))}</table></div>\n',
    ]
    if kinds:
        parts += [
            "<h3>Runs that broke an invariant, by kind</h3>\n",
            _legend({f"k{number % 9}": kind for number, kind in enumerate(kinds)}),
            f'<div class="wide">{bars([(each.executor, each.kinds) for each in found], kinds, "By kind")}</div>\n',
            "<h3>And by what the run was at when it was stopped</h3>\n",
            _legend({f"k{number % 9}": phase for number, phase in enumerate(phases)}),
            f'<div class="wide">{bars(_by_phase(found), phases, "By phase")}</div>\n',
        ]
    curves_of = {each.executor: each.latencies for each in found if each.latencies}
    if curves_of:
        parts += [
            "<h3>From the request to quiet</h3>\n",
            _curves(curves_of, "Latency by executor", "executor"),
        ]
    return "".join(parts)


def _compared_rows(found: Sequence[Summary]) -> Iterator[str]:
    yield (
        "<tr><th>executor</th><th>what is wrong with it</th><th>runs</th><th>broken</th><th>orphans</th>"
        "<th>late effects</th><th>never quiet</th><th>median, s</th><th>most, s</th></tr>\n"
    )
    for each in found:
        known = VARIANTS.get(each.executor)
        middle, most = each.latency(0.5), each.latency(1.0)
        numbers = [each.runs, each.violating, each.orphans, each.late_effects, each.never_quiet]
        cells = "".join(f"<td>{number}</td>" for number in numbers)
        cells += "".join("<td></td>" if value is None else f"<td>{value:g}</td>" for value in (middle, most))
        yield f"<tr><td>{escape(each.executor)}</td><td>{escape(known.breaks if known else '')}</td>{cells}</tr>\n"


def _phases(found: Sequence[Summary]) -> list[str]:
    count: Counter[str] = Counter()
    for each in found:
        for (_, phase), number in each.phases.items():
            count[phase] += number
    return [phase for phase, _ in count.most_common()]


def _by_phase(found: Sequence[Summary]) -> list[tuple[str, Mapping[str, int]]]:
    rows: list[tuple[str, Mapping[str, int]]] = []
    for each in found:
        count: Counter[str] = Counter()
        for (_, phase), number in each.phases.items():
            count[phase] += number
        rows.append((each.executor, count))
    return rows


def _legend(entries: Mapping[str, str]) -> str:
    shown = "".join(f'<span><i class="{name}"></i>{escape(words)}</span>' for name, words in entries.items())
    return f'<p class="legend">{shown}</p>\n'
