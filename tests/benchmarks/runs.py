"""`novacode run` as a command line to be measured, in a folder and a home of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import attrs
from doubles.replies import anthropic

__all__ = ["Bench", "shell_turn"]


def shell_turn(number: int, *commands: str, text: str = "") -> list[bytes]:
    """Return a reply that calls `shell` once for each of `commands`."""
    return anthropic(text, [(f"tu_{number}_{at}", "shell", {"command": line}) for at, line in enumerate(commands)])


@attrs.define
class Bench:
    """Where benchmarks run.

    Bytecode is kept in the folder, whatever the machine's own setting: an installed program has its bytecode, and
    without it the compiler would be what is measured. A warm-up round fills it, for both sides alike.
    """

    root: Path

    def __attrs_post_init__(self) -> None:
        self.work.mkdir()

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def environ(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NOVACODE_", "PYTHON", "COV_")) and not name.endswith("_API_KEY")
        }
        own = {"NOVACODE_HOME": str(self.root / "home"), "ANTHROPIC_API_KEY": "k"}
        return kept | own | {"PYTHONPYCACHEPREFIX": str(self.root / "bytecode")}

    def task(self, url: str, *options: str) -> list[str]:
        """Return the command line of a task whose model is at `url`; everything is allowed."""
        where = ["--model", "anthropic/m", "--base-url", url]
        return [sys.executable, "-m", "novacode", "run", "-q", "--yolo", *where, *options, "measure this"]
