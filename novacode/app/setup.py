"""What a session is made from: everything that is decided before its objects are built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from novacode.app.choosing import Choice
from novacode.app.settings import Settings
from novacode.app.tape_seam import Replay

__all__ = ["SessionWish", "Setup"]


@attrs.frozen(eq=False, repr=False)
class SessionWish:
    """Which session to use: a new one, the latest of this folder, or one by id; perhaps a copy; perhaps none kept."""

    latest: bool = False
    wanted: str = ""
    fork: bool = False
    keep: bool = True


@attrs.frozen(eq=False, repr=False)
class Setup:
    """What a session is made from. `somebody` is whether a person can be asked.

    `simulate` puts a world in memory behind the tools: nothing real is run, read or written.

    `record` is where a tape of it is written, and `replay` the tape that takes the place of the model, and perhaps of
    everything.

    `choice` is a model that was chosen already; without it the settings name one. `rules_of` is the folder whose
    "always" rules are read and written, where that is another than `cwd`: a worktree comes and goes.
    """

    settings: Settings
    environ: Mapping[str, str]
    home: Path
    cwd: Path
    extra: tuple[Path, ...] = ()
    session: SessionWish = attrs.field(factory=SessionWish)
    somebody: bool = False
    deterministic: bool = False
    seed: int = 0
    choice: Choice | None = None
    simulate: bool = False
    rules_of: Path | None = None
    record: Path | None = None
    replay: Replay | None = None
