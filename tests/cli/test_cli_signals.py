"""Signals at any moment of real runs, with everything in: hooks, snapshots, parallel calls, a background job.

Standard output is a pipe, everything else is a terminal that has to be left as it was.

The moment is drawn from the whole life of the process, from when it has taken over its signals: before that, for the
time an interpreter needs to start, a signal ends it as it ends any program.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from doubles.command_line import Place
from doubles.model_server import Answer, Seen, Server, server_in_thread
from doubles.os_processes import alive, unique
from doubles.replies import anthropic
from doubles.rules import violations
from person import at_terminal, modes_left

from novacode.grace import DEFAULT

_JSON = ("--output-format", "json")
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
_HOOKS = "\n".join(
    f'[[hooks]]\nevent = "{event}"\ncommand = "true"\n' for event in ("PreToolUse", "PostToolUse", "SessionEnd")
)


@attrs.frozen
class Ended:
    """What became of a run that was signalled. `seconds` are from the last signal to the end of the process."""

    code: int
    out: bytes
    err: str
    seconds: float

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


class Field:
    """A place to run in, and a server that speaks by the rules: a turn with calls of every kind, then the end."""

    def __init__(self, root: Path, server: Server, token: str) -> None:
        self.place = Place(root, {"PYTHONPYCACHEPREFIX": str(root / "bytecode"), "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        self.token = token
        home = root / "home"
        home.mkdir()
        (home / "config.toml").write_text(_HOOKS)
        (self.place.work / "a.txt").write_text("one\n")
        self.flags = ("--base-url", server.url, "-m", "anthropic/m", "--yolo", "--overlap", "all")

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        return self.place.start("run", *self.flags, *_JSON, *more, "go")

    def signalled(self, numbers: Sequence[signal.Signals], after: float, gap: float) -> Ended:
        """Run, and signal after so many seconds; several signals with a gap between them."""
        with at_terminal(self.place, "run", *self.flags, *_JSON, "go", stdout=subprocess.PIPE) as person:
            _wait_for_handlers(person.process)
            person.watches(after)
            for position, number in enumerate(numbers):
                if position:
                    person.watches(gap)
                if number is signal.SIGINT and len(numbers) == 1:
                    person.types("\x03")  # which the terminal makes a signal to whoever is in its foreground
                else:
                    person.process.send_signal(number)
            since = time.monotonic()
            code = person.leaves()
            seconds = time.monotonic() - since
            assert person.process.stdout is not None
            return Ended(code, person.process.stdout.read(), person.text, seconds)


def _wait_for_handlers(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process handles SIGTERM."""
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:") and int(line.split()[1], 16) & bit:
                return
        time.sleep(0.001)


def _reply(token: str) -> Any:
    job = {"command": f"setsid sleep {token} & sleep {token}", "background": True}
    first = [
        ("tu_1", "shell", job),
        ("tu_2", "shell", {"command": f"sleep 0.2; sleep {token} & echo done > made.txt"}),
        ("tu_3", "read", {"path": "a.txt"}),
        ("tu_4", "shell", {"command": "for i in 1 2 3; do echo $i; sleep 0.1; done"}),
    ]

    def answer(seen: Seen) -> Answer:
        broken = violations("anthropic", seen.body)
        if broken:
            return Answer.error(
                400, {"type": "error", "error": {"type": "invalid_request_error", "message": str(broken)}}
            )
        said = seen.json["messages"][-1]["content"]
        if any(block.get("text") == "go" for block in said):
            return Answer.sse(*anthropic("Working.", first))
        return Answer.sse(*anthropic("Done."))

    return answer


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    token = unique()
    with server_in_thread(_reply(token)) as server:
        made = Field(tmp_path_factory.mktemp("signals"), server, token)
        assert made.place.run("run", *made.flags, "warm up").code == 0
        yield made


def _life(field: Field) -> float:
    """Return about how long a run lives that nobody signals."""
    process = field.start()
    _wait_for_handlers(process)
    since = time.monotonic()
    done = field.place.wait(process)
    assert (done.code, done.result["subtype"]) == (0, "success"), done.err
    assert done.result["calls"]["ok"] == 4
    return time.monotonic() - since


def _one(field: Field, numbers: Sequence[signal.Signals], after: float, gap: float) -> Ended:
    """One run: nothing left, the right code, a result object, no traceback, and a next run that works."""
    ended = field.signalled(numbers, after, gap)
    told = f"{[number.name for number in numbers]} after {after:.3f} s: {ended.out!r} {ended.err}"
    assert alive(field.token) == [], told
    assert "Traceback" not in ended.err, told
    assert ended.out.count(b"\n") == 1, told
    result = ended.result
    assert result["type"] == "result", told
    assert result["reaped"]["survivors"] == [], told
    if result["subtype"] == "success":
        assert ended.code == 0, told
    else:
        assert (result["subtype"], result["terminal_reason"]) == ("cancelled", numbers[0].name), told
        assert ended.code == _CODES[numbers[0]], told
        counted = dict(result["calls"])
        assert counted.pop("total") == sum(counted.values()), told
    return ended


_WAYS: tuple[tuple[signal.Signals, ...], ...] = (
    (signal.SIGINT,),
    (signal.SIGTERM,),
    (signal.SIGHUP,),
    (signal.SIGINT, signal.SIGINT),
)


def _attack(field: Field, number: int, seed: int) -> list[Ended]:
    chance = random.Random(seed)
    life = _life(field)
    ended = []
    for count in range(number):
        ended.append(_one(field, _WAYS[count % len(_WAYS)], chance.uniform(0, life), chance.uniform(0, 0.1)))
        if count % 4 == 3:
            again = field.place.run("run", *field.flags, *_JSON, "-c", "and again")
            assert (again.code, again.result["result"]) == (0, "Done."), again.err
            assert alive(field.token) == []
    return ended


@pytest.mark.timeout(300)
def test_a_signal_at_any_moment_ends_a_run_well(field: Field) -> None:
    """One run for each kind of signal, and another on the same session."""
    _attack(field, len(_WAYS), seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_two_hundred_signals(field: Field) -> None:
    """All of them well, and most of the runs were really cut off."""
    ended = _attack(field, 200, seed=2)
    assert sum(one.code != 0 for one in ended) >= 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_a_signal_to_the_exit_in_half_a_second(field: Field) -> None:
    """While calls and a job run, all of which obey TERM. The median, since the machine does other things as well."""
    times = []
    for _ in range(24):
        process = field.start()
        field.place.until(lambda: len([line for line in alive(field.token) if line.startswith("sleep")]) >= 2)
        process.send_signal(signal.SIGTERM)
        since = time.monotonic()
        done = field.place.wait(process)
        times.append(time.monotonic() - since)
        assert (done.code, done.result["reaped"]["survivors"], alive(field.token)) == (143, [], [])
    median = statistics.median(times)
    print(f"from SIGTERM to the exit: median {median:.3f} s, least {min(times):.3f} s, most {max(times):.3f} s")
    assert median <= 0.5


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_ignores_term_costs_its_grace_and_little_more(tmp_path: Path) -> None:
    """Four commands that have to be killed, all at the same time: one grace, and at most 0.3 s beyond it."""
    token, times = unique(), []
    deaf = {"command": f"trap '' TERM; sleep {token}; sleep {token}"}
    calls = [(f"tu_{number}", "shell", deaf) for number in range(4)]
    with server_in_thread(lambda seen: Answer.sse(*anthropic("Working.", calls))) as server:
        place = Place(tmp_path, {"PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")})
        flags = ("--base-url", server.url, "-m", "anthropic/m", "--yolo", "--overlap", "all", "--output-format", "json")
        for _ in range(7):
            process = place.start("run", *flags, "go")
            place.until(lambda: len([line for line in alive(token) if line.startswith("sleep")]) == 4)
            process.send_signal(signal.SIGINT)
            since = time.monotonic()
            done = place.wait(process)
            times.append(time.monotonic() - since)
            assert (done.code, done.result["reaped"]["escalated"] >= 4, alive(token)) == (130, True, [])
    print(f"from SIGINT to the exit, with a grace of 2 s: median {statistics.median(times):.3f} s")
    assert statistics.median(times) <= DEFAULT.term + 0.3


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        (b"\x1b[?25l\x1b[?2004hhello\x1b[?2004l\x1b[?25h\x1b[31mred\x1b[0m", []),
        (b"\x1b[?25lhello", ["?25"]),
        (b"\x1b[?1049hhello\x1b[?2004h", ["?1049", "?2004"]),
        (b"\x1b[1;31mred", ["colours"]),
    ],
)
def test_what_a_terminal_is_left_in_is_noticed(shown: bytes, left: list[str]) -> None:
    assert modes_left(shown) == left
