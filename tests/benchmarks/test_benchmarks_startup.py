"""How long a start takes, as a ratio to what nobody can do without: the interpreter, and the libraries alone."""

import subprocess
import sys

import pytest
from doubles.replies import anthropic
from instant_server import instant_server
from stopwatch import alternate, ratio, show

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_LIBRARIES = "import trio, httpx, attrs, cattrs"


def test_version_imports_neither_trio_nor_httpx(bench):
    loads = [sys.executable, "-X", "importtime", "-m", "novacode", "--version"]
    told = subprocess.run(loads, env=bench.environ, capture_output=True, check=True, text=True)
    loaded = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert "novacode._version" in loaded
    assert loaded.isdisjoint({"trio", "httpx", "attrs", "cattrs", "click", "novacode.errors"})


def test_version_is_as_fast_as_the_interpreter(bench):
    commands = {"bare": [sys.executable, "-c", "pass"], "--version": [sys.executable, "-m", "novacode", "--version"]}
    samples = alternate(commands, rounds=21, environ=bench.environ, cwd=str(bench.work))
    show(samples, "bare")
    assert ratio(samples["--version"], samples["bare"], "wall") <= 3


def test_a_task_of_one_turn_takes_little_more_than_its_libraries(bench):
    with instant_server(anthropic("Done.")) as server:
        commands = {"libraries": [sys.executable, "-c", _LIBRARIES], "one turn": bench.task(server.url)}
        samples = alternate(commands, rounds=15, environ=bench.environ, cwd=str(bench.work), warm_up=2)
    show(samples, "libraries")
    assert ratio(samples["one turn"], samples["libraries"], "wall") <= 1.3
    assert ratio(samples["one turn"], samples["libraries"], "peak") <= 1.3
