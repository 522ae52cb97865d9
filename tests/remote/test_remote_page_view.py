"""The page of the remote, in a real Chromium: what is drawn, and whether everybody can see, reach and read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from browsers import opened
from page_script import Told
from watching import Watched

if TYPE_CHECKING:
    from page_server import PageServer


def test_a_call_tells_what_it_does_and_what_came_of_it(watched: Watched) -> None:
    """Running with its output, denied and not run, failed with its code: each in words, not by colour alone."""
    page, told = watched.page, watched.told
    watched.say(
        told.began(),
        told.state(),
        told.turn(),
        told.ready("c1", "shell", {"command": "make"}),
        told.moved("c1", "shell", "running"),
        told.output("c1", "shell", "compiling\n"),
        told.ready("c2", "write", {"path": "a.txt", "content": "x"}),
        told.settled("c2", "write", "denied", 'Permission denied. They said: "not now". Nothing was executed.'),
    )
    card = page.locator('[data-call="c1"]')
    card.locator(".state", has_text="running").wait_for()
    assert "compiling" in card.locator(".preview").text_content()
    denied = page.locator('[data-call="c2"]')
    assert denied.locator(".state").text_content() == "denied, not run"
    assert "Nothing was executed" in denied.locator(".preview").text_content()
    watched.say(told.settled("c1", "shell", "error", "compiling\nbad\n", exit_code=2))
    card.locator(".state", has_text="failed, exit code 2").wait_for()


@pytest.mark.slow
def test_diffs_have_signs_and_long_output_is_folded(watched: Watched) -> None:
    """Plus and minus are text; of a long output the ends are shown, and all of it on demand."""
    page, told = watched.page, watched.told
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n+--- three\n"
    watched.say(
        told.began(),
        told.state(),
        told.turn(),
        told.ready("c1", "edit", {"path": "x.py"}),
        told.settled("c1", "edit", "ok", "edited", diff=diff),
        told.ready("c2", "shell", {"command": "seq"}),
        told.settled("c2", "shell", "ok", "\n".join(map(str, range(5000)))),
    )
    rows = page.locator('[data-call="c1"] .preview .line')
    rows.first.wait_for()
    assert [row.text_content() for row in rows.all()] == [
        "--- a/x.py",
        "+++ b/x.py",
        "@@ -1,3 +1,3 @@",
        " one",
        "−two",
        "+2",
        "+--- three",
    ]
    assert page.locator('[data-call="c1"] .size').text_content() == "+2 −1"
    card = page.locator('[data-call="c2"]')
    card.locator(".opener").click()
    output = card.locator(".output")
    assert len(output.text_content()) < 400
    output.get_by_role("button", name="Show 4,976 more lines").click()
    assert output.text_content().count("2500") == 1
    assert card.locator(".opener").get_attribute("aria-expanded") == "true"


@pytest.mark.slow
def test_a_dropped_attempt_takes_back_what_was_drawn(watched: Watched) -> None:
    """What a reply that failed had said goes, and a notice says why."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state(), told.turn(), told.text("half an ans"))
    page.locator(".said", has_text="half an ans").wait_for()
    failure = {"kind": "overloaded", "message": "busy", "retryable": True}
    watched.say(
        told.event("attempt_dropped", failure=failure, attempt=1, delay=1.5),
        told.text("whole"),
        told.text_done("whole"),
    )
    page.locator(".notice", has_text="Again in 1.5 s.").wait_for()
    page.locator(".said", has_text="whole").wait_for()
    assert page.locator(".said").count() == 1


@pytest.mark.slow
def test_sessions_are_listed_and_switched(watched: Watched) -> None:
    """The list says what runs and asks; another one takes the place of what was shown, and its address."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state(), told.turn(), told.text("mine"))
    page.locator(".said", has_text="mine").wait_for()
    other = Told(session="s-other", title="<b>Other</b> work")
    watched.say({"type": "sessions", "items": [told.listed(running=True), other.listed(approvals=2)]})
    page.locator("#sessions .badge.ask", has_text="2 questions").wait_for()
    watched.replies["open"] = lambda said: [
        *[other.began("other prompt"), other.turn(), other.text_done("theirs")][:0],
        other.hello(),
        *other.sync(),
        other.state(False),
        other.approvals(),
    ]
    page.locator("#sessions button", has_text="Other").click()
    assert watched.server.next("open")["session"] == "s-other"
    page.locator(".said", has_text="theirs").wait_for()
    watched.say(told.text(" and late"))
    page.locator("#title", has_text="<b>Other</b> work").wait_for()
    assert page.locator(".said").all_text_contents() == ["theirs"]
    assert page.url.endswith("#s-other")
    assert page.locator('#sessions [aria-current="true"]').text_content().startswith("<b>Other</b> work")


@pytest.mark.slow
def test_rewinding_shows_first_and_does_exactly_that(watched: Watched) -> None:
    """The preview names every path; what is done names the preview."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.ended(), told.state(False))
    item = {
        "path": "/p/<i>a.py",
        "verdict": "restore",
        "chosen": True,
        "now": "file",
        "target": "file",
        "calls": ["c1"],
        "why": "",
    }
    watched.replies["rewind"] = lambda said: [
        {
            "type": "rewound",
            "session": told.session,
            "rewind": "rewind-1",
            "done": ["/p/<i>a.py"],
            "failed": {},
            "keptFolders": [],
        }
        if "preview" in said
        else {
            "type": "rewind_preview",
            "session": told.session,
            "preview": "9f",
            "title": "before run 1",
            "items": [item],
            "refusals": [],
            "notCovered": {},
        }
    ]
    page.locator(".prompt").hover()
    page.get_by_role("button", name="Rewind files").click()
    page.locator("dialog code", has_text="/p/<i>a.py").wait_for()
    assert watched.server.next("rewind") | {"ref": ""} == {"type": "rewind", "run": told.run, "ref": ""}
    page.get_by_role("button", name="Put back 1 path").click()
    assert watched.server.next("rewind")["preview"] == "9f"
    page.locator("dialog", has_text="1 path put back.").wait_for()


@pytest.mark.slow
def test_mode_and_limits_are_shown_and_set(watched: Watched) -> None:
    """What a run may do is on the page, and can be changed there; a refusal is told where it was asked."""
    page, told = watched.page, watched.told
    watched.say(told.state(False, mode="plan"))
    page.locator("#mode", has_text="Plan").click()
    page.get_by_label("Ask asks before").check()
    page.get_by_label("Turns").fill("0")
    watched.replies["settings"] = lambda said: [
        {"type": "error", "code": "bad_settings", "text": "`maxTurns` is 0", "fatal": False}
    ]
    page.get_by_role("button", name="Save").click()
    page.locator("dialog .problem", has_text="`maxTurns` is 0").wait_for()
    page.get_by_label("Turns").fill("20")
    watched.replies["settings"] = lambda said: [told.state(False, limits=said["limits"])]
    page.get_by_role("button", name="Save").click()
    page.locator("dialog#settings").wait_for(state="hidden")
    watched.server.next("settings")
    last = watched.server.next("settings")
    assert (last["mode"], last["limits"]["maxTurns"], last["limits"]["maxSeconds"]) == ("default", 20, None)
    page.locator("#mode", has_text="Ask · limits").wait_for()


@pytest.mark.slow
def test_the_time_line_has_a_lane_for_each_task(watched: Watched) -> None:
    """Streams and calls, with what they did; the same in numbers."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state(), told.turn(), told.event("started"))
    told.at = 1.0
    watched.say(told.ready("c1", "shell", {"command": "make"}), told.moved("c1", "shell", "running"))
    told.at = 3.0
    watched.say(
        told.settled("c1", "shell", "ok", ""), told.event("finished", stop="tool_use"), told.ended(), told.state(False)
    )
    page.get_by_role("button", name="Time-line", exact=True).click()
    page.locator("svg.lanes .span.running").wait_for()
    page.locator(".numbers summary").click()
    rows = page.locator(".numbers tr").all_text_contents()
    assert [re.sub(r"\s+", " ", row) for row in rows] == [
        "turn 1the model answers 3.00 stool use",
        "shell c1waiting 0.00 s, running 2.00 sok" if "waiting 0.00" in rows[1] else "shell c1running 2.00 sok",
    ]


@pytest.mark.slow
def test_the_page_can_be_used_by_its_names(watched: Watched) -> None:
    """Every control has a name, regions that scroll can be reached by the keyboard, and focus is seen."""
    page, told = watched.page, watched.told
    watched.say(
        told.began(),
        told.state(),
        told.turn(),
        told.ready("c1", "shell", {"command": "make"}),
        told.moved("c1", "shell", "running"),
    )
    watched.asks(told.question(1, "c2", "shell", {"command": "ls"}, rule="shell(ls)"))
    watched.answers().first.wait_for()
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea, select, a')]
          .filter((one) => one.offsetParent !== null)
          .filter((one) => !(one.innerText?.trim() || one.getAttribute('aria-label') || one.labels?.length))
          .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.response || document.activeElement.id"))
    assert {"allow", "allowSession", "allowAlways", "deny", "prompt"} <= set(reached)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser: Any, serving: PageServer, scheme: str) -> None:
    """Every visible text has a contrast of at least 4.5 to what is behind it, in both schemes."""
    told = Told()
    (
        told.began("do it"),
        told.turn(),
        told.text_done("Said with `code` and [a link](https://a.example).\n\n> quote\n\n```py\nx\n```"),
    )
    (
        told.ready("c1", "shell", {"command": "make"}),
        told.moved("c1", "shell", "running"),
        told.output("c1", "shell", "out"),
    )
    (
        told.ready("c2", "edit", {"path": "x"}),
        told.settled("c2", "edit", "ok", "ok", diff="--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n"),
    )
    told.ready("c3", "shell", {"command": "x"}), told.settled("c3", "shell", "denied", "no")
    told.event("notice", level="warning", text="careful")
    question = told.question(1, "c4", "shell", {"command": "ls \u200b"}, rule="shell(ls)", storedIn="x.toml")
    listed = {"type": "sessions", "items": [told.listed(running=True), Told(session="s-2").listed(approvals=1)]}
    serving.answer = lambda said: (
        [told.hello(), *told.sync(), told.state(locked="process 1"), told.approvals(question), listed]
        if said["type"] == "hello"
        else []
    )
    with opened(browser, serving.url, color_scheme=scheme, viewport={"width": 1280, "height": 2600}) as page:
        page.locator(".answers button:enabled").first.wait_for()
        page.get_by_role("button", name="Time-line", exact=True).click()
        page.locator("svg.lanes .span").first.wait_for()
        assert page.evaluate(_CONTRAST) == []


_CONTRAST = """() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return { r, g, b, a }; };
  const light = ({ r, g, b }) => { const [x, y, z] = [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const ground = (node) => { for (let one = node; one; one = one.parentElement) {
    const colour = parse(getComputedStyle(one).backgroundColor);
    if (colour.a > 0.99) return colour; }
    return { r: 255, g: 255, b: 255 }; };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    const seen = node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!text.data.trim() || !seen || node.closest('.hidden, :disabled')) continue;
    const style = getComputedStyle(node);
    const ink = light(parse(node.closest('svg') ? style.fill : style.color));
    const paper = light(ground(node));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const name = node.className?.baseVal ?? node.className;
    if (contrast < 4.5) weak.push(`${contrast.toFixed(2)} ${name} ${text.data.trim().slice(0, 40)}`);
  }
  return weak;
}"""


@pytest.mark.slow
def test_a_narrow_screen_shows_all_of_it(browser: Any, serving: PageServer) -> None:
    """At 390 pixels nothing is cut off sideways, sessions come out of a drawer, and questions can be answered."""
    told = Told()
    told.began("x" * 300), told.turn(), told.text_done("```\n" + "y" * 500 + "\n```\n\n" + "z" * 400)
    (
        told.ready("c1", "shell", {"command": "w" * 300}),
        told.moved("c1", "shell", "running"),
        told.output("c1", "shell", "v" * 700),
    )
    question = told.question(
        1, "c4", "shell", {"command": "u" * 900}, rule="shell(" + "u" * 300 + ")", storedIn="/t" * 100
    )
    serving.answer = lambda said: (
        [told.hello(), *told.sync(), told.state(), told.approvals(question)] if said["type"] == "hello" else []
    )
    with opened(browser, serving.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as page:
        page.locator(".answers button:enabled").first.wait_for()
        wide = page.evaluate(
            """() => [...document.querySelectorAll('main *')]
                 .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > 391
                 && !one.closest('pre, .lines, .summary')).map((one) => `${one.tagName} ${one.className}`)"""
        )
        assert wide == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        for button in page.locator(".answers button").all():
            assert button.bounding_box()["height"] >= 40
        page.get_by_role("button", name="Sessions").click()
        page.get_by_role("button", name="New session").wait_for()
        page.keyboard.press("Escape")
        page.locator("body:not(.drawer)").wait_for()
        assert page.errors == []
