"""The same bytes out: of one tape, on every machine, under any load, with any hash seed, on two Python versions.

A second Python with NovaCode installed is taken from `$NOVACODE_OTHER_PYTHON`.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.replies import anthropic

import novacode.models

TOUR = Path(novacode.models.__file__).with_name("tour.toml")
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\n\nfrom calc import add\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
}
ALLOWED = ("--permission-mode", "accept-edits", "--allow", "shell(python3 -m unittest -q)")
TASK = "The test fails. Find out why, mend it, and run the test again."


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """The tape of the demo's main job: real tools, a real test, on real time."""
    place, tape = Place(tmp_path), tmp_path / "demo.tape"
    for name, text in FILES.items():
        (place.work / name).write_text(text)
    ended = place.run("run", "-m", f"script:{TOUR}", *ALLOWED, "--record", str(tape), TASK)
    assert ended.code == 0, ended.err
    assert "a + b" in (place.work / "calc.py").read_text()
    return tape


def replay(python: str, tape: Path, folder: Path, hash_seed: int, *more: str) -> bytes:
    """Return what a replay in a folder of its own puts out, or how it failed."""
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    environ = kept | {"NOVACODE_HOME": str(folder / "home"), "PYTHONHASHSEED": str(hash_seed)}
    command = [
        python,
        "-m",
        "novacode",
        "run",
        *ALLOWED,
        "--replay",
        str(tape),
        "--output-format",
        "events",
        *more,
        TASK,
    ]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False, timeout=120)
    return done.stdout if done.returncode == 0 else b"exit %d: %b" % (done.returncode, done.stderr)


def distinct(tape: Path, root: Path, pythons: list[str], times: int, workers: int) -> Counter[str]:
    """Replay `times` times, on each of `pythons` in turn, and count the outputs."""
    chance = random.Random(1)
    jobs = [(pythons[n % len(pythons)], tape, root / f"r{n}", chance.randrange(1, 1 << 32)) for n in range(times)]
    with ThreadPoolExecutor(workers) as pool:
        outputs = list(pool.map(lambda job: replay(*job), jobs))
    shown = {output[-300:] for output in outputs if not output.endswith(b"}\n")}
    assert not shown
    return Counter(hashlib.sha256(output).hexdigest() for output in outputs)


@pytest.mark.timeout(120)
def test_one_tape_one_output(demo: Path, tmp_path: Path) -> None:
    """A few times, side by side: the long version of this is below."""
    assert len(distinct(demo, tmp_path, [sys.executable], 6, 3)) == 1


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_200_replays_on_two_pythons_under_load(demo: Path, tmp_path: Path) -> None:
    """Two processes do nothing but burn time meanwhile, and four replays run at once."""
    other = os.environ.get("NOVACODE_OTHER_PYTHON")
    if other is None:
        pytest.skip("$NOVACODE_OTHER_PYTHON names no second Python with NovaCode installed")
    version = "import sys; print(sys.version_info[:2])"
    found = {
        subprocess.run([python, "-c", version], capture_output=True, check=True).stdout
        for python in (other, sys.executable)
    }
    assert len(found) == 2, "the second Python is of the same version"
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        outputs = distinct(demo, tmp_path, [sys.executable, other], 200, 4)
    finally:
        for process in burning:
            process.kill()
            process.wait()
    assert list(outputs.values()) == [200]


@pytest.fixture
def together(tmp_path: Path) -> Path:
    """The tape of a reply whose six calls all come in one chunk, so that their tasks start at the same moment."""
    place, tape = Place(tmp_path, {"ANTHROPIC_API_KEY": "k"}), tmp_path / "together.tape"
    for number in range(6):
        (place.work / f"{number}.txt").write_text(f"{number}\n")
    calls = [(f"tu_{number}", "read", {"path": f"{number}.txt"}) for number in range(6)]
    replies = [[b"".join(anthropic("All of them.", calls))], anthropic("Done.")]
    with checking(replies) as server:
        ended = place.run("run", "-m", "anthropic/m", "--base-url", server.url, "--record", str(tape), TASK)
    assert ended.code == 0, ended.err
    # Calls that take the same time end at the same moment, and then chance has the last word.
    lines = tape.read_text().splitlines()
    tape.write_text("".join(f"{_as_long(line)}\n" for line in lines))
    return tape


def _as_long(line: str) -> str:
    if not line.startswith('{"type":"tool"'):
        return line
    before, after = line.split('"took":')
    return f'{before}"took":0.5,{after.split(",", 1)[1]}'


@pytest.mark.timeout(120)
def test_seeds_that_interleave_differently_give_one_history(together: Path, tmp_path: Path) -> None:
    """The session files show that calls ran in different orders; what is history, and what goes out, is the same."""
    orders, histories, outputs = set(), set(), set()
    for seed in range(1, 6):
        folder = tmp_path / f"seed{seed}"
        outputs.add(replay(sys.executable, together, folder, seed, "--seed", str(seed)))
        [journal] = (folder / "home/sessions").rglob("*.jsonl")
        lines = journal.read_text().splitlines()
        orders.add(tuple(line.split('"call_id":"')[1].split('"')[0] for line in lines if '"phase":"running"' in line))
        export = [sys.executable, "-m", "novacode", "sessions", "export", "--format", "anthropic", "s-deterministic"]
        environ = os.environ | {"NOVACODE_HOME": str(folder / "home")}
        histories.add(subprocess.run(export, env=environ, capture_output=True, check=True, timeout=60).stdout)
    assert all(len(order) == 6 for order in orders)
    assert len(orders) > 1, "no seed has made a difference, so this shows nothing"
    assert (len(histories), len(outputs)) == (1, 1)
