"""A session that cannot be written: the run is told at once, ends well, and says so with a code of its own."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.os_processes import alive, unique
from doubles.replies import anthropic

pytestmark = pytest.mark.timeout(120)


def _flags(url: str, *more: str) -> tuple[str, ...]:
    return ("run", "--base-url", url, "-m", "anthropic/m", "--yolo", "--output-format", "json", *more)


def _sessions(place: Place) -> list[Path]:
    return sorted((place.root / "home" / "sessions").glob("*/*.jsonl"))


def test_a_full_disk_stops_the_run_and_everything_it_started(tmp_path: Path) -> None:
    """The journal may grow to 6,000 bytes; what was running is reaped, and the next run goes on from what is there."""
    place, token = Place(tmp_path), unique()
    calls = [("tu_1", "shell", {"command": f"sleep {token}"}), ("tu_2", "shell", {"command": "echo " + "x" * 6_000})]
    replies = [anthropic("Working.", calls), anthropic("Going on.")]
    limit = (6_000, 6_000)
    with checking(replies) as server:
        process = place.start(
            *_flags(server.url, "--overlap", "all"),
            "go",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        )
        ended = place.wait(process)
        [path] = _sessions(place)
        lines = path.read_bytes().splitlines(keepends=True)
        assert all(line.endswith(b"\n") and json.loads(line) for line in lines), "what was written is whole"
        again = place.run(*_flags(server.url, "-c"), "go on")
    assert (ended.code, ended.result["subtype"], ended.result["terminal_reason"]) == (
        74,
        "error_session",
        "session_error",
    )
    assert "File too large" in ended.err
    assert "Traceback" not in ended.err
    assert alive(token) == []
    assert (again.code, again.result["result"]) == (0, "Going on.")


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_journal_that_vanishes_stops_the_run(tmp_path: Path, how: str) -> None:
    """Writing to a file without a name succeeds; the loss is noticed all the same."""
    place = Place(tmp_path)
    sessions = shlex.quote(str(tmp_path / "home" / "sessions"))
    command = {"removed": f"rm {sessions}/*/*.jsonl", "replaced": f"cd {sessions}/*/ && touch x && mv x *.jsonl"}[how]
    with checking(
        [anthropic("Working.", [("tu_1", "shell", {"command": command})]), anthropic("Never asked.")]
    ) as server:
        ended = place.run(*_flags(server.url), "go")
        assert len(server.requests) == 1
    assert (ended.code, ended.result["subtype"]) == (74, "error_session")
    assert "removed or replaced" in ended.err


def test_a_home_that_cannot_be_written_keeps_nothing_and_runs(tmp_path: Path) -> None:
    """No failure: the run goes on in memory, and a notice says that it is not kept."""
    place = Place(tmp_path)
    (tmp_path / "home").write_text("a file where the folder should be")
    with checking([anthropic("Done.")]) as server:
        ended = place.run(*_flags(server.url), "go")
    assert (ended.code, ended.result["result"]) == (0, "Done.")
    assert "not kept" in ended.err


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    """BR-129 at the command line: the pid is named, and looking is still possible."""
    place, token = Place(tmp_path), unique()
    with checking([anthropic("Working.", [("tu_1", "shell", {"command": f"sleep {token}"})])]) as server:
        process = place.start(*_flags(server.url), "go")
        place.until(lambda: bool(alive(token)))
        [path] = _sessions(place)
        refused = place.run(*_flags(server.url, "-r", path.stem), "me too")
        shown = place.run("sessions", "show", path.stem)
        process.terminate()
        place.wait(process)
    assert (refused.code, refused.result["subtype"]) == (42, "error_session")
    assert f"in use by the process {process.pid}" in refused.err
    assert (shown.code, b"Working." in shown.out) == (0, True)


def test_provider_keys_and_named_secrets_are_not_in_the_file(tmp_path: Path) -> None:
    """Whatever way the value takes through the run."""
    place = Place(tmp_path, {"ANTHROPIC_API_KEY": "sk-ant-0123456789", "DEPLOY": "hunter2-hunter2"})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('secrets = ["DEPLOY"]\n')
    shown = {"command": "echo sk-ant-0123456789 $DEPLOY"}
    with checking([anthropic("The key: sk-ant-0123456789", [("tu_1", "shell", shown)]), anthropic("Done.")]) as server:
        ended = place.run(*_flags(server.url), "use hunter2-hunter2")
    assert ended.code == 0
    [path] = _sessions(place)
    text = path.read_text()
    assert "hunter2" not in text
    assert "sk-ant" not in text
    assert "[secret DEPLOY]" in text
    assert "[secret ANTHROPIC_API_KEY]" in text


def test_the_disk_that_fails_only_at_the_end_is_told(tmp_path: Path) -> None:
    """An fsync that fails after the run: the answer is given, and the code says that it is not kept."""
    place = Place(tmp_path)
    broken = "import os, sys; os.fsync = lambda fd: (_ for _ in ()).throw(OSError(5, 'Input/output error'))"
    program = f"{broken}; from novacode.__main__ import main; main()"
    with checking([anthropic("Done.")]) as server:
        environ = {**os.environ, "NOVACODE_HOME": str(tmp_path / "home"), "ANTHROPIC_API_KEY": "k"}
        command = [sys.executable, "-c", program, *_flags(server.url), "go"]
        process = subprocess.Popen(
            command,
            cwd=place.work,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        ended = place.wait(process)
    assert ended.code == 74
    assert ended.result["result"] in ("Done.", "")
    assert "Input/output error" in ended.err
