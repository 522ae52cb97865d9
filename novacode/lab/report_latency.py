"""How long stopping took, as a figure: curves, and a table of their quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from novacode.lab.report_parts import table, wide
from novacode.lab.report_svg import curve_legend, curves

__all__ = ["latency_figure", "latency_section"]

_MOST_CURVES = 6  # in one drawing; the table below it has all


def latency_section(samples: Mapping[str, Sequence[float]], real: Mapping[str, Sequence[float]]) -> str:
    """Return the section about latencies by phase, virtual and real; nothing where no run was struck."""
    parts = []
    if samples:
        words = (
            "Virtual time, in which only what a scenario says takes time; by what the run was at when it was stopped."
        )
        parts.append(f"<p>{words}</p>\n{latency_figure(samples, 'Latency by phase', 'phase')}")
    if real:
        words = "Real time: the calls were real processes, on the machine that the runs were made on."
        parts.append(f"<p>{words}</p>\n{latency_figure(real, 'Latency by phase, in real time', 'phase')}")
    return "".join(("<h2>From the request to quiet</h2>\n", *parts)) if parts else ""


def latency_figure(samples: Mapping[str, Sequence[float]], label: str, of: str) -> str:
    """Return curves of sorted samples, and the table that has them all. `of` is what tells them apart."""
    drawn = dict(list(samples.items())[:_MOST_CURVES])
    rows = (
        (name, len(values), *(_quantile(values, share) for share in (0.5, 0.9, 0.99, 1.0)))
        for name, values in samples.items()
    )
    left = f" Drawn are the first {len(drawn)}; the table has all." if len(samples) > len(drawn) else ""
    return (
        f"<p>The share of runs that were quiet after so many seconds.{left}</p>\n"
        f"{curve_legend(list(drawn))}"
        f"<figure>{wide(curves(drawn, label))}</figure>\n"
        f"{table((of, 'runs', 'median', '90 %', '99 %', 'most, s'), rows)}"
    )


def _quantile(values: Sequence[float], share: float) -> float:
    return values[max(0, math.ceil(share * len(values)) - 1)]
