"""Signals during real commands: everything is reaped, the code is right, and the session goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.os_processes import alive, unique
from doubles.replies import Call, anthropic
from person import at_terminal

pytestmark = pytest.mark.timeout(120)

_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def _background_child(token: str) -> list[Call]:
    return [("tu_1", "shell", {"command": f"sh -c 'sleep {token} & sleep {token}; echo late > late.txt'"})]


def _stubborn_daemon(token: str) -> list[Call]:
    daemon = f"setsid sh -c 'trap \"\" TERM; sleep {token}; echo late > late.txt' > /dev/null 2>&1 &"
    return [("tu_1", "shell", {"command": f"{daemon} sleep {token}"})]


def _ten_daemons(token: str) -> list[Call]:
    return [(f"tu_{number}", "shell", call[2]) for number in range(10) for call in _stubborn_daemon(token)]


_COMMANDS = {"background child": _background_child, "daemon": _stubborn_daemon, "ten daemons": _ten_daemons}


def _sleeping(token: str) -> int:
    return sum(line.startswith("sleep") for line in alive(token))


@pytest.mark.parametrize("number", _CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("command", _COMMANDS)
def test_a_signal_stops_everything_and_the_session_goes_on(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    """No process left, late.txt absent, a result object with the right code, and a strictly paired history after."""
    token, place = unique(), Place(tmp_path)
    calls = _COMMANDS[command](token)
    replies = [anthropic("Working.", calls), anthropic("Going on.")]
    with checking(replies) as server:
        flags = ("--base-url", server.url, "-m", "anthropic/m", "--yolo", "--output-format", "json", "--overlap", "all")
        process = place.start("run", *flags, "go")
        # Not the shells, whose command lines hold the token too: a call may still be on its way while others' are up.
        place.until(lambda: _sleeping(token) == 2 * len(calls))
        process.send_signal(number)
        ended = place.wait(process)
        assert (alive(token), (place.work / "late.txt").exists()) == ([], False)
        again = place.run("run", *flags, "-c", "go on")
        results = server.requests[-1].json["messages"][2]["content"]
    assert (ended.code, ended.result["subtype"], ended.result["terminal_reason"]) == (
        _CODES[number],
        "cancelled",
        number.name,
    )
    assert ended.result["calls"]["cancelled"] == len(calls)
    assert (ended.result["reaped"]["survivors"], ended.result["reaped"]["tasks"]) == ([], len(calls))
    assert [block["tool_use_id"] for block in results[:-1]] == [call[0] for call in calls]
    assert all("interrupted" in str(block["content"]) for block in results[:-1])
    assert (again.code, again.result["result"]) == (0, "Going on.")


def test_the_second_press_skips_the_grace(tmp_path: Path) -> None:
    """A command that ignores TERM is given its two seconds after one press, and none after two."""
    token, place = unique(), Place(tmp_path)
    calls: list[Call] = [("tu_1", "shell", {"command": f"trap '' TERM INT; echo up; sleep {token}; sleep {token}"})]
    with checking([anthropic("", calls)]) as server:
        process = place.start("run", "--base-url", server.url, "-m", "anthropic/m", "--yolo", "go")
        place.until(lambda: bool(alive(f"sleep {token}")))
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = b""
        # What is being waited for is said by name, half a second later.
        while b"waiting for" not in told:
            told += process.stderr.readline()
        assert f"sleep {token}".encode() in told
        process.send_signal(signal.SIGINT)
        ended = place.wait(process)
    assert (ended.code, alive(token)) == (130, [])
    assert b"SIGINT: stopping the run" in told


@pytest.mark.parametrize("format_", ["text", "json", "stream-json", "events"])
def test_br_152_a_reader_that_goes_away_ends_the_run(tmp_path: Path, format_: str) -> None:
    """Noticed at once, though nothing is being written: no traceback, nothing left, and the code of SIGPIPE."""
    token, place = unique(), Place(tmp_path)
    calls: list[Call] = [("tu_1", "shell", {"command": f"echo up; sleep {token}"})]
    with checking([anthropic("Working.", calls)]) as server:
        flags = ("--base-url", server.url, "-m", "anthropic/m", "--yolo", "--output-format", format_)
        with place.running("run", *flags, "go") as process:
            place.until(lambda: bool(alive(f"sleep {token}")))
            assert process.stdout is not None
            process.stdout.close()
            process.stdout = None  # which is not read from any more
            ended = place.wait(process)
    assert (ended.code, alive(token), "Traceback" in ended.err) == (141, [], False)


_SLOW_TO_STOP = """
[[turn]]
steps = [
  { text = "Working." },
  { call = "shell", arguments = { command = "fast" } },
  { call = "shell", arguments = { command = "slow one" } },
  { call = "shell", arguments = { command = "slow two" } },
]
[[simulate.tool]]
name = "shell"
when = "slow *"
takes = 3600.0
cleanup = 3600.0
"""


@pytest.mark.parametrize("format_", ["json", "stream-json", "events"])
def test_the_third_press_ends_the_program_and_still_says_how(tmp_path: Path, format_: str) -> None:
    """What is not known counts as lost, or as never begun; the session says the same when it is gone on with."""
    place = Place(tmp_path, {"TERM": "xterm", "LC_ALL": "C.UTF-8"})
    (place.work / "slow.toml").write_text(_SLOW_TO_STOP)
    flags = ("run", "-m", "script:slow.toml", "--simulate", "--yolo", "--overlap", "none", "--output-format", format_)
    with at_terminal(place, *flags, "go", stdout=subprocess.PIPE) as person:
        person.sees("slow one")
        person.types("\x03")
        person.sees("again to kill at once")
        person.types("\x03")
        person.watches(0.2)
        person.types("\x03")
        person.sees("ended without waiting")
        assert person.leaves() == 130
        assert person.process.stdout is not None
        result = json.loads(person.process.stdout.read().splitlines()[-1])
    assert (result["subtype"], result["terminal_reason"], result["is_error"]) == ("cancelled", "SIGINT", True)
    assert {name: count for name, count in result["calls"].items() if count} == {
        "total": 3,
        "ok": 1,
        "lost": 1,
        "skipped": 1,
    }
    assert (result["num_turns"], result["reaped"]["tasks"], result["reaped"]["survivors"]) == (1, 1, [])
    assert result["session_id"]
    shown = place.run("sessions", "show", result["session_id"])
    assert b"Started, outcome unknown" in shown.out
