"""Pieces of which a report is made: legends, tables, and what is folded away until somebody wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["folded", "legend", "table", "wide"]


def wide(inner: str) -> str:
    """Let `inner` be wider than the page: it is scrolled by itself, and can be from a keyboard."""
    return f'<div class="wide" tabindex="0">{inner}</div>\n'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], kind: str = "") -> str:
    """Return a table of texts and numbers; `None` is an empty cell. `kind` is its class."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return wide(f'<table class="{kind}"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>')


def _cell(value: object) -> str:
    shown = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return f"<td>{escape(shown)}</td>"


def folded(summary: str, inner: str) -> str:
    """Hide `inner` behind `summary`; paper shows it."""
    return f"<details><summary>{escape(summary)}</summary>\n{inner}</details>\n"


def legend(entries: Mapping[str, str]) -> str:
    """Explain the classes of a drawing: class -> words."""
    shown = "".join(f'<span><i class="{name}"></i>{escape(words)}</span>' for name, words in entries.items())
    return f'<p class="legend">{shown}</p>\n'
