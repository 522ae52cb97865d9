"""Large blocks of memory go back to the system when they are freed.

glibc keeps freed blocks of up to 32 MB for itself as soon as it has seen one of that size freed. The request bodies of
a long session are megabytes, each a little larger than the one before, so none fits the hole the last one left: after
1,000 turns a third of the memory was such holes.
"""

from __future__ import annotations

import functools

__all__ = ["LARGE", "return_large_blocks"]

LARGE = 512 * 1024
"""Bytes from which on a block is large."""

_M_MMAP_THRESHOLD = -3


@functools.cache
def return_large_blocks() -> bool:
    """Ask the C library for it, once a process; whether it can. Elsewhere than with glibc nothing has to be asked."""
    import ctypes  # lazy: 5 ms that only a session which is long pays

    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE))
    except (OSError, AttributeError):
        return False
