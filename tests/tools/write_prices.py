"""Writes novacode/models/prices.json from the genai-prices package. For development; needs `pip install genai-prices`.

python tests/tools/write_prices.py > novacode/models/prices.json

JSON, because a run reads it as soon as its first usage comes: as TOML that took 40 ms of processor time, now under 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from genai_prices import data_snapshot

# Our name of a provider, its name there, and which of its models anybody would let write code.
WANTED = (
    ("anthropic", "anthropic", r"claude-(3-[57]|(haiku|sonnet|opus|fable|mythos)-)"),
    ("openai", "openai", r"(gpt-(4o|4\.1|[5-9])|o[1-9]|codex|gpt-oss)"),
    ("gemini", "google", r"gemini-([3-9]|2\.[05])"),
    ("deepseek", "deepseek", r"."),
    ("mistral", "mistral", r"(codestral|devstral|ministral|magistral|mistral-(large|medium|small))"),
    ("groq", "groq", r"(openai|qwen|moonshotai|meta-llama/llama-4|llama-3\.3)"),
    ("xai", "x-ai", r"grok"),
    ("moonshot", "moonshotai", r"kimi"),
    ("zai", "zai", r"GLM-(4\.[5-9]|[5-9])"),
    ("together", "together", r"(deepseek-ai|moonshotai|openai|Qwen/Qwen3|zai-org)"),
    ("fireworks", "fireworks", r"(deepseek|glm|kimi|gpt-oss|qwen3|minimax)"),
    (
        "openrouter",
        "openrouter",
        r"(anthropic/claude-(haiku|sonnet|opus|fable)|openai/(gpt-(4\.1|[5-9])|o[34])|google/gemini-([3-9]|2\.5)"
        r"|deepseek/|x-ai/grok-[4-9]|moonshotai/|qwen/qwen3|z-ai/glm|mistralai/(codestral|devstral|mistral-(large|medium)))",
    ),
)
UNWANTED = re.compile(
    r"image|audio|tts|realtime|transcri|embed|whisper|moderation|search|live|:batch|:free|ocr|robotics|vision|banana"
    r"|guard|computer|voice|-vl|deep-research|:extended|live|omni|\.ft-|glm-.*v"
)
FIELDS = (
    ("input", "input_mtok"),
    ("output", "output_mtok"),
    ("cache_read", "cache_read_mtok"),
    ("cache_write", "cache_write_mtok"),
)


def names_of(match: Any) -> Iterator[str]:
    """The plain names among the clauses that recognise a model."""
    for clause in getattr(match, "or_", [match]):
        for kind in ("equals", "starts_with"):
            if name := getattr(clause, kind, None):
                yield name


def row(model: Any, now: datetime) -> dict[str, Any] | None:
    prices = model.get_prices(now)
    base: dict[str, Any] = {}
    tiers: dict[int, dict[str, Any]] = {}
    for ours, theirs in FIELDS:
        value = getattr(prices, theirs, None)
        if value is None:
            continue
        base[ours] = number(getattr(value, "base", value))
        for tier in getattr(value, "tiers", ()):
            tiers.setdefault(tier.start, {})[ours] = number(tier.price)
    if "input" not in base or "output" not in base:
        return None
    found = ({"context": model.context_window} if model.context_window else {}) | base
    also = sorted({name.lower().rstrip("-@") for name in names_of(model.match)} - {model.id.lower()})
    if also := [name for name in also if not UNWANTED.search(name)]:
        found["also"] = also
    if tiers:
        found["tiers"] = [{"above": start} | tiers[start] for start in sorted(tiers)]
    return found


def number(value: Any) -> float | int:
    """A price with six digits, and without a point where it needs none."""
    short = float(f"{float(value):g}")
    return int(short) if short.is_integer() else short


def written(table: Mapping[str, Any]) -> str:
    """The table as JSON with one model a line, so that a change of prices can be read as a difference."""
    sections = [
        f"{json.dumps(name)}: "
        + (
            "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()) + "\n}"
            if isinstance(value, dict)
            else json.dumps(value)
        )
        for name, value in table.items()
    ]
    return "{" + ",\n".join(sections) + "}"


def main() -> None:
    now = datetime.now(UTC)
    providers = {provider.id: provider for provider in data_snapshot.get_snapshot().providers}
    table: dict[str, Any] = {
        "about": "Context windows (tokens) and prices (US dollars for a million tokens) of the usual models. Written by"
        f" tests/tools/write_prices.py from genai-prices {version('genai-prices')}; do not edit.",
        "date": f"{now:%Y-%m-%d}",
    }
    for ours, theirs, pattern in WANTED:
        models = [model for model in providers[theirs].models if re.match(pattern, model.id)]
        rows = ((model.id.lower(), row(model, now)) for model in models if not UNWANTED.search(model.id.lower()))
        table[ours] = {name: found for name, found in rows if found}
    print(written(table))


if __name__ == "__main__":
    sys.exit(main())
