"""How long a start takes, as a ratio to what nobody can do without: the interpreter, and the libraries alone."""

import subprocess
import sys

import pytest
from doubles.replies import anthropic
from instant_server import instant_server
from stopwatch import alternate, ratio, show

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_LIBRARIES = "import trio, httpx, attrs, cattrs"


_TELLING = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from novacode.__main__ import main
main()
"""


def _imported(bench, *arguments):
    """Return the names of all modules that `novacode` has imported when it ends."""
    command = [sys.executable, "-c", _TELLING, *arguments]
    told = subprocess.run(command, env=bench.environ, cwd=bench.work, capture_output=True, check=True, text=True)
    return set(told.stderr.split())


def test_version_imports_neither_trio_nor_httpx(bench):
    loaded = _imported(bench, "--version")
    assert "novacode._version" in loaded
    assert loaded.isdisjoint({"trio", "httpx", "attrs", "cattrs", "click", "novacode.errors"})


def test_a_task_imports_only_what_it_needs(bench):
    """Each of these took 5 to 60 ms of a start; what brings one back shows here before it shows in a ratio."""
    with instant_server(anthropic("Done.")) as server:
        _, _, _, *arguments = bench.task(server.url)
        loaded = _imported(bench, *arguments)
    assert {"httpx", "novacode.protocols.anthropic"} <= loaded
    others = {"novacode.protocols.gemini", "novacode.protocols.openai_chat", "novacode.protocols.openai_responses"}
    lazy = {"novacode.models.script", "novacode.authority.commands", "novacode.authority.hook_runner"}
    lazy |= {"novacode.workspace.snapshots", "novacode.sessions.fold", "novacode.engine.summary", "novacode.cli.ask"}
    # `sys.modules` has `httpx._main` in place of the real one, which would bring rich.
    outside = {"rich", "pygments", "pathspec", "tomllib", "importlib.metadata", "asyncio", "h2"}
    assert loaded.isdisjoint(others | lazy | outside | {"novacode.workspace.simulated"})


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
