"""What a command with a great deal of output costs: memory that does not grow, and little more than a pipe takes."""

import pytest
from doubles.replies import anthropic
from instant_server import instant_server
from runs import shell_turn
from stopwatch import alternate, median, show

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_SIZE = 50 << 20
_LINE = b"all work and no play makes jack a dull boy\n"


def _measured(bench):
    (bench.work / "big.txt").write_bytes((_LINE * (_SIZE // len(_LINE) + 1))[:_SIZE])
    spilled = bench.root / "home" / "spill"
    done = anthropic("Done.")
    with (
        instant_server(shell_turn(1, "true"), done) as small,
        instant_server(shell_turn(1, "cat big.txt"), done) as big,
    ):
        commands = {
            "pipe": ["/bin/sh", "-c", "cat big.txt | cat > /dev/null"],
            "pipe, kept": ["/bin/sh", "-c", f"mkdir -p {spilled} && cat big.txt | tee {spilled}/kept > /dev/null"],
            "run, true": bench.task(small.url),
            "run, 50 MB": bench.task(big.url),
        }
        samples = alternate(commands, 11, bench.environ, str(bench.work), warm_up=2, clear=str(spilled))
        samples["turn, true"] = samples["run, true"] | {"wall": small.turns[2:]}
        samples["turn, 50 MB"] = samples["run, 50 MB"] | {"wall": big.turns[2:]}
    show(samples, "pipe")
    return samples


def test_fifty_megabytes_of_output_cost_neither_memory_nor_much_time(bench):
    """The time is that of the turn: from the reply that asks for the command to the request that has its result.

    The turn keeps all bytes in a file, as its result says; a pipe that does so too is measured beside it.
    """
    samples = _measured(bench)
    assert median(samples["run, 50 MB"], "peak") - median(samples["run, true"], "peak") <= 10
    beyond = median(samples["turn, 50 MB"], "wall") - median(samples["turn, true"], "wall")
    plain, kept = median(samples["pipe"], "wall"), median(samples["pipe, kept"], "wall")
    print(f"{beyond * 1000:.1f} ms beyond a turn of `true`: {beyond / plain:.2f} pipes, {beyond / kept:.2f} that keep")
    assert beyond <= 2 * plain
