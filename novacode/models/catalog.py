"""What is known of providers and their models: how they are reached, what they can read, what they cost."""

from __future__ import annotations

import functools
import json
import pkgutil
import re
from collections.abc import Mapping

from novacode.errors import UsageError
from novacode.models.providers import PROVIDERS, Provider, auth_headers, split_model
from novacode.values.parts import JSON
from novacode.values.request import Usage

__all__ = [
    "PROVIDERS",
    "Provider",
    "auth_headers",
    "context_window",
    "cost_usd",
    "known_models",
    "prices_date",
    "split_model",
]

_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_SAME_TABLE = {"openai-responses": "openai", "azure": "openai"}


@functools.cache
def _table() -> Mapping[str, JSON]:
    """Read the price table; 50 KB, so only when somebody asks."""
    data = pkgutil.get_data("novacode.models", "prices.json")
    assert data is not None  # it is part of the package
    found: Mapping[str, JSON] = json.loads(data)
    return found


@functools.cache
def _by_name(provider: str) -> Mapping[str, Mapping[str, JSON]]:
    rows = _table().get(_SAME_TABLE.get(provider, provider), {})
    names: dict[str, Mapping[str, JSON]] = dict(rows)
    for row in rows.values():
        for alias in row.get("also", ()):
            names.setdefault(alias, row)
    return names


def _row(name: str) -> Mapping[str, JSON] | None:
    try:
        provider, model = split_model(name)
    except UsageError:
        return None
    names, model = _by_name(provider.name), model.lower()
    return names.get(model) or names.get(_DATED.sub("", model))


def prices_date() -> str:
    """The day the price table was written, as `YYYY-MM-DD`."""
    return str(_table()["date"])


def known_models(provider: str) -> tuple[str, ...]:
    """Return the models of `provider` in the table, sorted; none where it has no table."""
    return tuple(sorted(_table().get(_SAME_TABLE.get(provider, provider), {})))


def context_window(model: str) -> int | None:
    """Return how many tokens `model` (`provider/model`) can read, or `None` where that is not known."""
    row = _row(model)
    return None if row is None else row.get("context")


def cost_usd(model: str, usage: Usage) -> float | None:
    """Return what `usage` costs with `model` (`provider/model`) in US dollars; `None` where it cannot be known.

    Above a tier's border the whole request has that tier's prices. What was read from or written to a cache costs the
    plain input price where the table has no other.
    """
    row = _row(model)
    if row is None or (usage.input is None and usage.output is None):
        return None
    prices = dict(row)
    for tier in row.get("tiers", ()):
        if usage.prompt > tier["above"]:
            prices |= tier
    read, written = usage.cache_read or 0, usage.cache_write or 0
    plain = max(0, usage.prompt - read - written)
    total = (
        plain * prices["input"]
        + read * prices.get("cache_read", prices["input"])
        + written * prices.get("cache_write", prices["input"])
        + usage.completion * prices["output"]
    )
    return float(total) / 1_000_000
