"""Names of foreign tools as every provider takes them: valid, distinct, and the same in every run."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["server_names", "tool_names"]

_LONGEST = 64
_LONGEST_SERVER = 24
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def server_names(names: Iterable[str]) -> Mapping[str, str]:
    """Return the name of each server as it stands in the names of its tools.

    Never with two underscores in a row: `mcp__a` in a rule speaks of all tools of `a`, and of those of no other.
    """
    return _distinct({name: re.sub("_{2,}", "_", _ODD.sub("_", name)).strip("_") for name in names}, _LONGEST_SERVER)


def tool_names(server: str, tools: Iterable[str]) -> Mapping[str, str]:
    """Return `mcp__server__tool` for each of `tools` but those without a name; `server` is from `server_names`.

    What had to be cut, and what would be the same as another, ends in six digits of a hash of the original name; so
    the name does not depend on the order of the tools.
    """
    room = _LONGEST - len(f"mcp__{server}__")
    made = _distinct({tool: _ODD.sub("_", tool) for tool in tools if tool.strip()}, room)
    return {tool: f"mcp__{server}__{name}" for tool, name in made.items()}


def _distinct(clean: Mapping[str, str], room: int) -> dict[str, str]:
    met = Counter(clean.values())
    made: dict[str, str] = {}
    for name, short in clean.items():
        if not short or len(short) > room or (met[short] > 1 and short != name):
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
            short = f"{short[: room - 7]}_{mark}".lstrip("_")
        made[name] = short
    return made
