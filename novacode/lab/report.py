"""One page about what the lab has found: no script, nothing to load, light and dark, printable."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import attrs

from novacode.lab.compare import TRIO, summaries
from novacode.lab.faults import FAULTS
from novacode.lab.report_compare import compare_section
from novacode.lab.report_data import Broken, Data, Tried, broken, by_phase, family, maps_of, tried_faults
from novacode.lab.report_latency import latency_section
from novacode.lab.report_parts import table, wide
from novacode.lab.report_runs import map_section, timeline_section
from novacode.lab.report_style import STYLE

__all__ = ["Wish", "report_page"]

_MOST_BROKEN = 200
_MOST_SOURCES = 8
_HEADS = "".join(
    f'<th scope="col">{head}</th>'
    for head in ("where", "invariant", "runs", "stopped at", "the first, and its command")
)


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
        timeline_section(data.rows, wish.timelines),
        map_section(maps_of(data.rows)),
        latency_section(by_phase(data.rows), by_phase(data.real)),
        compare_section(summaries(data.compared)),
        _faults(tried_faults(data.rows)),
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
    own = sum(bool(row.violations) for row in (*rows, *data.real) if not row.point.fault)
    own += sum(bool(each.row.violations) for each in data.compared if each.executor == TRIO)
    all_rows = [*rows, *data.real, *(each.row for each in data.compared)]
    facts = [
        ("runs", len(all_rows)),
        ("of them stopped", sum(row.struck_at is not None for row in all_rows)),
        ("scenarios", len({family(row.point.scenario) for row in all_rows})),
        ("different runs", len({row.trace for row in rows})),
        ("runs of the runtime that broke something", own),
    ]
    cards = "".join(
        f'<div class="fact{" bad" if name.endswith("something") and number else ""}"><b>{number:,}</b>{name}</div>'
        for name, number in facts
        if number or name != "different runs"
    )
    return f'<div class="facts">{cards}</div>\n<p class="soft">{escape(f"Read from {_names(data.sources)}.")}</p>\n'


def _names(sources: Sequence[str]) -> str:
    left = len(sources) - _MOST_SOURCES
    return ", ".join(sources[:_MOST_SOURCES]) + (f" and {left} more" if left > 0 else "")


def _violations(found: Sequence[Broken]) -> str:
    if not found:
        return "<h2>Violations</h2>\n<p>None: no invariant was broken in any run.</p>\n"
    own = "" if any(item.own for item in found) else " The runtime itself broke nothing."
    body = "".join(
        f"<tr><td>{escape(item.where)}</td><td><code>{escape(item.kind)}</code></td><td>{item.runs}</td><td>{escape(_phases(item))}</td>"
        f"<td>{escape(item.text[:300])}<br><code>{escape(item.command)}</code></td></tr>\n"
        for item in found[:_MOST_BROKEN]
    )
    shown = f'<table class="texts violations"><thead><tr>{_HEADS}</tr></thead>\n<tbody>{body}</tbody></table>'
    left = len(found) - _MOST_BROKEN
    more = f"<p>{left} more are in the rows.</p>\n" if left > 0 else ""
    return (
        f"<h2>Violations</h2>\n<p>Each is shown once, with the command that does its first run again.{own}</p>\n"
        f"{wide(shown)}{more}"
    )


def _phases(item: Broken) -> str:
    return ", ".join(f"{phase} {number}" for phase, number in item.phases.items())


def _faults(tried: Sequence[Tried]) -> str:
    """Return the mutation score: of the faults that were planted on purpose, how many the invariants saw."""
    if not tried:
        return ""
    found = sum(each.found > 0 for each in tried)
    score = f"{found} of {len(tried)} found: mutation score {found / len(tried):.0%}."
    left = len(FAULTS) - len({each.name for each in tried} & set(FAULTS))
    more = f" {left} more of the catalogue were not tried." if left else " That is the whole catalogue."
    rows = (
        (each.name, FAULTS[each.name].breaks if each.name in FAULTS else "", each.runs, each.found, _seen(each))
        for each in tried
    )
    return (
        f"<h2>Faults planted on purpose</h2>\n<p>{score}{more} One that survives is a missing invariant, or was not"
        f" tried where it shows.</p>\n{table(('fault', 'what it breaks', 'runs', 'broken', 'seen by'), rows, 'faults')}"
    )


def _seen(each: Tried) -> str:
    return ", ".join(each.kinds) or "survived"
