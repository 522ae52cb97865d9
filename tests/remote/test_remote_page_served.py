"""The page with a real `novacode serve` behind it, driven in a real Chromium. Everything is real but the model."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
from browsers import opened
from doubles.os_processes import alive, unique
from served import Served, served

pytestmark = pytest.mark.timeout(120)


def ask(page: Any, text: str) -> None:
    """Write a prompt and send it, once the page is connected: before that Enter leaves the text where it is."""
    page.locator('body[data-connection="open"]').wait_for()
    page.locator("#prompt").fill(text)
    page.locator("#prompt").press("Enter")


def calls(command: str, says: str = "") -> list[dict[str, Any]]:
    """Return the steps of a reply that runs `command`."""
    return [*([{"text": says}] if says else []), {"call": "shell", "arguments": {"command": command}}]


def eventually(true: Any, seconds: float = 15.0) -> None:
    """Wait until `true()`; fail where it does not come to be."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it has not come to be"
        time.sleep(0.02)


def test_a_prompt_streams_and_a_question_is_answered(browser: Any, tmp_path: Path) -> None:
    """The whole way: token, prompt, streamed answer, question, allowed, done; nothing was run before the answer."""
    turns = [calls("touch made.txt", "I will **make** it."), [{"text": "Made."}]]
    with served(tmp_path, turns) as server, opened(browser, server.url) as page:
        page.locator('body[data-connection="open"]').wait_for()
        assert "token" not in page.url
        ask(page, "make it")
        page.locator(".said strong", has_text="make").wait_for()
        assert "touch made.txt" in page.locator(".question .what").text_content()
        assert not (server.folder / "made.txt").exists()
        page.get_by_role("button", name="Allow once").click()
        page.locator(".ended", has_text="Done").wait_for()
        assert (server.folder / "made.txt").exists()
        assert page.locator(".call .state").text_content().startswith("done")
        assert page.locator(".question").count() == 0
        # The server may not be let in without the cookie, so the console has the 401 of the first visit and no more.
        assert [error for error in page.errors if "401" not in error] == []
        assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]


@pytest.mark.slow
def test_a_denied_call_is_visibly_not_run(browser: Any, tmp_path: Path) -> None:
    """The card says that it was not run, and why; there is no file."""
    turns = [calls("touch made.txt"), [{"text": "Then not."}]]
    with served(tmp_path, turns) as server, opened(browser, server.url) as page:
        ask(page, "make it")
        page.locator(".answers input").fill("not today")
        page.get_by_role("button", name="Deny").click()
        page.locator(".ended", has_text="1 denied").wait_for()
        assert page.locator(".call .state").text_content() == "denied, not run"
        assert "not today" in page.locator(".call .preview").text_content()
        assert not (server.folder / "made.txt").exists()


@pytest.mark.slow
def test_stopping_leaves_nothing_and_a_new_run_starts_at_once(browser: Any, tmp_path: Path) -> None:
    """A tool with a grandchild in a session of its own is stopped from the page: nothing of it is alive at the end."""
    token = unique()
    command = f"echo begun; setsid sleep {token} & sleep {token}"
    turns = [calls(command), [{"text": "A new run."}]]
    with served(tmp_path, turns, "--yolo") as server, opened(browser, server.url) as page:
        ask(page, "go")
        page.locator(".call .preview", has_text="begun").wait_for()
        eventually(lambda: sum("setsid" not in line and line.startswith("sleep") for line in alive(token)) == 2)
        page.get_by_role("button", name="Stop", exact=True).click()
        page.locator(".ended", has_text="Nothing is left running.").wait_for()
        assert alive(token) == []
        assert page.locator(".call .state").text_content().startswith("stopped")
        ask(page, "again")
        page.locator(".said", has_text="A new run.").wait_for()
        page.locator(".ended.good").wait_for()


@pytest.mark.slow
def test_a_reload_in_the_middle_of_a_question_changes_nothing(browser: Any, tmp_path: Path) -> None:
    """After a reload, and in another browser, the question is there, whole, and its answer counts."""
    turns = [calls("touch made.txt", "First this."), [{"text": "Made."}]]
    with served(tmp_path, turns) as server, opened(browser, server.url) as page:
        ask(page, "make it")
        page.locator(".question").wait_for()
        asked = page.locator(".question").get_attribute("data-approval")
        page.reload()
        page.locator(".question").wait_for()
        assert page.locator(".question").get_attribute("data-approval") == asked
        assert page.locator(".said").text_content() == "First this."
        assert page.locator(".prompt .words").text_content() == "make it"
        page.get_by_role("button", name="Allow once").click()
        page.locator(".ended", has_text="Done").wait_for()
        assert (server.folder / "made.txt").exists()
        assert page.locator(".call").count() == 1


@pytest.mark.slow
def test_br_060_two_browsers_answer_at_once(browser: Any, tmp_path: Path) -> None:
    """One allows and one denies in the same moment: one answer counts, both see the same end, nothing runs twice."""
    turns = [calls("echo x >> once.txt"), [{"text": "End."}]]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(served(tmp_path, turns))
        one = stack.enter_context(opened(browser, server.url))
        ask(one, "go")
        one.locator(".answers button:enabled").first.wait_for()
        two = stack.enter_context(opened(browser, server.url))
        two.locator(".answers button:enabled").first.wait_for()
        soon = "(word) => setTimeout(() => document.querySelector(`[data-response=${word}]`).click(), 60)"
        one.evaluate(soon, "allow")
        two.evaluate(soon, "deny")
        ends = []
        for page in (one, two):
            page.locator(".ended").wait_for()
            assert page.locator(".question").count() == 0
            ends.append(page.locator(".call .state").text_content().split(" ·")[0])
        assert ends[0] == ends[1]
        ran = (server.folder / "once.txt").exists()
        assert ends[0] == ("done" if ran else "denied, not run")
        if ran:
            assert (server.folder / "once.txt").read_text() == "x\n"
        loser = two if ran else one
        loser.locator(".toast").wait_for()


@pytest.mark.slow
def test_br_061_a_server_that_was_killed_and_started_again(browser: Any, tmp_path: Path) -> None:
    """The page finds it again by itself; the old question is no longer valid, and a new run works."""
    turns = [calls("touch made.txt"), [{"text": "After that."}], [{"text": "More."}]]
    with served(tmp_path, turns) as server, opened(browser, server.url) as page:
        ask(page, "make it")
        page.locator(".answers button:enabled").first.wait_for()
        server.end(kill=True)
        page.locator(".banner.connection", has_text="No connection").wait_for()
        assert page.locator(".answers button:enabled").count() == 0
        server.start()
        page.locator('body[data-connection="open"]').wait_for()
        page.locator(".toast", has_text="no longer valid").wait_for()
        assert page.locator(".question").count() == 0
        ask(page, "and now?")
        page.locator(".ended").last.wait_for()
        page.locator(".prompt .words", has_text="and now?").wait_for()
        assert not (server.folder / "made.txt").exists()
        assert page.locator(".call .state").first.text_content() not in ("running", "waits for an answer")


@pytest.mark.slow
def test_another_token_shows_the_page_that_takes_one(browser: Any, tmp_path: Path) -> None:
    """A browser that is not known any more is asked for the token, and is where it was once it has given it."""
    turns = [[{"text": "Reply."}]]
    with served(tmp_path, turns) as server, opened(browser, server.url) as page:
        ask(page, "first prompt")
        page.locator(".ended").wait_for()
        server.end()
        (tmp_path / "token").unlink()
        server.start()
        page.get_by_label("Token").fill(server.url.rpartition("=")[2])
        page.get_by_role("button", name="Enter").click()
        page.locator(".prompt .words", has_text="first prompt").wait_for()


@pytest.mark.slow
def test_a_session_can_be_left_and_found_again(browser: Any, tmp_path: Path) -> None:
    """A new session, and back: each has its own conversation, and its own address."""
    turns = [[{"text": "Reply one."}], [{"text": "Reply two."}]]
    with served(tmp_path, turns) as server, opened(browser, server.url) as page:
        page.locator('body[data-connection="open"]').wait_for()
        ask(page, "first prompt")
        page.locator(".ended").wait_for()
        first = page.url
        page.get_by_role("button", name="New session").click()
        page.locator(".welcome").wait_for()
        ask(page, "second prompt")
        page.locator(".ended").wait_for()
        assert page.url != first
        assert page.locator(".prompt .words").all_text_contents() == ["second prompt"]
        page.get_by_role("button", name="first prompt").click()
        page.locator(".prompt .words", has_text="first prompt").wait_for()
        assert page.url == first
        page.go_back()
        page.locator(".prompt .words", has_text="second prompt").wait_for()
        page.goto(f"{server.url.partition('#')[0]}#s-that-is-not-there")
        page.locator(".toast", has_text="there is no session").wait_for()
        page.locator(".prompt .words").wait_for()
        page.reload()
        page.locator(".prompt .words").wait_for()


@pytest.mark.slow
def test_files_are_put_back_from_the_page(browser: Any, tmp_path: Path) -> None:
    """The preview names the file that a run has made; afterwards it is gone."""
    turns: list[Any] = [[{"call": "write", "arguments": {"path": "a.txt", "content": "one\n"}}], [{"text": "Written."}]]
    with served(tmp_path, turns, "--permission-mode", "accept-edits") as server, opened(browser, server.url) as page:
        ask(page, "write it")
        page.locator(".ended").wait_for()
        assert (server.folder / "a.txt").exists()
        page.locator(".prompt").hover()
        page.get_by_role("button", name="Rewind files").click()
        page.locator("dialog code", has_text="a.txt").wait_for()
        page.get_by_role("button", name="Put back").click()
        page.locator("dialog", has_text="1 path put back.").wait_for()
        assert not (server.folder / "a.txt").exists()


@pytest.mark.slow
def test_hostile_texts_from_a_real_run(browser: Any, tmp_path: Path) -> None:
    """Markup as model text, tool output, file name, argument and session title: shown, and nothing of it acts."""
    evil = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
    name = "<img src=x onerror=window.hit=1>.txt"
    steps: list[Any] = [
        {"text": f"{evil}\n\n[x](javascript:window.hit=1)"},
        {"call": "write", "arguments": {"path": name, "content": evil}},
        {"call": "shell", "arguments": {"command": "cat *.txt"}},
    ]
    with served(tmp_path, [steps, [{"text": "End."}]], "--yolo") as server, opened(browser, server.url) as page:
        ask(page, evil)
        page.locator(".ended").wait_for()
        for opener in page.locator(".opener").all():
            opener.click()
        page.locator("#sessions button", has_text="<img src=x").wait_for()
        assert page.evaluate("window.hit") is None
        assert page.locator("main img, main script, .said a").count() == 0
        assert page.locator("#title").text_content().startswith("<img src=x")
        assert os.path.exists(server.folder / name)


@pytest.mark.slow
def test_the_page_to_play_with(browser: Any, tmp_path: Path) -> None:
    """`--model demo --simulate`: stop while the question is open; the file is not written, and the next run works."""
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    server = Served(tmp_path / "work", tmp_path / "home", ("--model", "demo", "--simulate"))
    server.start()
    try:
        with opened(browser, server.url) as page:
            page.locator(".banner.simulate").wait_for()
            ask(page, "go")
            page.locator(".question", has_text="notes.txt").wait_for()
            page.get_by_role("button", name="Stop", exact=True).click()
            page.locator(".ended", has_text="Stopped").wait_for()
            page.locator(".question.old", has_text="No longer valid").wait_for()
            ask(page, "and now?")
            page.locator(".question.old").get_by_role("button", name="Allow once").click()
            page.locator(".toast").wait_for()
            page.locator(".question").wait_for(state="detached")
            page.locator(".ended.good").wait_for()
            read = page.locator(".call", has_text="read")
            read.locator(".opener").click()
            assert read.locator(".state").text_content().startswith("failed")
            assert list(server.folder.iterdir()) == []
    finally:
        server.end()
