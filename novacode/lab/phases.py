"""Where a run was when it was struck."""

from __future__ import annotations

from collections.abc import Sequence

from novacode.lab.stage import Stage
from novacode.values.events import CallMoved, CallReady, CallSettled, Phase, Stamped

__all__ = ["PHASES", "phase_of", "under_way"]

PHASES = ("cleanup", "running", "asking", "queued", "streaming", "between")
"""In order of precedence, for a run with several things under way."""

_OF_A_CALL = {
    Phase.SUBMITTED: "queued",
    Phase.AUTHORISING: "queued",
    Phase.QUEUED: "queued",
    Phase.ASKING: "asking",
    Phase.RUNNING: "running",
}


def under_way(events: Sequence[Stamped]) -> list[str]:
    """Return the calls that have no result yet, in the order the model opened them."""
    settled = {stamped.event.result.call_id for stamped in events if isinstance(stamped.event, CallSettled)}
    ready = [stamped.event.call.id for stamped in events if isinstance(stamped.event, CallReady)]
    return [call_id for call_id in ready if call_id not in settled]


def phase_of(stage: Stage, call_id: str = "") -> str:
    """Return what the call, or without one the run, is at.

    A run is at the first of `PHASES` that anything of it is at: reaping counts as clean-up, and a call that has a
    result but is still cleaning up is not waited for any more.
    """
    phases = _phases(stage)
    if call_id:
        return phases.get(call_id, "between")
    at = set(phases.values())
    if stage.streams:
        at.add("streaming")
    if "sweep begins" in stage.log and "run ended" not in stage.log:
        at.add("cleanup")
    return next((phase for phase in PHASES if phase in at), "between")


def _phases(stage: Stage) -> dict[str, str]:
    going = set(under_way(stage.events))
    moved: dict[str, Phase] = {
        stamped.event.call_id: stamped.event.phase for stamped in stage.events if isinstance(stamped.event, CallMoved)
    }
    phases: dict[str, str] = {
        call_id: _OF_A_CALL.get(moved.get(call_id, Phase.SUBMITTED), "between") for call_id in going
    }
    return phases | {call_id: "cleanup" for call_id in stage.cleaning if call_id in going}
