"""What a NovaCode that was killed has left running is named at the next start, for as long as it runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.os_processes import alive, end_all, unique
from doubles.replies import anthropic

from novacode.sessions.holders import forget_holder, holder_words, note_holder
from novacode.workspace import proctree

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def token():
    made = unique()
    yield made
    end_all(made)


@pytest.mark.timeout(120)
def test_commands_of_a_killed_run_are_named_until_they_have_ended(tmp_path: Path, token: str) -> None:
    """With pid and command line, the daemon too, and how to end them; each time, and not once they are gone."""
    place = Place(tmp_path)
    command = {"command": f"setsid sleep {token} > /dev/null 2>&1 & sleep {token}"}
    replies = [anthropic("Working.", [("tu_1", "shell", command)]), *(anthropic(f"Answer {n}.") for n in range(3))]
    with checking(replies) as server:
        flags = ("run", "--base-url", server.url, "-m", "anthropic/m", "--yolo", "--output-format", "json")
        process = place.start(*flags, "go")
        place.until(lambda: len([line for line in alive(token) if line.startswith("sleep")]) == 2)
        process.send_signal(signal.SIGKILL)
        place.wait(process)
        told = [place.run(*flags, "-c", "go on").err for _ in range(2)]
        for words in told:
            assert "NovaCode was killed in this session" in words
            assert words.count(f"sleep {token}") >= 2
        pids = re.findall(r"kill ([\d ]+)$", told[-1], re.MULTILINE)
        for pid in pids[0].split():
            os.kill(int(pid), signal.SIGKILL)
        place.until(lambda: alive(token) == [])
        quiet = place.run(*flags, "-c", "go on")
    assert (quiet.code, "was killed" in quiet.err) == (0, False)
    assert list((tmp_path / "home").glob("sessions/*/*.lock")) == []


def test_a_run_that_ended_leaves_no_note(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    assert note_holder(path) == ()
    assert f"{os.getpid()} {proctree.read(os.getpid()).start}\n" == path.with_suffix(".lock").read_text()
    forget_holder(path)
    assert not path.with_suffix(".lock").exists()


@pytest.mark.parametrize(
    "note",
    [b"", b"4711\n", b"4711 0\n", b"x y\n", b"\xff\xfe\n", b"left\n", "٣ ٣\n".encode(), b"left 1 1\nleft 99999999 5\n"],
)
def test_a_note_that_says_nothing_useful_is_no_trouble(tmp_path: Path, note: bytes) -> None:
    """An older version's, one that was cut off, and one of a holder that left nothing."""
    path = tmp_path / "s.jsonl"
    path.with_suffix(".lock").write_bytes(note)
    assert note_holder(path) == ()
    assert path.with_suffix(".lock").read_text().split()[0] == str(os.getpid())
    assert "process" in holder_words(path)


ASK = """
import sys
from pathlib import Path
from novacode.sessions.holders import note_holder
print(note_holder(Path(sys.argv[1])))
"""


def test_what_a_new_start_itself_runs_below_is_not_named(tmp_path: Path, token: str) -> None:
    """A NovaCode below a command of a killed one is not left over; what runs beside it is, and what that began."""
    path = tmp_path / "s.jsonl"
    path.with_suffix(".lock").write_text("99999999 5\nleft 99999998 6\n")
    environ = {**os.environ, "NOVACODE_CALL": "99999999.5.1.1.c1"}
    beside = [
        subprocess.Popen(["sleep", token], env=environ | {"NOVACODE_CALL": marker})
        for marker in ("99999999.5.1.2.c2/4711.8.1.1.c1", "99999998.6.1.1.c1", "99999999.55.1.1.c1")
    ]
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(path)], env=environ, capture_output=True, text=True, check=True
    )
    for one in beside:
        one.kill()
        one.wait()
    assert asked.stdout == f"{(f'{beside[0].pid} sleep {token}', f'{beside[1].pid} sleep {token}')}\n"
    assert path.with_suffix(".lock").read_text().splitlines()[1:] == ["left 99999999 5", "left 99999998 6"]
