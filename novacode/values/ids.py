"""Identities. All of them come from counters that are handed in, so that two runs of one script agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NewType

__all__ = ["ApprovalId", "CallId", "CallIds", "IdSource", "RunId", "SessionId"]

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
CallId = NewType("CallId", str)
ApprovalId = NewType("ApprovalId", str)

_LONGEST = 64  # what the strictest provider accepts for the id of a call


class IdSource:
    """Run and approval ids of one session.

    `runs` is how many runs the session has had: ids are never used twice, also not after a resume.
    """

    def __init__(self, session: SessionId, runs: int = 0) -> None:
        self.session = session
        self._runs = runs
        self._approvals = 0

    def run(self) -> RunId:
        """Return the next run's id."""
        self._runs += 1
        self._approvals = 0
        return RunId(f"{self.session}-r{self._runs}")

    def approval(self, run: RunId) -> ApprovalId:
        """Return the next approval's id within `run`."""
        self._approvals += 1
        return ApprovalId(f"{run}-a{self._approvals}")


class CallIds:
    """The call ids of one session: a provider's own where it is usable and new, else a fresh one.

    Providers leave ids out, send them empty, and repeat them from turn to turn (`read_file:0`).
    Inside NovaCode an id names one call of the session and nothing else.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._fresh = 0

    def claim(self, wire_id: str | None) -> CallId:
        """Return the id for a call whose provider called it `wire_id`; `None` or empty means it did not say."""
        if wire_id and wire_id not in self._taken and len(wire_id) <= _LONGEST and _is_plain(wire_id):
            chosen = wire_id
        else:
            chosen = self._next()
        self._taken.add(chosen)
        return CallId(chosen)

    def _next(self) -> str:
        while True:
            self._fresh += 1
            candidate = f"call_{self._fresh}"
            if candidate not in self._taken:
                return candidate


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
