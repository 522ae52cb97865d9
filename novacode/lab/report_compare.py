"""The part of a report about executors: what each broke, where, what it left behind, and how long it took to stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from novacode.lab.asyncio_variants import VARIANTS
from novacode.lab.compare import PARTS, Summary
from novacode.lab.report_latency import latency_figure
from novacode.lab.report_parts import folded, legend, table, wide
from novacode.lab.report_svg import bars, strips

__all__ = ["compare_section"]

_TABLE = "The same as a table"
_HEADS = (
    "executor",
    "what it does",
    "runs",
    "broken",
    "orphans",
    "late effects",
    "never quiet",
    "median, s",
    "most, s",
)


def compare_section(found: Sequence[Summary]) -> str:
    """Return the section; nothing where nothing was compared."""
    if not found:
        return ""
    parts = [
        "<h2>Beside asyncio</h2>\n",
        "<p>The same scripts, stopped at each step, on the trio runtime and on asyncio executors.</p>\n",
        table(_HEADS, _rows(found), "first"),
        "<p>A run that broke two invariants counts for each in the drawings.</p>\n",
        _figure("Runs that broke an invariant, by kind", found, [each.kinds for each in found]),
        _figure("And by what the run was at when it was stopped", found, [_by_phase(each) for each in found]),
        _points(found),
        _amounts(
            "Tasks left behind", "tasks alive when the run had returned", [(f.executor, f.orphans) for f in found]
        ),
        _amounts("Late effects", "effects after the request to stop", [(f.executor, f.late_effects) for f in found]),
    ]
    if curves_of := _different(found):
        parts += [
            "<h3>From the request to quiet</h3>\n",
            latency_figure(curves_of, "Latency by executor", "executor"),
        ]
    return "".join(parts)


def _different(found: Sequence[Summary]) -> dict[str, Sequence[float]]:
    """Return latencies by executor, those that are alike under one name: the first two, then the slowest first."""
    alike: dict[tuple[float | None, ...], list[Summary]] = {}
    for each in found:
        if each.latencies:
            alike.setdefault(tuple(each.latency(at / 100) for at in range(101)), []).append(each)
    groups = list(alike.values())
    groups[2:] = sorted(groups[2:], key=lambda group: -sum(group[0].latencies) / len(group[0].latencies))
    return {", ".join(each.executor for each in group): group[0].latencies for group in groups}


def _rows(found: Sequence[Summary]) -> Iterator[Sequence[object]]:
    for each in found:
        known = VARIANTS.get(each.executor)
        what = (
            known.breaks if known else "NovaCode's runtime"
        ) or "a task for each call, gather, cancel and wait: right"
        counts = (each.runs, each.violating, each.orphans, each.late_effects, each.never_quiet)
        yield each.executor, what, *counts, each.latency(0.5), each.latency(1.0)


def _by_phase(each: Summary) -> Counter[str]:
    count: Counter[str] = Counter()
    for (_, phase), number in each.phases.items():
        count[phase] += number
    return count


def _figure(title: str, found: Sequence[Summary], counts: Sequence[Mapping[str, int]]) -> str:
    """Return bars of counts by kind, one for each executor; nothing where there is nothing to count."""
    names = [name for name, _ in sum(map(Counter, counts), Counter[str]()).most_common()]
    if not names:
        return ""
    rows = [(each.executor, count) for each, count in zip(found, counts, strict=True)]
    shown = table(("executor", *names), ((name, *(count.get(of, 0) for of in names)) for name, count in rows))
    return (
        f"<h3>{title}</h3>\n{legend({f'k{number % 9}': name for number, name in enumerate(names)})}"
        f"<figure>{wide(bars(rows, names, title))}{folded(_TABLE, shown)}</figure>\n"
    )


def _amounts(title: str, what: str, amounts: Sequence[tuple[str, int]]) -> str:
    if not any(amount for _, amount in amounts):
        return f"<h3>{title}</h3>\n<p>None, on any executor.</p>\n"
    drawn = bars([(name, {what: amount}) for name, amount in amounts], [what], title)
    words = f"{what.capitalize()}; the first table of this section has the numbers."
    return f"<h3>{title}</h3>\n<p>{words}</p>\n<figure>{wide(drawn)}</figure>\n"


def _points(found: Sequence[Summary]) -> str:
    """Return where in their runs the executors broke something."""
    if not any(each.points and each.violating for each in found):
        return ""
    title = "Where in the run the request came"
    rows = [(each.executor, each.points) for each in found]
    heads = ("executor", *(f"{100 * at // PARTS} %" for at in range(PARTS)))
    shown = table(
        heads, ((name, *(f"{bad}/{of}" if of else None for of, bad in points)) for name, points in rows), "parts"
    )
    words = (
        "From the first step of a run on the left to its last on the right. The fuller a box, the more of the runs"
        " that were stopped there broke something; an empty one means none, no box that no run was stopped there."
    )
    return (
        f"<h3>{title}</h3>\n<p>{words}</p>\n"
        f"<figure>{wide(strips(rows, title))}{folded('The same as a table: broken/stopped', shown)}</figure>\n"
    )
