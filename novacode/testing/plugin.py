"""The pytest plugin: fixtures for tests of agents, in any project that has NovaCode installed.

Loaded by every run of pytest where NovaCode is installed, so nothing of it is imported before a test wants it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from novacode.testing.agents import NovaAgent
    from novacode.testing.recorder import EventRecorder
    from novacode.testing.tapes import TestTape

__all__: list[str] = []

_CI = ("CI", "CONTINUOUS_INTEGRATION", "BUILD_NUMBER")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tapes."""
    group = parser.getgroup("novacode", "agents (novacode)")
    group.addoption(
        "--novacode-record",
        choices=("once", "never", "all"),
        default=None,
        help="When tapes are recorded: where there is none (default), never (default in CI), or all anew.",
    )
    parser.addini("novacode_tapes", "The folder of tapes, below the one of the test's file.", default="tapes")


@pytest.fixture
def scripted_model() -> Callable[..., Any]:
    """`novacode.testing.scripts.scripted_model`: a model that says what the test has written down."""
    from novacode.testing.scripts import scripted_model

    return scripted_model


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> TestTape:
    """The tape of this test: recorded where there is none yet, replayed from then on, and in CI only replayed."""
    from novacode.testing.tapes import Recording, TestTape

    folder = Path(request.path).parent / str(request.config.getini("novacode_tapes")) / Path(request.path).stem
    name = "".join(char if char.isalnum() or char in "-_" else "-" for char in request.node.name)
    wanted = request.config.getoption("--novacode-record") or ("never" if _in_ci() else "once")
    return TestTape(folder / f"{name}.tape", Recording(wanted))


def _in_ci() -> bool:
    environ = os.environ  # noqa: TID251 - how services that run tests say that they do
    return any(environ.get(name, "").lower() not in ("", "0", "false") for name in _CI)


@pytest.fixture
def nova_agent(request: pytest.FixtureRequest, tmp_path: Path) -> NovaAgent:
    """An agent in a temporary workspace; with the fixture `tape` beside it, one that is recorded or replayed."""
    from novacode.testing.agents import NovaAgent

    taped = "tape" in request.fixturenames
    return NovaAgent(tmp_path, request.getfixturevalue("tape") if taped else None)


@pytest.fixture
def event_recorder() -> EventRecorder:
    """What keeps every event of the buses it watches."""
    from novacode.testing.recorder import EventRecorder

    return EventRecorder()


@pytest.fixture
def assert_paired() -> Callable[[object], None]:
    """`novacode.testing.pairing.assert_paired`: every call has exactly one result."""
    from novacode.testing.pairing import assert_paired

    return assert_paired


@pytest.fixture
def assert_nothing_left() -> Iterator[Callable[[], None]]:
    """Fails where the test has left a process, a thread or a temporary file; once more when the test is over."""
    from novacode.testing.leftovers import Leftovers

    before = Leftovers()

    def check() -> None:
        __tracebackhide__ = True
        if left := before.left():
            pytest.fail("left behind:\n" + "\n".join(f"  {name}" for name in left), pytrace=False)

    yield check
    check()


@pytest.fixture
def every_step(tmp_path: Path) -> Callable[..., Any]:
    """`novacode.testing.steps.every_step`: a scenario, stopped at each of its steps."""
    from functools import partial

    from novacode.testing.steps import every_step

    return partial(every_step, folder=tmp_path)
