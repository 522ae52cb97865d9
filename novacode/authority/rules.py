"""What a permission rule says: its decision, the tools it speaks of and the pattern it matches."""

from __future__ import annotations

import enum

__all__ = ["Decision"]


class Decision(enum.StrEnum):
    """What a rule decides. Deny beats ask beats allow, whatever the source."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
