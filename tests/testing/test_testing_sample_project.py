"""A project of somebody else's: it has the wheel, in an environment of its own, and nothing of this checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = Path(__file__).with_name("sample_project")


def run(*words: object, cwd: Path, tries: int = 1) -> str:
    """Run a program and return what it printed; a registry can be slow, so it may be tried again."""
    for attempt in range(1, tries + 1):
        ended = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
        if ended.returncode == 0 or attempt == tries:
            return f"{ended.stdout}{ended.stderr}\nexit code {ended.returncode}"
    raise AssertionError("there is a last try")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_project_with_the_wheel_passes_three_tests_and_catches_a_wrong_agent(tmp_path: Path) -> None:
    """Built, installed with the extra `test`, and run twice: the second time as in CI, from the tape of the first."""
    checkout = tmp_path / "checkout"
    wanted = ["git", "-C", ROOT, "ls-files", "-z", "novacode", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"]
    listed = subprocess.run([str(word) for word in wanted], capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    built = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, checkout, cwd=tmp_path, tries=3)
    wheels = list(tmp_path.glob("novacode-*.whl"))
    assert len(wheels) == 1, built
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    installed = run(python, "-m", "pip", "install", "--quiet", f"{wheels[0]}[test]", cwd=tmp_path, tries=3)
    assert "exit code 0" in installed, installed
    project = tmp_path / "project"
    shutil.copytree(SAMPLE, project)
    for recording in ("once", "never"):
        printed = run(python, "-m", "pytest", "-q", f"--novacode-record={recording}", cwd=project)
        assert re.search(r"1 failed, 3 passed", printed), printed
        assert "FAILED tests/test_agents.py::test_the_careless_agent_can_be_stopped_anywhere" in printed
        assert "cancelled before step" in printed
        assert "calls and results are not one to one" in printed
    assert (project / "tests" / "tapes" / "test_agents" / "test_a_tape_is_played.tape").exists()
