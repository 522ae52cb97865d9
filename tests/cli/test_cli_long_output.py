"""Output that is too long for a result: where the whole of it is, and what that place is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from doubles.command_line import Place

pytestmark = pytest.mark.timeout(120)

_SCRIPT = """
[[turn]]
steps = [{ call = "shell", arguments = { command = "seq 20000" } }]
[[turn]]
expect = { result = "$NOVACODE_SPILL/call_s1_1.txt" }
steps = [
  { call = "read", arguments = { path = "$NOVACODE_SPILL/call_s1_1.txt", offset = 9999, limit = 2 } },
  { call = "grep", arguments = { pattern = "^15000$", path = "$NOVACODE_SPILL" } },
  { call = "shell", arguments = { command = 'wc -l < "$NOVACODE_SPILL/call_s1_1.txt"' } },
]
[[turn]]
steps = [{ text = "Done." }]
"""


def test_of_a_scripted_run_the_same_bytes_come_out_with_any_home(tmp_path: Path) -> None:
    """The place has a name, not a path; every tool that reads knows it, and so does a command."""
    place = Place(tmp_path)
    (place.work / "s.toml").write_text(_SCRIPT)
    flags = ("run", "-m", "script:s.toml", "--yolo", "--output-format", "events", "go")
    runs = []
    for name in ("home", "elsewhere/much/deeper"):
        place.environ["NOVACODE_HOME"] = str(tmp_path / name)
        runs.append(place.run(*flags))
    out = runs[0].out.decode()
    assert [run.code for run in runs] == [0, 0], runs[0].err
    assert runs[0].out == runs[1].out
    assert "$NOVACODE_SPILL/call_s1_1.txt:15000" in out
    assert '"20000\\n' in out
    assert str(tmp_path / "home") not in out


def test_a_replay_gives_what_was_recorded_with_any_home(tmp_path: Path) -> None:
    """With what the tape says of the tools, and with real ones."""
    place = Place(tmp_path)
    (place.work / "s.toml").write_text(_SCRIPT)
    fixed = ("--yolo", "--output-format", "events", "go")
    recorded = place.run("run", "-m", "script:s.toml", "--record", str(tmp_path / "tape"), *fixed)
    place.environ["NOVACODE_HOME"] = str(tmp_path / "elsewhere")
    taped = place.run("run", "--replay", str(tmp_path / "tape"), *fixed)
    real = place.run("run", "--replay", str(tmp_path / "tape"), "--replay-tools", "real", *fixed)
    assert (recorded.code, taped.code, real.code) == (0, 0, 0), taped.err + real.err
    for run in (recorded, taped, real):
        assert b"the whole output (108894 bytes) is in $NOVACODE_SPILL/call_s1_1.txt" in run.out
