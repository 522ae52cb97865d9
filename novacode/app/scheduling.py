"""Trio's private switch for deterministic scheduling: the one module that touches it.

Trio shuffles each batch of tasks that are ready. With the switch it sorts them first and shuffles with its own
generator, so that one seed gives one order. Both names are private; a test fails loudly where they have gone.
"""

from __future__ import annotations

from trio._core import _run

__all__ = ["seed_scheduler"]


def seed_scheduler(seed: int) -> None:
    """Make every later `trio.run` of this process schedule in the order that `seed` gives."""
    vars(_run)["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    _run._r.seed(seed)
