"""Tapes of tests: recorded once, and replayed from then on."""

from __future__ import annotations

import enum
from pathlib import Path

import attrs

from novacode.app.setup import Setup
from novacode.app.tape_seam import Replay
from novacode.errors import UsageError

__all__ = ["Recording", "TestTape"]


class Recording(enum.StrEnum):
    """When a tape is recorded: where there is none yet, never, or always anew."""

    ONCE = "once"
    NEVER = "never"
    ALL = "all"


@attrs.frozen
class TestTape:
    """The tape of one test, at `path`. `everything`: tools too are played from it, and nothing real is run."""

    __test__ = False  # its name begins as a test's does

    path: Path
    recording: Recording = Recording.ONCE
    everything: bool = True

    @property
    def replaying(self) -> bool:
        """Whether the next run is played from the tape, and not put on it."""
        return self.recording is not Recording.ALL and (self.path.exists() or self.recording is Recording.NEVER)

    def into(self, setup: Setup) -> Setup:
        """Return `setup` with the tape in it. Raises `UsageError` where it is to be replayed and is not there."""
        if not self.replaying:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
            return attrs.evolve(setup, record=self.path, deterministic=True)
        if not self.path.exists():
            raise UsageError(
                f"there is no tape {self.path}, and none may be recorded here: run the test once where it may be, with"
                " --novacode-record=once, and keep the file under version control"
            )
        from novacode.app.taping import choice_of  # only where a tape is played
        from novacode.models.tape_file import read_tape

        tape = read_tape(self.path)
        choice = choice_of(tape.header, None)
        return attrs.evolve(
            setup, replay=Replay(tape, self.everything), choice=choice, deterministic=True, seed=tape.header.seed
        )
