"""Ten thousand events in one session: how long they take to show, and how the page scrolls and takes typing.

The figures are printed (`-s`). What is asserted is only that nothing hangs: the machine is not known.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsers import opened
from page_script import Told
from served import served

if TYPE_CHECKING:
    from page_server import PageServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

_SCROLL = """async () => {
  const node = document.getElementById('scroller');
  const frames = [];
  let last = performance.now();
  for (let step = 0; step < 240; step += 1) {
    node.scrollTop -= 220;
    await new Promise((done) => requestAnimationFrame(done));
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames.sort((one, other) => one - other);
}"""
_WATCH_KEYS = """() => {
  window.keys = [];
  document.getElementById('prompt').addEventListener('keydown', (event) => {
    const begin = event.timeStamp;
    requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - begin)));
  });
}"""


def session(events: int) -> Told:
    """A session of that many events: runs of turns that speak in fragments, read, run commands and edit."""
    told = Told()
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    number = 0
    while told.seq < events:
        number += 1
        if number % 10 == 1:
            if told.seq:
                told.ended()
                told.runs += 1
            told.began(f"prompt {number}")
        told.turn(number)
        told.at += 0.3
        words = f"Turn {number}: I look at **file {number}** and its `tests`.\n\n- first\n- second\n\n"
        for at in range(0, len(words), 6):
            told.text(words[at : at + 6])
        told.text_done(words)
        for place, name in enumerate(("shell", "read", "edit")):
            call = f"call_{number}_{place}"
            told.ready(call, name, {"command": f"make {number}"} if name == "shell" else {"path": f"src/{number}.py"})
            for phase in ("submitted", "authorising", "queued", "running"):
                told.moved(call, name, phase)
            told.output(call, name, "line\n" * 30)
            told.settled(call, name, "ok", "line\n" * 200, **({"diff": diff} if name == "edit" else {}))
    return told


def told_of(figures: list[float]) -> str:
    """Return the middle, the 95th hundredth and the worst of sorted milliseconds."""
    return (
        f"p50 {figures[len(figures) // 2]:.0f}, p95 {figures[len(figures) * 95 // 100]:.0f}, worst {figures[-1]:.0f} ms"
    )


def test_ten_thousand_events(browser: Any, serving: PageServer) -> None:
    """Shown after a reload, scrolled through, typed into while more of them come: none of it hangs."""
    told = session(10_000)
    serving.answer = lambda said: (
        [told.hello(), *told.sync(), told.state(), told.approvals()] if said["type"] == "hello" else []
    )
    with opened(browser, serving.url) as page:
        begun = time.monotonic()
        page.locator("body[data-connection='open']").wait_for()
        page.locator(".call").last.wait_for()
        page.locator(".banner.syncing").wait_for(state="detached")
        shown = time.monotonic() - begun
        mounted = page.locator(".item").count()
        idle = typed(page)
        frames = page.evaluate(_SCROLL)
        page.locator(".latest").click()
        more = [told.text("word " * 3, index=7) for _ in range(1500)]
        for at in range(0, len(more), 10):
            serving.say(
                {"type": "events", "session": told.session, "events": [one["event"] for one in more[at : at + 10]]}
            )
        busy = typed(page)
        page.wait_for_timeout(300)
        assert page.locator(".said").last.text_content().count("word") == 4500
        print(f"\n{told.seq} events shown in {shown:.2f} s, {mounted} items in the document")
        print(f"keys: {told_of(idle)}; while events come: {told_of(busy)}; frames of scrolling: {told_of(frames)}")
        assert page.errors == []
    assert shown < 20
    assert mounted <= 400
    assert max(idle[-1], busy[-1], frames[-1]) < 3000


def typed(page: Any) -> list[float]:
    """Type, and return how long each key took until it was drawn, sorted."""
    page.locator("#prompt").fill("")
    page.locator("#prompt").focus()
    page.evaluate(_WATCH_KEYS)
    page.keyboard.type("the quick brown fox jumps over the lazy dog", delay=15)
    page.wait_for_timeout(200)
    return sorted(page.evaluate("window.keys"))


def test_ten_thousand_events_of_a_real_run(browser: Any, tmp_path: Path) -> None:
    """The same through `novacode serve`: every event arrives, and a reload shows the same end."""
    text = "word " * 3000
    turns: list[list[dict[str, Any]]] = [
        [{"text": text, "fragments": 2500}, {"call": "glob", "arguments": {"pattern": f"{n}*"}}] for n in range(4)
    ]
    with served(tmp_path, [*turns, [{"text": "The end."}]]) as server, opened(browser, server.url) as page:
        page.locator('body[data-connection="open"]').wait_for()
        page.locator("#prompt").fill("go")
        page.locator("#prompt").press("Enter")
        page.evaluate(_WATCH_KEYS)
        page.locator("#prompt").press("a")
        page.locator(".ended.good").wait_for(timeout=60_000)
        said = page.locator(".said").all_text_contents()
        assert [one.count("word") for one in said] == [3000] * 4 + [0]
        page.reload()
        page.locator(".ended.good").wait_for()
        assert page.locator(".said").all_text_contents() == said
        assert page.locator(".call").count() == 4
