"""From a call, its effects, the mode and the rules to a verdict. Pure: it decides and does nothing."""

from __future__ import annotations

import enum

__all__ = ["Mode"]


class Mode(enum.StrEnum):
    """How much happens without a question where no rule decides."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept-edits"
    PLAN = "plan"
    BYPASS = "bypass"
