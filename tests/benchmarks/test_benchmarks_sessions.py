"""What long sessions, and many of them, cost: ratios to what nobody can do without."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

import pytest
from doubles.replies import anthropic
from instant_server import instant_server
from stopwatch import alternate, median

from novacode.sessions.fold import load
from novacode.sessions.record import Header, encode
from novacode.values.events import (
    CallMoved,
    CallReady,
    CallSettled,
    Finished,
    PartDone,
    Phase,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    Started,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.ids import CallId, RunId, SessionId
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome, ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_LISTED = 10_000
_TURNS = 1_000
_RUNS = 3


def _turn(number, result_lines):
    """The events of one turn with two calls, as the journal keeps them."""
    calls = [
        ToolCall(CallId(f"c{number}-{at}"), at + 1, "shell", {"command": f"grep -rn thing{at} src/"}) for at in (0, 1)
    ]
    output = Text("src/module.py:12: a line of code that matches\n" * result_lines)
    results = [ToolResult(call.id, "shell", Outcome.OK, True, (output,)) for call in calls]
    said = Text("Looking at the next place, and saying what for. " * 3)
    yield TurnBegan(number)
    yield Started("a-model", f"response-{number}")
    yield PartDone(0, said)
    for call in calls:
        yield CallReady(call.index, call)
        yield CallMoved(call.id, "shell", Phase.QUEUED)
        yield CallMoved(call.id, "shell", Phase.RUNNING)
    yield Finished(StopReason.TOOL_USE, "tool_use")
    yield from (CallSettled(result, 0.1) for result in results)
    exchange = Exchange(Assistant((said, *calls), "anthropic"), tuple(results))
    yield TurnCommitted(exchange, Usage(1000, 100), StopReason.TOOL_USE, "tool_use")


def _session(path, events):
    stamps = (Stamped(seq, RunId("s-x-r1"), 1.9e9 + seq, event) for seq, event in enumerate(events, start=1))
    path.write_bytes(encode(Header(SessionId("s-x"), "/w", 1.9e9)) + b"".join(map(encode, stamps)))


def _fastest_in_turn(*acts, rounds=9):
    """Return the best time of each, taken in turn so that a busy machine falls on all."""
    best = [float("inf")] * len(acts)
    for _ in range(rounds):
        for place, act in enumerate(acts):
            began = time.perf_counter()
            act()
            best[place] = min(best[place], time.perf_counter() - began)
    return best


@pytest.mark.parametrize("result_lines", [2, 20], ids=["small results", "large results"])
def test_resuming_costs_little_more_than_reading_its_json(tmp_path, result_lines):
    path = tmp_path / "s.jsonl"
    events = [RunBegan(User.said("go"), "m")]
    while len(events) < 10_000:
        events += _turn(len(events), result_lines)
    _session(path, events)
    lines = path.read_bytes().splitlines()
    json_alone, ours = _fastest_in_turn(lambda: [json.loads(line) for line in lines], lambda: load(path))
    print(
        f"\n{len(events)} events, {path.stat().st_size / 1e6:.1f} MB:"
        f" {ours / json_alone:.2f} times json.loads ({ours:.3f} s)"
    )
    assert ours / json_alone <= 2.5


def test_ten_thousand_sessions_are_listed_in_half_a_second(bench):
    home = bench.root / "home"
    for number in range(_LISTED):
        name = f"s-2026{number:06}"
        folder = home / "sessions" / f"project-{number % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        answer = Text(f"answer {number} " * 20)
        events = [RunBegan(User.said(f"task {number}"), "m"), *_turn(1, 20)]
        events += [
            TurnCommitted(Exchange(Assistant((answer,)))),
            RunEnded(RunStatus.COMPLETED, "completed", answer.text),
        ]
        _session(folder / f"{name}.jsonl", events)
    listing = [sys.executable, "-m", "novacode", "sessions", "list"]
    done = subprocess.run(listing, env=bench.environ, cwd=bench.work, capture_output=True, check=True)
    assert done.stdout.count(b"\n") == _LISTED
    commands = {"bare": [sys.executable, "-c", "pass"], "list": listing}
    samples = alternate(commands, rounds=9, environ=bench.environ, cwd=str(bench.work))
    wall = min(samples["list"]["wall"]) - min(samples["bare"]["wall"])
    cpu = median(samples["list"], "cpu") - median(samples["bare"], "cpu")
    print(f"\n{_LISTED} sessions: {wall:.3f} s beyond the interpreter's start ({cpu:.3f} s of processor)")
    assert wall < 0.5


_BARE = """
import sys, trio

async def main(port, size):
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    head = b"POST / HTTP/1.1\\r\\ncontent-length: %d\\r\\n\\r\\n" % size
    for _ in range(101):
        await stream.send_all(head)
        await stream.send_all(b"x" * size)
        answer = b""
        while not answer.endswith(b"0\\r\\n\\r\\n"):
            answer += await stream.receive_some()

trio.run(main, int(sys.argv[1]), int(sys.argv[2]))
"""


def _carrying(size):
    """Seconds that a client takes which does nothing but send requests of `size` bytes."""
    with instant_server(anthropic("Done.")) as server:
        port = server.url.rpartition(":")[2]
        subprocess.run([sys.executable, "-c", _BARE, port, str(size)], check=True)
        return statistics.quantiles(server.turns, n=4)[0]


@pytest.mark.parametrize(
    ("lines", "most"), [(16, 1_000_000), (120, 4_000_000)], ids=["200,000 tokens at last", "a million"]
)
def test_the_thousandth_turn_costs_what_the_first_did_and_memory_is_bounded(bench, lines, most):
    """Runs of 1,000 turns: the time of its last turns to that of its first, and its memory to its journal.

    Every request holds the whole conversation. What a larger one takes to be carried, by a client that does nothing
    else, is no time of ours; it hardly counts below a megabyte, and there the
    time is compared as it is.
    """
    read = {"path": "notes.txt"}
    (bench.work / "notes.txt").write_text("".join(f"line {number} of the notes\n" for number in range(lines)))
    replies = [anthropic(f"Turn {at}.", [(f"tu_{at}", "read", read)]) for at in range(_TURNS)]
    with instant_server(replies[0], anthropic("Done.")) as server:
        base = alternate({"run": bench.task(server.url)}, 3, bench.environ, str(bench.work))
    with instant_server(*replies, anthropic("Done.")) as server:
        command = bench.task(server.url, "--max-turns", "1001")
        long = alternate({"run": command}, _RUNS, bench.environ, str(bench.work), warm_up=0)
        turns, sizes = list(server.turns), list(server.sizes)
    assert len(turns) == _RUNS * _TURNS
    assert max(sizes) <= most
    journal = max(map(os.path.getsize, (bench.root / "home" / "sessions").glob("*/*.jsonl"))) / (1 << 20)
    grown = median(long["run"], "peak") - median(base["run"], "peak")
    carried = _carrying(sizes[975]) - _carrying(sizes[25])
    runs = [turns[at : at + _TURNS] for at in range(0, len(turns), _TURNS)]
    # The quickest quarter of each fifty: what else the machine did falls on the others.
    ends = [tuple(statistics.quantiles(part, n=4)[0] for part in (run[:50], run[950:])) for run in runs]
    whole = statistics.median(last / first for first, last in ends)
    ours = statistics.median((last - carried) / first for first, last in ends)
    told = "; ".join(f"{first * 1000:.2f} ms, {last * 1000:.2f} ms" for first, last in ends)
    print(f"\nturns 1-50, and 951-1000 with {sizes[975] / 1e6:.2f} MB: {told}")
    print(f"{whole:.2f}; without the {carried * 1000:.2f} ms of carrying more {ours:.2f}")
    print(f"journal {journal:.1f} MB, memory above the base {grown:.1f} MB: {grown / journal:.2f}")
    assert (whole if most <= 1_000_000 else ours) <= 1.3
    assert grown <= 2 * journal
