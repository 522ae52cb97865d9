"""How much happens without a question where no rule decides. Pure."""

from __future__ import annotations

import enum

from novacode.errors import SettingsError

__all__ = ["Mode", "parse_mode"]


class Mode(enum.StrEnum):
    """How much happens without a question where no rule decides."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept-edits"
    PLAN = "plan"
    BYPASS = "bypass"


_SPELLINGS = {
    "acceptedits": Mode.ACCEPT_EDITS,
    "bypasspermissions": Mode.BYPASS,
    "yolo": Mode.BYPASS,
    **{mode.value.replace("-", ""): mode for mode in Mode},
}


def parse_mode(text: str) -> Mode:
    """Return the mode spelled `text`, also as other agents spell it (`acceptEdits`). Raises `SettingsError`."""
    mode = _SPELLINGS.get(text.strip().casefold().replace("-", "").replace("_", ""))
    if mode is None:
        raise SettingsError(f"{text!r} is not a permission mode; use {', '.join(Mode)}")
    return mode
