"""What running a tool takes, and the path to the shared doubles."""

import sys
from pathlib import Path

import pytest

_TESTS = str(Path(__file__).resolve().parents[1])
if _TESTS not in sys.path:
    sys.path.insert(0, _TESTS)

from doubles.fake_tool import Bench  # noqa: E402  after the path is set


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A workspace in a folder of its own, and the way to run tools in it."""
    root = tmp_path / "work"
    root.mkdir()
    return Bench.at(root, tmp_path / "spill")
