"""`novacode sessions prune`: file history and long outputs that are old go, the sessions stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from doubles.command_line import Place

pytestmark = pytest.mark.timeout(120)

_SCRIPT = """
[[turn]]
steps = [
  { call = "shell", arguments = { command = "echo two > a.txt" } },
  { call = "shell", arguments = { command = "seq 20000" } },
]
[[turn]]
steps = [{ text = "Done." }]
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place with a session that has changed a file and printed much, forty days ago."""
    made = Place(tmp_path)
    (made.work / "a.txt").write_text("one\n")
    (made.work / "s.toml").write_text(_SCRIPT)
    assert made.run("run", "-m", "script:s.toml", "--yolo", "go").code == 0
    assert (made.work / "a.txt").read_text() == "two\n"
    for path in (*_found(made, "snapshots/*/*.jsonl"), *_found(made, "spill/*/*")):
        at = path.stat().st_mtime - 40 * 86_400
        os.utime(path, (at, at))
    return made


def _found(place: Place, pattern: str) -> list[Path]:
    return sorted((place.root / "home").glob(pattern))


def test_what_is_old_goes_and_rewind_says_why_it_cannot(place: Place) -> None:
    done = place.run("sessions", "prune")
    assert (done.code, done.err) == (0, "")
    assert b"the file history of 1 session was removed" in done.out
    assert b"long outputs: those of 1 sessions were removed, 0.1 MB in all" in done.out
    assert (_found(place, "snapshots/*/*.jsonl"), _found(place, "spill/*/*")) == ([], [])
    refused = place.run("rewind", "--yes")
    assert refused.code == 42
    assert "what it changed is not kept any more (`snapshots.keep_days`)" in refused.err
    assert place.run("sessions", "check", "s-deterministic").code == 0
    assert (place.work / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("how", ["option", "setting"])
def test_how_long_can_be_chosen(place: Place, how: str) -> None:
    if how == "setting":
        (place.root / "home" / "config.toml").write_text("[snapshots]\nkeep_days = 41\n")
    done = place.run("sessions", "prune", *(("--days", "41") if how == "option" else ()))
    assert b"the file history of 0 sessions was removed" in done.out
    assert b"those of 0 sessions" in done.out
    assert place.run("rewind", "--yes").code == 0
    assert (place.work / "a.txt").read_text() == "one\n"
