"""What is known of a shell line; the parser of them is imported at the first, and many tasks run none."""

from __future__ import annotations

from novacode.authority.analysis import Analysis

__all__ = ["analyse", "reads_only"]


def analyse(line: str) -> Analysis:
    """Return what `line` would run; see `authority.commands`."""
    from novacode.authority import commands  # 12 ms

    return commands.analyse(line)


def reads_only(line: str) -> bool:
    """Whether `line` is known to change nothing."""
    return analyse(line).read_only
