"""What every tool must hold, whatever it does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio
from doubles.fake_tool import Bench
from hypothesis import strategies as st

from novacode.tools.base import Claims, Effects, Tool
from novacode.values.parts import JSON

__all__ = ["any_arguments", "check_looks_are_harmless", "check_run_stops", "state_of"]

_NAMES = ("path", "old", "new", "content", "command", "pattern", "offset", "limit", "timeout", "reads", "writes")

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_odd_paths = st.sampled_from(
    [
        "",
        ".",
        "..",
        "~",
        "~nobody-by-this-name",
        "a\0b",
        "a.txt",
        "fifo",
        "loop",
        "out/x",
        "/dev/zero",
        "x" * 5000,
        "\ud800",
    ]
)

any_arguments = st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=8), _json | _odd_paths, max_size=5)
"""Arguments as no model should send them."""


def state_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return every entry below `root` with its mode and content."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            found[str(path)] = (mode, path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
    return found


def check_looks_are_harmless(tool: Tool[Any], arguments: Mapping[str, JSON], bench: Bench) -> None:
    """`claims` and `effects` never raise, give absolute paths, and change nothing, whatever the arguments."""
    before = state_of(bench.root)
    claims = tool.claims(arguments, bench.workspace)
    effects = tool.effects(arguments, bench.workspace)
    assert isinstance(claims, Claims)
    assert isinstance(effects, Effects)
    touched = [*claims.reads, *claims.writes, *effects.reads, *effects.writes]
    assert all(path.is_absolute() for path in touched)
    assert claims == tool.claims(arguments, bench.workspace)
    assert state_of(bench.root) == before


async def check_run_stops(tool: Tool[Any], arguments: Mapping[str, JSON], bench: Bench, grace: float) -> None:
    """`run`, cancelled before its first checkpoint, lets `Cancelled` through within `grace` and changes no file."""
    before = state_of(bench.root)
    permit = bench.permit(tool, arguments)
    with trio.fail_after(grace):
        with trio.CancelScope() as scope:
            scope.cancel()
            await tool.run(permit, bench.context(permit.call.id))
        assert scope.cancelled_caught, f"{tool.spec.name} ended as if it had not been cancelled"
    assert state_of(bench.root) == before
