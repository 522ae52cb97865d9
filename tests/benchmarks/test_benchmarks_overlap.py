"""Calls overlap with the stream that goes on and with each other, and wait only for those they depend on.

With real processes through the real command line; times are those the server sees, so no start is part of them.
"""

import statistics
import subprocess

import pytest
from doubles.replies import anthropic
from instant_server import instant_server
from runs import shell_turn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def _seconds(bench, reply, rounds=7):
    """Return the median of how long a turn takes from the beginning of `reply` to the request with its results."""
    with instant_server(reply, anthropic("Done.")) as server:
        for _ in range(rounds):
            subprocess.run(bench.task(server.url), env=bench.environ, cwd=bench.work, check=True)
        pauses = sum(step for step in reply if not isinstance(step, bytes))
        return statistics.median(server.turns) + pauses


def test_a_command_runs_while_the_model_goes_on_talking(bench):
    """`sleep 2` is complete at once, the model streams for two seconds more: together two seconds, not four."""
    frames = shell_turn(1, "sleep 2")
    ending = frames[-2:]  # what says that the message is over
    reply = [*frames[:-2], 1.0, b": still thinking\n\n", 1.0, *ending]
    taken = _seconds(bench, reply)
    print(f"\n`sleep 2` beside 2 s of stream: {taken:.3f} s, {taken / 2:.2f} times 2 s")
    assert taken <= 1.15 * 2


def test_four_commands_of_one_turn_run_at_once(bench):
    taken = _seconds(bench, shell_turn(1, *["sleep 1"] * 4))
    print(f"\nfour `sleep 1` in one turn: {taken:.3f} s")
    assert taken <= 1.3


def test_an_edit_and_the_test_after_it_run_in_that_order(bench):
    """The command would see the old text if it did not wait for the edit before it; whatever runs, nothing is lost."""
    first = anthropic("", [("tu_0", "read", {"path": "answer.txt"})])
    calls = [
        ("tu_1", "edit", {"path": "answer.txt", "old": "old", "new": "new"}),
        ("tu_2", "shell", {"command": "cat answer.txt >> seen.txt"}),
    ]
    with instant_server(first, anthropic("", calls), anthropic("Done.")) as server:
        for _ in range(7):
            (bench.work / "answer.txt").write_text("old")
            subprocess.run(bench.task(server.url), env=bench.environ, cwd=bench.work, check=True)
    assert (bench.work / "seen.txt").read_text() == "new" * 7
