"""Run commands in turn and measure each: wall time, processor time, peak memory.

    samples = alternate({"ours": [...], "theirs": [...]}, rounds=9)
    print(ratio(samples["ours"], samples["theirs"], "wall"))

The measuring is done by this file run as a small process of its own, because the peak memory that the kernel reports
for a child begins at the memory of the process that started it: under a test runner everything would look big.
Commands take turns, so that whatever else the machine does falls on all of them; what is compared is medians.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time

__all__ = ["Samples", "alternate", "median", "ratio", "show"]

Samples = dict[str, list[float]]
"""`wall` and `cpu` in seconds, `peak` in MB: one value a round."""


def alternate(
    commands: dict[str, list[str]],
    rounds: int = 9,
    environ: dict[str, str] | None = None,
    cwd: str | None = None,
    warm_up: int = 1,
    clear: str = "",
) -> dict[str, Samples]:
    """Run every command `rounds` times, in turn, after `warm_up` rounds that do not count.

    The folder `clear` is removed before each: what earlier rounds have left to be written to the disk would make the
    kernel slow down later ones.

    A command that fails is an error: a quick failure would look like a fast success.
    """
    wish = {"commands": commands, "rounds": rounds, "warm_up": warm_up, "clear": clear}
    done = subprocess.run(
        [sys.executable, "-I", "-S", __file__],
        input=json.dumps(wish).encode(),
        stdout=subprocess.PIPE,
        env=environ,
        cwd=cwd,
        check=True,
    )
    answer: dict[str, Samples] = json.loads(done.stdout)
    return answer


def median(samples: Samples, what: str) -> float:
    """Return the median of one kind of value."""
    return statistics.median(samples[what])


def ratio(ours: Samples, theirs: Samples, what: str) -> float:
    """Return how many times as much of `what` ours takes."""
    return median(ours, what) / median(theirs, what)


def show(samples: dict[str, Samples], base: str) -> None:
    """Print the medians of all commands, and in brackets how many times those of `base` they are."""
    print()
    for name, taken in samples.items():
        values = "".join(
            f"{median(taken, what) * scale:9.1f} {unit} ({ratio(taken, samples[base], what):5.2f})"
            for what, scale, unit in (("wall", 1000, "ms"), ("cpu", 1000, "ms cpu"), ("peak", 1, "MB"))
        )
        print(f"{name:12}{values}")


def _measure(name: str, command: list[str]) -> tuple[float, float, float]:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    if status != 0:
        raise SystemExit(f"{name} ended with {os.waitstatus_to_exitcode(status)}: {command}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / unit


def _main() -> None:
    wish = json.load(sys.stdin)
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in wish["commands"]}
    for _ in range(wish["warm_up"] + wish["rounds"]):
        for name, command in wish["commands"].items():
            if wish["clear"]:
                shutil.rmtree(wish["clear"], ignore_errors=True)
            taken[name].append(_measure(name, command))
    found = {}
    for name, values in taken.items():
        wall, cpu, peak = zip(*values[wish["warm_up"] :], strict=True)
        found[name] = {"wall": wall, "cpu": cpu, "peak": peak}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    _main()
