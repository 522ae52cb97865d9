"""A violation is made small, and the command that is printed does exactly it again, in any process."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import attrs
import pytest

from novacode.cli.main import entry
from novacode.lab.faults import FAULTS
from novacode.lab.hunt import hunt
from novacode.lab.perform import perform
from novacode.lab.point import How, Point
from novacode.lab.scenario import find_scenario, packaged
from novacode.lab.shrink import as_toml, shrink

ONCE_EACH = (
    "answers-not-bound",
    "began-forgotten",
    "broken-call-repaired",
    "cancel-swallowed",
    "cancelled-becomes-a-result",
    "cleanup-unshielded",
    "completion-order",
    "crash-forgets-what-began",
    "deadline-swallowed",
    "denied-goes-on",
    "drop-not-told",
    "finished-result-lost",
    "gate-ignored",
    "groups-not-taken-apart",
    "no-last-look",
    "question-shows-less",
    "rewrite-not-run",
    "run-never-free",
    "stop-one-stops-all",
    "time-not-limited",
)


@pytest.mark.parametrize("name", packaged())
def test_a_script_survives_being_written_again(name: str) -> None:
    """What the shrinker writes is what it read: the same tables, and the same run."""
    text = find_scenario(name).text
    assert text is not None
    assert tomllib.loads(as_toml(tomllib.loads(text))) == tomllib.loads(text)


def test_odd_texts_survive_being_written_again() -> None:
    table = {"turn": [{"steps": [{"text": 'a"\\\n\t\x7f\x00é\u2028'}, {"pause": 1e-07}, {"call": "x", "cut": "b"}]}]}
    table["simulate"] = {"files": {"odd key.txt": "x", "": "y"}, "limits": {"max_turns": 2}, "tool": []}  # type: ignore[assignment]
    assert tomllib.loads(as_toml(table)) == table


def test_a_violation_is_made_small(tmp_path: Path) -> None:
    """Of nine steps in two turns the two calls are left that touch the same file, and the strike comes earlier."""
    struck = perform(Point("parallel", how=How.CALL, step=60, fault="gate-ignored"))
    row = attrs.evolve(struck, violations=tuple(v for v in struck.violations if v.kind == "gate"))
    small = shrink(row)
    assert small.text is not None
    left = [step for turn in tomllib.loads(small.text)["turn"] for step in turn["steps"]]
    assert [step["call"] for step in left] == ["write", "write"]
    assert small.row.point.step == 1
    stored = small.stored(tmp_path)
    assert stored.violations[0].kind == row.violations[0].kind
    assert Path(stored.point.scenario).parent == tmp_path


def test_the_command_line_finds_shrinks_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 with a violation, whose command gives the same violation; 0 without."""
    rows = tmp_path / "rows.jsonl"
    arguments = ["lab", "explore", "max-seconds", "--how", "run", "--jobs", "1", "--out", str(rows)]
    assert entry([*arguments, "--fault", "began-forgotten"]) == 1
    said = capsys.readouterr().out
    command = said.splitlines()[-1].strip()
    assert command.startswith("novacode lab explore ")
    assert str(tmp_path) in command
    assert entry(shlex.split(command)[1:]) == 1
    assert "began=False" in capsys.readouterr().out
    assert entry(["lab", "explore", "br-074-refusal", "--csv", str(tmp_path / "rows.csv")]) == 0
    assert (tmp_path / "rows.csv").read_text().count("\n") > 100
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert all(row["command"] == Point(**_point(row)).command for row in found if row["violations"])


def _point(row: dict[str, object]) -> dict[str, object]:
    return {key: row[key] for key in ("scenario", "seed", "schedule", "how", "step", "mishap", "fault")}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-scenario"], "not one of asking"),
        (["plain", "--fault", "nothing"], "no planted fault 'nothing'"),
        (["plain", "--mishap", "hail"], "not a mishap"),
        (["plain", "--invariant", "nothing"], "cannot be imported"),
        (["plain", "--out", "/"], "rows|director|cannot"),
    ],
)
def test_a_wrong_command_says_why(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry(["lab", "explore", *arguments]) not in (0, 1)
    assert re.search(said, capsys.readouterr().err)


def test_the_catalogue_and_the_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry(["lab", "faults", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(FAULTS) >= 25
    assert entry(["lab", "scenarios"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(packaged())
    assert entry(["lab", "scenarios", "--show", "plain"]) == 0
    assert capsys.readouterr().out == find_scenario("plain").text


def test_a_fault_is_in_the_runtime_only_while_it_is_planted(capsys: pytest.CaptureFixture[str]) -> None:
    before = perform(Point("asking"))
    for name in FAULTS:
        perform(Point("asking", fault=name))
        assert perform(Point("asking")) == before, name
    assert entry(["lab", "faults", "gate-ignored", "completion-order"]) == 0
    assert "2 of 2 found: mutation score 100%" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.timeout(600)
def test_every_planted_fault_is_found(fault: str) -> None:
    """One that is not found is a missing invariant."""
    assert hunt(fault, packaged()) is not None


@pytest.mark.slow
@pytest.mark.parametrize("fault", ONCE_EACH)
@pytest.mark.timeout(300)
def test_the_command_gives_the_same_in_a_fresh_process(fault: str, tmp_path: Path) -> None:
    """Twenty violations, each shrunk and done again by its own command alone: the same kind, the same words."""
    row = hunt(fault, packaged())
    assert row is not None
    small = shrink(row).stored(tmp_path)
    words = shlex.split(small.point.command)
    done = subprocess.run(
        [sys.executable, "-m", *words, "--no-shrink", "--out", str(tmp_path / "again.jsonl")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    again = json.loads((tmp_path / "again.jsonl").read_text())
    assert again["trace"] == small.trace
    assert again["violations"] == [{"kind": found.kind, "text": found.text} for found in small.violations]
