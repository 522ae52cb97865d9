"""What the benchmarks share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runs import Bench


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)
