"""`novacode run` in the places where pipelines run things: no hang, no traceback, one JSON object a line."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from doubles.command_line import Ended, Place
from doubles.model_server import Answer, Seen, Server, server_in_thread
from doubles.replies import anthropic
from doubles.rules import violations

pytestmark = pytest.mark.timeout(120)

FORMATS = ("text", "json", "stream-json", "events")
SAID = "Done: žluťoučký kůň \U0001f600 \u2028 end"


def _answer(seen: Seen) -> Answer:
    """A turn with a call whose output is no ASCII, then the end."""
    if broken := violations("anthropic", seen.body):
        return Answer.error(400, {"type": "error", "error": {"type": "invalid_request_error", "message": str(broken)}})
    if len(seen.json["messages"]) % 4 == 1:
        calls = [("tu_1", "shell", {"command": "printf 'k\\303\\274he \\377\\n'; printf '\\033[31mred\\033[0m\\n'"})]
        return Answer.sse(*anthropic("Looking.", calls))
    return Answer.sse(*anthropic(SAID))


@pytest.fixture
def server() -> Iterator[Server]:
    with server_in_thread(_answer) as made:
        yield made


@attrs.frozen
class Where:
    """A place to run in: what differs from a usual one. `kept` is whether the session can be written there."""

    environ: Mapping[str, str] = attrs.field(factory=dict)
    process: Callable[[Path], Mapping[str, Any]] = lambda _: {}
    kept: bool = True
    flags: tuple[str, ...] = ()


def _closed(fd: int) -> Callable[[Path], Mapping[str, Any]]:
    return lambda _: {"preexec_fn": lambda: os.close(fd)}


def _as_wide_as(columns: int) -> Callable[[Path], Mapping[str, Any]]:
    def more(_: Path) -> Mapping[str, Any]:
        _master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        return {"stderr": slave}

    return more


PLACES = {
    "no terminal at all": Where(process=lambda _: {"start_new_session": True}),
    "closed stdin": Where(process=_closed(0)),
    "closed stderr": Where(process=_closed(2)),
    "LANG=C": Where({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}),
    "a home that cannot be written": Where({"NOVACODE_HOME": "/proc/novacode"}, kept=False),
    # The system's word for our home counts then, where a test has no business: so nothing is kept.
    "no home": Where({"NOVACODE_HOME": "", "HOME": ""}, flags=("--no-session",)),
    "a home that is a file": Where({"NOVACODE_HOME": "/etc/passwd/home"}, kept=False),
    "no TERM": Where({"TERM": ""}),
    "200 columns": Where({"COLUMNS": "200", "TERM": "xterm"}, _as_wide_as(200)),
    "20 columns": Where({"COLUMNS": "20", "TERM": "xterm"}, _as_wide_as(20)),
    "Python warnings on": Where({"PYTHONWARNINGS": "default", "PYTHONDEVMODE": "1"}),
}


def _flags(server: Server, *more: str) -> tuple[str, ...]:
    return ("run", "--base-url", server.url, "-m", "anthropic/m", "--yolo", *more)


def _check(ended: Ended, format_: str) -> None:
    assert ended.code == 0, (ended.err, ended.out)
    assert "Traceback" not in ended.err
    if format_ == "text":
        assert ended.out == SAID.encode() + b"\n"
        return
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert all(isinstance(line, dict) for line in lines)
    if format_ == "json":
        assert len(lines) == 1
    if format_ == "events":
        assert (lines[-1]["type"], lines[-1]["text"]) == ("run_ended", SAID)
    else:
        assert (lines[-1]["type"], lines[-1]["result"]) == ("result", SAID)


@pytest.mark.parametrize("what", PLACES)
def test_every_place_gives_the_same_output(what: str, tmp_path: Path, server: Server) -> None:
    """The widely parsed form, which has the most lines."""
    where = PLACES[what]
    place = Place(tmp_path, dict(where.environ))
    flags = _flags(server, "--output-format", "stream-json", *where.flags)
    ended = place.run(*flags, "go", **where.process(tmp_path))
    _check(ended, "stream-json")
    if not where.kept:
        assert "not kept" in ended.err


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_holds_in_the_plainest_of_places(format_: str, tmp_path: Path, server: Server) -> None:
    """No terminal, the C locale, a home that cannot be written."""
    environ = {**PLACES["LANG=C"].environ, "NOVACODE_HOME": "/proc/novacode"}
    _check(
        Place(tmp_path, environ).run(*_flags(server, "--output-format", format_), "go", start_new_session=True), format_
    )


@pytest.mark.parametrize("format_", FORMATS)
def test_a_closed_standard_output_ends_in_a_code_and_not_in_a_traceback(
    format_: str, tmp_path: Path, server: Server
) -> None:
    """Nothing can be said there; the code of a reader that is gone says it."""
    ended = Place(tmp_path).run(
        *_flags(server, "--output-format", format_), "go", stdout=None, preexec_fn=lambda: os.close(1)
    )
    assert (ended.code, "Traceback" in ended.err) == (141, False)


@pytest.mark.parametrize("format_", ["json", "stream-json"])
def test_a_prompt_of_five_megabytes_from_a_pipe(format_: str, tmp_path: Path, server: Server) -> None:
    """All of it is sent, once a turn, and the output is small."""
    prompt = ("wort " * 1_048_576)[: 5 << 20]
    process = Place(tmp_path).start(*_flags(server, "--output-format", format_), stdin=subprocess.PIPE)
    out, err = process.communicate(prompt.encode(), timeout=60)
    _check(Ended(process.returncode, out, err.decode()), format_)
    assert server.requests[0].json["messages"][0]["content"][0]["text"] == prompt
    assert len(out) < 20_000


def test_two_at_once_in_one_folder(tmp_path: Path, server: Server) -> None:
    """Each has a session of its own, and nothing of one is in the other's output."""
    place = Place(tmp_path)
    both = [place.start(*_flags(server, "--output-format", "stream-json"), "go") for _ in range(2)]
    ended = [place.wait(process) for process in both]
    for one in ended:
        _check(one, "stream-json")
    ids = [json.loads(one.out.splitlines()[0])["session_id"] for one in ended]
    assert ids[0] != ids[1]


def test_two_at_once_on_one_session(tmp_path: Path, server: Server) -> None:
    """The second is told who has it, in words and in a result object, and nothing is damaged."""
    place = Place(tmp_path)
    first = place.run(*_flags(server, "--output-format", "json"), "go")
    holder = place.start(*_flags(server, "--output-format", "json"), "-c", stdin=subprocess.PIPE)
    # It opens the session only when it has its prompt, so another holds it meanwhile: here, this test.
    assert holder.stdin is not None
    [path] = (tmp_path / "home").glob("sessions/*/*.jsonl")
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        holder.stdin.write(b"and now?")
        holder.stdin.close()
        holder.stdin = None
        second = place.wait(holder)
    assert second.code == 42
    assert second.result["subtype"] == "error_session"
    assert "in use" in second.err
    third = place.run(*_flags(server, "--output-format", "json"), "-c", "and now?")
    assert (first.code, third.code, third.result["session_id"]) == (0, 0, first.result["session_id"])
