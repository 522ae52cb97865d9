"""A catalogue of ways to break the runtime. The lab must find each; one that it does not find is a missing invariant.

Nothing in here is active but in the body of `planted`. Faults are planted in the real code, in the process at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from novacode.errors import UsageError
from novacode.lab.faults import calls, runs, turns
from novacode.lab.faults.patching import Fault, Patch

__all__ = ["FAULTS", "Fault", "planted"]

FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in (*turns.FAULTS, *calls.FAULTS, *runs.FAULTS)}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Break the runtime in the way called `name`, for the body. Raises `UsageError` for a name that is not known."""
    fault = FAULTS.get(name)
    if fault is None:
        raise UsageError(f"there is no planted fault {name!r}; `novacode lab faults` lists them all")
    patch = Patch()
    try:
        fault.plant(patch)
        yield
    finally:
        patch.undo()
