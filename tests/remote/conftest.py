"""Pages of the remote for tests: a real browser, and a server that says what the test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browsers import chromium, profile, tab
from page_script import Told
from watching import JSON, Watched

if TYPE_CHECKING:
    from page_server import PageServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser, started once for a module."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def serving() -> Iterator[PageServer]:
    """The server of the page, started once for a module."""
    from page_server import page_server  # skips where the packages of the remote are not installed

    with page_server() as server:
        yield server


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    """A profile that the pages of a module share."""
    with profile(browser) as context:
        yield context


@pytest.fixture
def watched(context: Any, serving: PageServer) -> Iterator[Watched]:
    """A page on an empty session; a `hello` is answered with all that was told until then."""
    told = Told()
    replies: dict[str, Callable[[JSON], list[JSON]]] = {}

    def answer(message: JSON) -> list[JSON]:
        if message["type"] in replies:
            return replies[message["type"]](message)
        if message["type"] == "hello":
            return [told.hello(), *told.sync(), told.state(bool(told.events)), told.approvals()]
        return []

    serving.answer = answer
    while not serving.said.empty():
        serving.said.get()
    with tab(context, serving.url) as page:
        page.locator('body[data-connection="open"]').wait_for()
        yield Watched(page, serving, told, replies)
        assert page.errors == []
