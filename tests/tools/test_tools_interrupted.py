"""Long work in one process gives way often, so that a stop in the middle of it is a stop at once.

Counted in scheduling steps: a bystander gets a turn whenever the tool gives way.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from doubles.fake_tool import Bench

from novacode.tools.base import Tool
from novacode.tools.glob import GlobTool
from novacode.tools.grep import GrepTool
from novacode.tools.read import ReadTool
from novacode.workspace.processes import RealProcesses

_FILES = 3_000
_LONGEST = 1.0  # seconds between two turns, on a machine that does other things as well

CASES: dict[str, tuple[Tool[Any], dict[str, Any], int]] = {
    "grep over many small files": (GrepTool(), {"pattern": "l.ne 2"}, 40),
    "grep in one large file": (GrepTool(), {"pattern": "of t.xt", "path": "large.txt"}, 20),
    "glob over many files": (GlobTool(), {"pattern": "**/*.md"}, 10),
    "read a large file from its end": (ReadTool(), {"path": "large.txt", "offset": 400_000}, 6),
}


class _Bystander:
    """Takes every turn it can get; at turn `strike` it cancels the others. `gap` is the longest time between two."""

    def __init__(self, strike: int | None) -> None:
        self.turns = 0
        self.after = 0
        self.gap = 0.0
        self._strike = strike

    async def run(self, victim: trio.CancelScope) -> None:
        last = trio.current_time()
        while True:
            await trio.lowlevel.checkpoint()
            self.turns += 1
            self.gap = max(self.gap, trio.current_time() - last)
            last = trio.current_time()
            if victim.cancel_called:
                self.after += 1
            elif self.turns == self._strike:
                victim.cancel()


async def _run(bench: Bench, what: str, strike: int | None = None) -> tuple[_Bystander, bool]:
    tool, arguments, _ = CASES[what]
    watch = _Bystander(strike)
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as victim:
            nursery.start_soon(watch.run, victim)
            await bench.run(tool, **arguments)
        nursery.cancel_scope.cancel()
    return watch, victim.cancelled_caught


@pytest.fixture
def tree(bench: Bench) -> Bench:
    for number in range(_FILES):
        bench.put(f"d{number % 30}/f{number}.txt", f"line {number}\n" * 20)
    bench.processes = RealProcesses()
    bench.put("large.txt", "some line of text\n" * 500_000)
    return bench


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", CASES)
async def test_a_stop_in_the_middle_of_long_work_is_a_stop_at_once(what: str, tree: Bench) -> None:
    """The work gives way many times, never rarely, and does not go on after it was stopped."""
    whole, _ = await _run(tree, what)
    assert whole.turns >= CASES[what][2]
    assert whole.gap < _LONGEST
    struck, caught = await _run(tree, what, strike=CASES[what][2] // 2)
    assert caught
    assert struck.after <= 2  # what one more turn may find, and the end of the nursery
