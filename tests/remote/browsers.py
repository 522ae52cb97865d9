"""A real Chromium for tests of the page. Tests that want one skip, with the reason, where there is none."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["CHROMIUM", "chromium", "opened", "profile", "tab"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser; yields playwright's `Browser`."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the PATH")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=_QUIET)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """Open a page in a profile of its own. Afterwards: nothing was asked for from elsewhere.

    `page.errors` are the errors of its scripts and on its console.
    """
    with profile(browser, **options) as context, tab(context, url) as page:
        yield page


@contextlib.contextmanager
def profile(browser: Any, **options: Any) -> Iterator[Any]:
    """Give a profile: its pages share cookies and what is cached."""
    options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
    context = browser.new_context(**options)
    try:
        yield context
    finally:
        context.close()


@contextlib.contextmanager
def tab(context: Any, url: str) -> Iterator[Any]:
    """Open a page in a profile, as `opened` does."""
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.errors = []
    page.foreign = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda line: page.errors.append(line.text) if line.type == "error" else None)
    origin = url.split("/")[2]
    page.on("request", lambda asked: None if asked.url.split("/")[2] == origin else page.foreign.append(asked.url))
    try:
        page.goto(url)
        yield page
        assert page.foreign == []
    finally:
        page.close()
