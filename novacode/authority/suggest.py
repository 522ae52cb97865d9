"""What to tell somebody whose call was refused because nobody could be asked."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from novacode.authority.rules import Rule

__all__ = ["would_allow"]


def would_allow(rules: Sequence[Rule]) -> str:
    """Return `would be allowed by --allow …` for the command line, empty for no rules."""
    if not rules:
        return ""
    return "would be allowed by " + " ".join(f"--allow {shlex.quote(rule.text)}" for rule in rules)
