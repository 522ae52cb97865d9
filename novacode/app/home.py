"""Where NovaCode keeps what is its own. Imports next to nothing: the quick commands need no more of the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["environment", "home_folder"]


def environment() -> Mapping[str, str]:
    """Return a copy of the environment; the one place outside of process handling where it is read."""
    return dict(os.environ)  # noqa: TID251  this is that place


def home_folder(environ: Mapping[str, str]) -> Path:
    """Return NovaCode's own folder: `NOVACODE_HOME`, else `~/.novacode`. It need not exist, nor be writable."""
    chosen = environ.get("NOVACODE_HOME", "")
    if chosen:
        return Path(chosen).absolute()
    home = environ.get("HOME", "")
    try:
        return (Path(home) if home else Path.home()) / ".novacode"
    except RuntimeError:  # no HOME, and no entry for us in the user database (containers with made-up user ids)
        return Path("/nonexistent/.novacode")
