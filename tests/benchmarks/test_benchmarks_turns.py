"""What a turn costs beyond its command, and that it does not grow with the number of turns before it.

The server is the clock: a turn goes from the end of one reply to the arrival of the whole next request. So a start, an
end and the server's own time are no part of it.
"""

import statistics

import pytest
from doubles.replies import anthropic
from instant_server import instant_server
from runs import shell_turn
from stopwatch import alternate, median

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_AIM = 8.0  # milliseconds; a quiet machine takes 1.5 for `bash -c true`
_MOST = 5  # times the command: the aim, as a ratio that holds on a busy machine too


def _turns(bench, number, rounds):
    """Return the seconds of each turn of `rounds` runs of `number` calls of `true`, one a turn; and of `true` alone."""
    replies = [shell_turn(at, "true") for at in range(number)]
    with instant_server(*replies, anthropic("Done.")) as server:
        commands = {
            "run": bench.task(server.url, "--max-turns", str(number + 1)),
            "true": ["/bin/bash", "-c", "true"],
        }
        samples = alternate(commands, rounds, bench.environ, str(bench.work))
        taken = server.turns[number:]  # the first run was to warm up
    assert len(taken) == number * rounds
    return taken, median(samples["true"], "wall")


def test_a_turn_costs_few_milliseconds_beyond_its_command(bench):
    taken, command = _turns(bench, 10, 9)
    beyond = statistics.median(taken) - command
    print(f"\na turn of `true` {statistics.median(taken) * 1000:.1f} ms, `bash -c true` {command * 1000:.1f} ms:")
    print(f"{beyond * 1000:.1f} ms beyond the command, {beyond / command:.1f} times it (aim: under {_AIM:g} ms)")
    assert beyond <= _MOST * command


def test_the_three_hundredth_turn_costs_what_the_first_did(bench):
    taken, _ = _turns(bench, 300, 3)
    runs = [taken[begin : begin + 300] for begin in range(0, 900, 300)]
    first = statistics.median(seconds for run in runs for seconds in run[:50])
    last = statistics.median(seconds for run in runs for seconds in run[-50:])
    print(f"\nfirst 50 turns {first * 1000:.1f} ms each, last 50 {last * 1000:.1f} ms: {last / first:.2f}")
    assert last / first <= 1.2
