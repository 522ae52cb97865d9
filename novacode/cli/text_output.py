"""The `text` output: the answer on stdout and nothing else, and what went wrong on stderr."""

from __future__ import annotations

from novacode.cli.advice import advice_for
from novacode.cli.escape import visible
from novacode.values.events import RunEnded, RunStatus

__all__ = ["answer_bytes", "failure_text"]


def answer_bytes(ended: RunEnded, *, terminal: bool) -> bytes:
    """Return what belongs on stdout: the final answer of a run that was completed, else nothing.

    The text of a failure never looks like an answer. On a terminal what could act on it is made visible; a pipe gets
    the text as it is.
    """
    if ended.status is not RunStatus.COMPLETED or not ended.text:
        return b""
    text = visible(ended.text, prose=True) if terminal else ended.text
    return text.encode("utf-8", "backslashreplace") + (b"" if text.endswith("\n") else b"\n")


def failure_text(ended: RunEnded) -> str:
    """Return one or two sentences for stderr about a run that was not completed; empty for one that was."""
    match ended.status:
        case RunStatus.COMPLETED:
            return ""
        case RunStatus.LIMIT:
            return f"stopped by a limit ({ended.reason}) after {_turns(ended.turns)}. -c goes on from here."
        case RunStatus.CANCELLED:
            return f"cancelled ({ended.reason}): {_stopped(ended)}. What was done until then stays done."
        case RunStatus.REFUSED:
            return "a hook refused." if ended.reason == "hook" else "the model refused to answer."
        case RunStatus.FAILED:
            if ended.failure is None:
                return f"the run failed: {ended.reason}."
            said = visible(ended.failure.message).rstrip(".")
            return f"the model failed ({ended.failure.kind}): {said}. {advice_for(ended.failure)}"


def _stopped(ended: RunEnded) -> str:
    reaped = ended.reaped
    parts = [f"{reaped.processes} process{'es' * (reaped.processes != 1)} and {_tasks(reaped.tasks)} stopped"]
    if reaped.escalated:
        parts.append(f"{reaped.escalated} had to be killed")
    if reaped.survivors:
        parts.append(f"still alive: {', '.join(str(pid) for pid in reaped.survivors)}")
    return ", ".join(parts) + f", {reaped.ms} ms"


def _tasks(number: int) -> str:
    return f"{number} task{'s' * (number != 1)}"


def _turns(number: int) -> str:
    return f"{number} turn{'s' * (number != 1)}"
