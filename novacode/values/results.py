"""How a call ended."""

from __future__ import annotations

import enum

import attrs

from novacode.values.ids import CallId
from novacode.values.parts import BrokenCall, Image, Text, ToolCall

__all__ = ["EXECUTED", "REFUSED", "Outcome", "ResultPart", "ToolResult"]

ResultPart = Text | Image


class Outcome(enum.StrEnum):
    """Closed; every call ends in exactly one.

    The first five can only follow the start of execution, except `CANCELLED`, which also covers calls that had not
    begun: `ToolResult.began` tells. For all others nothing was executed.
    """

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    LOST = "lost"
    UNKNOWN_TOOL = "unknown_tool"
    DISABLED = "disabled"
    HOOK_DENIED = "hook_denied"
    DENIED = "denied"
    INVALID = "invalid"
    BROKEN = "broken"
    SKIPPED = "skipped"


EXECUTED = frozenset({Outcome.OK, Outcome.ERROR, Outcome.TIMEOUT, Outcome.LOST})
"""Outcomes that say the tool's own code was entered."""

REFUSED = frozenset(
    {
        Outcome.UNKNOWN_TOOL,
        Outcome.DISABLED,
        Outcome.HOOK_DENIED,
        Outcome.DENIED,
        Outcome.INVALID,
        Outcome.BROKEN,
        Outcome.SKIPPED,
    }
)
"""Outcomes that say it was not."""


@attrs.frozen
class ToolResult:
    """The one result of one call.

    `began` is whether the tool's own code was entered. `exit_code` tells a command that failed (set, not 0) from a
    tool that raised (`None`). `note` and `diff` are for people and never sent to the model.
    """

    call_id: CallId
    name: str
    outcome: Outcome
    began: bool
    content: tuple[ResultPart, ...]
    note: str = ""
    exit_code: int | None = None
    diff: str = ""

    def __attrs_post_init__(self) -> None:
        if self.outcome in EXECUTED and not self.began:
            raise ValueError(f"a result with outcome {self.outcome} needs began=True: {self.call_id} {self.name}")
        if self.outcome in REFUSED and self.began:
            raise ValueError(f"a result with outcome {self.outcome} needs began=False: {self.call_id} {self.name}")

    @classmethod
    def of(cls, call: ToolCall | BrokenCall, outcome: Outcome, text: str, *, began: bool = False) -> ToolResult:
        """Return a result of one text with the identity of `call`."""
        return cls(call.id, call.name, outcome, began, (Text(text),))

    @property
    def text(self) -> str:
        """All its text for the model, joined with nothing between."""
        return "".join(part.text for part in self.content if isinstance(part, Text))
