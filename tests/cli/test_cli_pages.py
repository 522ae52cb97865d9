"""The pages that a session can be exported as: what is on them, and that they can be looked at on any screen."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from novacode.cli.session_html import session_page
from novacode.cli.timeline_html import timeline_page
from novacode.sessions.loaded import Loaded
from novacode.sessions.timeline import Kind, Lane, Span, Timeline
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId, RunId
from novacode.values.parts import Assistant, BrokenCall, Text, Thinking, ToolCall, User
from novacode.values.results import Outcome, ToolResult

LONG = "x" * 400
CALLS = (
    ToolCall(CallId("c1"), 2, "shell", {"command": f"echo {LONG} <b>"}),
    ToolCall(CallId("c2"), 3, f"tool_{LONG}", {"number": 1}),
    BrokenCall(CallId("c3"), 4, "edit", '{"path": "<', "it was cut off"),
)
RESULTS = (
    ToolResult.of(CALLS[0], Outcome.OK, f"{LONG}\n" * 100, began=True),
    ToolResult.of(CALLS[1], Outcome.UNKNOWN_TOOL, "There is no such tool."),
    ToolResult.of(CALLS[2], Outcome.BROKEN, "It was cut off."),
)
SAID = f"Look at `a<b>.py`:\n\n```python\nif a < b: {LONG}\n```\nand at\n```\nnothing that ends"
EXCHANGE = Exchange(Assistant((Thinking(f"hm {LONG}"), Text(SAID), *CALLS), "demo"), RESULTS)
LOADED = Loaded(History((User.said(f"Do it. {LONG}"), EXCHANGE)), runs=1, model="demo")
LANES = (
    Lane("turn 1", (Span(Kind.ASKED, 0, 0.5), Span(Kind.STREAM, 0.5, 4)), "tool_use"),
    Lane(f"shell {LONG}", (Span(Kind.RUNNING, 1, 5), Span(Kind.STOPPING, 5, 6)), "cancelled"),
)
TIMELINE = Timeline(RunId("s-r1"), f"Do <it>. {LONG}", 0.0, 6.0, LANES, "cancelled", "SIGINT", 5.0)


def test_code_is_told_from_words_and_nothing_becomes_markup() -> None:
    """A fence that never ends is words; what is in one is as it is."""
    page = session_page(LOADED)
    assert "Look at <code>a&lt;b&gt;.py</code>:" in page
    assert f"<pre>if a &lt; b: {LONG}</pre>" in page
    assert '<div class="said">and at\n```\nnothing that ends</div>' in page
    assert set(re.findall(r"<(/?[a-z0-9]+)", page.partition("</style>")[2])) <= {
        *("h1", "/h1", "h2", "/h2", "p", "/p", "div", "/div", "code", "/code", "pre", "/pre", "b", "/b"),
        *("details", "/details", "summary", "/summary", "span", "/span", "/html"),
    }


def test_a_call_can_be_told_without_opening_it() -> None:
    """By what it is about, and how it ended."""
    page = session_page(LOADED)
    assert f'<b>shell</b> <span class="what">echo {"x" * 72}...</span> <span>ok</span>' in page
    assert '<b>edit</b> <span class="what">{&quot;path&quot;: &quot;&lt;</span> <span class="bad">broken</span>' in page


def test_what_a_task_never_did_is_no_number() -> None:
    page = timeline_page(TIMELINE)
    assert "<td>turn 1</td><td>0.500</td><td>3.500</td><td></td><td></td><td>tool_use</td>" in page
    assert "Do &lt;it&gt;." in page


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_no_page_is_wider_than_its_screen_or_loads_anything(tmp_path: Path) -> None:
    """In a real browser, wide and narrow, light and dark, with everything opened."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium here")
    api = pytest.importorskip("playwright.sync_api")
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    screens = list(itertools.product(("session", "timeline"), ("light", "dark"), (1280, 390)))
    (tmp_path / "session.html").write_text(session_page(LOADED))
    (tmp_path / "timeline.html").write_text(timeline_page(TIMELINE))
    asked: list[str] = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        seen = [looked_at(browser, tmp_path / f"{name}.html", *screen, asked) for name, *screen in screens]
        browser.close()
    assert seen == [(width, scheme == "dark") for _, scheme, width in screens]
    assert {url.rpartition("/")[2] for url in asked} == {"session.html", "timeline.html"}


def looked_at(browser: Any, path: Path, scheme: str, width: int, asked: list[str]) -> tuple[int, bool]:
    """Return how wide a page is, and whether it is light on dark."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    ink, paper = (
        sum(map(int, re.findall(r"\d+", page.evaluate(f"getComputedStyle(document.body).{which}"))[:3]))
        for which in ("color", "backgroundColor")
    )
    return page.evaluate("document.documentElement.scrollWidth"), paper < ink
