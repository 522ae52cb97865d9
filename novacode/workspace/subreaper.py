"""What this process is to its children: one fact a process, however many tables of commands it holds."""

from __future__ import annotations

import os
import sys

__all__ = ["HERE", "Here", "become"]

_PR_SET_CHILD_SUBREAPER = 36


class Here:
    """Which children somebody in this process waits for already: their status must not be taken by anyone else.

    `spawning` counts children that exist, or are about to, whose pid is not known yet.
    """

    def __init__(self) -> None:
        self.owned: set[int] = set()
        self.spawning = 0


HERE = Here()
"""The one instance. Not a setting: the children of a process are one namespace, as its pids are."""


def become() -> str:
    """Make orphans below this process its children, instead of those of pid 1. Returns what hindered it, or nothing.

    Lasts for the life of the process; children do not inherit it. Doing it again is harmless.
    """
    if sys.platform != "linux":
        return f"{sys.platform} has no child subreaper"
    import ctypes  # lazy: 5 ms that only a run which starts a process has to pay

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            return ""
        return f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(ctypes.get_errno())}"
    except (OSError, AttributeError) as exc:
        return f"prctl(PR_SET_CHILD_SUBREAPER): {exc}"
