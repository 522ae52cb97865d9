"""What the tutorials say to type is typed, block after block, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["tutorial-ci", "tutorial-research"])
def test_every_command_of_a_tutorial_works(name: str, tmp_path: Path) -> None:
    """Each block ends with 0, and so does each check in it."""
    home = tmp_path / "home"
    work = tmp_path / "work"
    work.mkdir()
    here = Path(sys.executable).parent
    environ = {name: value for name, value in os.environ.items() if name != "CI"}
    environ |= {"NOVACODE_HOME": str(home), "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    blocks = BLOCK.findall((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 5
    for block in blocks:
        text = block.replace("python3 ", f"{sys.executable} ")
        command = ["bash", "-euo", "pipefail", "-c", text]
        ended = subprocess.run(command, cwd=work, env=environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{block}\n{ended.stdout}\n{ended.stderr}"
