"""The page of the remote, in a real Chromium: runs, questions and answers, losing the connection, hostile texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from watching import Watched


def test_a_prompt_goes_out_and_the_answer_streams_in(watched: Watched) -> None:
    """Enter sends, Shift+Enter does not; text that grows is drawn as Markdown, and the run's end is told."""
    page, told = watched.page, watched.told
    watched.replies["prompt"] = lambda asked: [
        {"type": "receipt", "re": "prompt", "session": told.session, "runId": told.run},
        told.began(asked["text"]),
        told.state(),
        told.turn(),
    ]
    page.locator("#prompt").fill("mend")
    page.locator("#prompt").press("Shift+Enter")
    page.locator("#prompt").type("it")
    page.locator("#prompt").press("Enter")
    assert watched.server.next("prompt")["text"] == "mend\nit"
    page.locator(".prompt .words", has_text="mend\nit").wait_for()
    assert page.locator("#prompt").input_value() == ""
    watched.say(told.text("It is **do"), told.text("ne** now"))
    page.locator(".said strong", has_text="done").wait_for()
    watched.say(told.text_done("It is **done** now."), told.ended(), told.state(False))
    page.locator(".ended", has_text="Done").wait_for()
    assert page.locator(".said").text_content() == "It is done now."
    assert page.locator(".stop").is_hidden()


_SHELL = {"command": "rm -r build \u202e&& curl https://x.example/\u200b"}


def test_a_question_shows_exactly_what_will_run_and_its_answer_names_it(watched: Watched) -> None:
    """Nothing in the command can hide, the rule that "always" would store is there, and the ids come back."""
    page, told = watched.page, watched.told
    question = told.question(
        1,
        "call_1",
        "shell",
        _SHELL,
        commands=["rm -r build", "curl https://x.example/"],
        rule="shell(rm -r build)\nshell(curl https://x.example/)",
        storedIn="/home/me/rules.toml",
    )
    watched.say(
        told.began(), told.state(), told.ready("call_1", "shell", _SHELL), told.moved("call_1", "shell", "asking")
    )
    watched.asks(question)
    shown = page.locator(".question .exact").text_content()
    assert shown == r"rm -r build \u202e&& curl https://x.example/\u200b"
    assert page.locator(".question .exact .escape").count() == 2
    assert page.locator(".question .rule").text_content().count("shell(") == 2
    assert "/home/me/rules.toml" in page.locator(".question .rule").text_content()
    assert page.evaluate("document.activeElement.className") == "question"
    watched.replies["permission_response"] = lambda said: [
        {"type": "receipt", "re": "permission_response", "id": said["id"], "runId": said["runId"], "decision": "allow"},
        told.approvals(),
    ]
    page.get_by_role("button", name="Always").click()
    said = watched.server.next("permission_response")
    assert (said["id"], said["runId"], said["response"]) == (f"{told.run}-a1", told.run, "allowAlways")
    assert "rule" not in said
    page.locator(".question").wait_for(state="detached")
    assert page.locator(".toast").count() == 0


@pytest.mark.slow
def test_every_answer_has_its_word(watched: Watched) -> None:
    """Once, this session, always with another rule, and no with words; Enter in the field of words says no."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    watched.replies["permission_response"] = lambda said: [
        {"type": "receipt", "re": "permission_response", "id": said["id"], "runId": said["runId"], "decision": "allow"},
        told.approvals(),
    ]
    said = []
    acts: list[Callable[[], Any]] = [
        page.get_by_role("button", name="Allow once").click,
        page.get_by_role("button", name="This session").click,
        lambda: (
            page.locator(".rule summary").click(),
            page.locator(".rule textarea").fill("shell(ls *)"),
            page.get_by_role("button", name="Always").click(),
        ),
        lambda: (
            page.locator(".answers input").fill("not now"),
            watched.answers().first.wait_for(),
            page.locator(".answers input").press("Enter"),
        ),
    ]
    for number, act in enumerate(acts, start=1):
        watched.asks(told.question(number, f"call_{number}", "shell", {"command": "ls"}, rule="shell(ls)"))
        page.locator(f'[data-approval$="-a{number}"]').wait_for()
        act()
        one = watched.server.next("permission_response")
        said.append((one["response"], one.get("rule"), one.get("reason")))
        page.locator(".question").wait_for(state="detached")
    assert said == [
        ("allow", None, None),
        ("allowSession", None, None),
        ("allowAlways", "shell(ls *)", None),
        ("deny", None, "not now"),
    ]


def test_br_059_each_question_has_its_own_buttons(watched: Watched) -> None:
    """Two wait: the button of the second answers the second, and the first stays."""
    page, told = watched.page, watched.told
    one, two = (told.question(n, f"call_{n}", "shell", {"command": f"touch {n}"}) for n in (1, 2))
    watched.say(told.began(), told.state())
    watched.asks(one, two)
    watched.replies["permission_response"] = lambda said: [
        {"type": "receipt", "re": "permission_response", "id": said["id"], "runId": said["runId"], "decision": "allow"},
        told.approvals(one),
    ]
    page.locator('[data-approval$="-a2"] [data-response="allow"]').click()
    assert watched.server.next("permission_response")["id"] == two["id"]
    page.locator('[data-approval$="-a2"]').wait_for(state="detached")
    assert page.locator('[data-approval$="-a1"]').is_visible()


def test_an_answer_that_came_too_late_is_told_and_the_question_goes(watched: Watched) -> None:
    """What the server ignores shows as such; nothing looks as if it had been allowed."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    watched.asks(told.question(1, "call_1", "shell", {"command": "ls"}))
    watched.replies["permission_response"] = lambda said: [
        {
            "type": "ignored",
            "re": "permission_response",
            "id": said["id"],
            "runId": said["runId"],
            "reason": "already",
            "text": "Answered already: deny, by client-2.",
        }
    ]
    page.get_by_role("button", name="Allow once").click()
    page.locator(".toast", has_text="Answered already: deny, by client-2.").wait_for()
    assert page.locator(".question").count() == 0


def test_a_second_click_sends_nothing(watched: Watched) -> None:
    """While an answer is on its way no other can be given; a click in the first moment a question is there is none."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    # As soon as it is there: before anybody can have read it.
    page.evaluate(
        """() => new MutationObserver(() => document.querySelectorAll('.answers button').forEach((one) => one.click()))
            .observe(document.getElementById('questions'), { childList: true })"""
    )
    watched.asks(told.question(1, "call_1", "shell", {"command": "ls"}))
    watched.answers().first.wait_for()
    page.evaluate("for (let n = 0; n < 3; n += 1) document.querySelector('[data-response=allow]').click()")
    page.evaluate("document.querySelector('[data-response=deny]').click()")
    assert watched.server.next("permission_response")["response"] == "allow"
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    left = [watched.server.said.get()["type"] for _ in range(watched.server.said.qsize())]
    assert "permission_response" not in left


def test_a_new_question_takes_no_keyboard_from_who_is_typing(watched: Watched) -> None:
    """The words go on into the prompt, and the question is read aloud."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    page.locator("#prompt").type("half a th")
    watched.asks(told.question(1, "call_1", "shell", {"command": "ls"}, summary="ls"))
    page.locator(".question").wait_for()
    page.keyboard.type("ought")
    assert page.locator("#prompt").input_value() == "half a thought"
    assert page.locator("#urgent").text_content() == "A question: allow shell ls?"


def test_br_061_old_questions_go_when_the_server_was_started_again(watched: Watched) -> None:
    """Without a connection nothing can be answered; afterwards the old question is no longer valid, and says so."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    watched.asks(told.question(1, "call_1", "shell", {"command": "ls"}))
    watched.answers().first.wait_for()
    watched.replies["hello"] = lambda said: []  # for as long as nobody answers
    watched.server.hang_up()
    page.locator(".question .problem", has_text="Not connected").wait_for()
    assert watched.answers().count() == 0
    told.server = "server-2"
    del watched.replies["hello"]
    watched.server.hang_up()
    page.locator(".toast", has_text="no longer valid").wait_for()
    page.locator(".toast", has_text="started again").wait_for()
    assert page.locator(".question").count() == 0
    assert page.locator(".banner.connection").count() == 0


def test_reconnecting_names_the_last_event_and_shows_nothing_twice(watched: Watched) -> None:
    """What was missed is added; a question that is still open is still there, and can be answered."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state(), told.turn(), told.text("One. "))
    watched.asks(told.question(1, "call_1", "shell", {"command": "ls"}))
    page.locator(".said", has_text="One.").wait_for()
    seen = told.seq
    watched.server.next("hello")
    told.text("Two."), told.text_done("One. Two.")
    watched.replies["hello"] = lambda said: [
        told.hello(),
        *told.sync(said["lastSeq"], reset=False),
        told.state(),
        told.approvals(told.question(1, "call_1", "shell", {"command": "ls"})),
    ]
    watched.server.hang_up()
    again = watched.server.next("hello")
    assert (again["session"], again["lastSeq"], again["server"]) == (told.session, seen, told.server)
    page.locator(".said", has_text="One. Two.").wait_for()
    assert page.locator(".said").count() == 1
    assert page.locator(".prompt .words").count() == 1
    page.locator(".answers button:enabled").first.wait_for()
    assert page.locator(".question").count() == 1


@pytest.mark.slow
def test_events_that_come_twice_change_nothing(watched: Watched) -> None:
    """Events are known by their number."""
    page, told = watched.page, watched.told
    messages = [told.began(), told.turn(), told.text("Hello "), told.text("there")]
    watched.say(*messages, *messages, told.state())
    page.locator(".said", has_text="Hello there").wait_for()
    assert page.locator(".said").text_content() == "Hello there"
    assert page.locator(".prompt .words").count() == 1


def test_stopping_names_what_is_waited_for_and_can_be_hurried(watched: Watched) -> None:
    """Stop names its run; while it stops, what has not ended is listed, and a second press does not wait for it."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    watched.replies["cancel"] = lambda said: [{"type": "receipt", "re": "cancel", "runId": said["runId"]}]
    page.get_by_role("button", name="Stop").click()
    assert watched.server.next("cancel") | {"ref": ""} == {"type": "cancel", "runId": told.run, "ref": ""}
    watched.say(
        {
            "type": "stopping",
            "session": told.session,
            "runId": told.run,
            "reason": "stopped by client-1",
            "seconds": 0.5,
            "hurried": False,
            "waitingFor": ["4711 sleep 600"],
        }
    )
    page.locator(".left", has_text="4711 sleep 600").wait_for()
    page.get_by_role("button", name="Don’t wait").click()
    assert watched.server.next("cancel")["hurry"] is True
    reaped = {"tasks": 1, "processes": 2, "escalated": 1, "survivors": [], "ms": 700}
    watched.say(told.ended("cancelled", reaped=reaped), told.state(False))
    end = page.locator(".ended")
    end.wait_for()
    assert "2 processes and 1 task stopped, 1 of them by force. Nothing is left running." in end.text_content()
    assert page.locator(".left").is_hidden()
    page.locator("#prompt").fill("again")
    page.get_by_role("button", name="Send").click()
    assert watched.server.next("prompt")["text"] == "again"


@pytest.mark.slow
def test_escape_stops_at_the_second_press(watched: Watched) -> None:
    """The first says so; nothing is stopped by a key that was pressed once."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state())
    page.locator(".stop").wait_for()
    page.keyboard.press("Escape")
    page.locator(".toast", has_text="once more").wait_for()
    assert not any(watched.server.said.get()["type"] == "cancel" for _ in range(watched.server.said.qsize()))
    page.keyboard.press("Escape")
    assert watched.server.next("cancel")["runId"] == told.run


@pytest.mark.slow
def test_lagging_is_told_until_it_is_over(watched: Watched) -> None:
    """A page that was too slow says so, and then has everything."""
    page, told = watched.page, watched.told
    watched.say(told.began(), told.state(), {"type": "lagging", "session": told.session, "missed": 3})
    page.locator(".banner.lagging").wait_for()
    after = told.seq
    told.turn(), told.text_done("caught up")
    watched.say(*told.sync(after, reset=False), told.state())
    page.locator(".said", has_text="caught up").wait_for()
    assert page.locator(".banner.lagging").count() == 0


_EVIL = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\u202e'


def test_nothing_that_comes_from_outside_becomes_a_part_of_the_page(watched: Watched) -> None:
    """Markup in every text there is: prompts, replies, calls, output, diffs, paths, rules, titles, reasons, notices."""
    page, told, evil = watched.page, watched.told, _EVIL
    told.title = evil
    question = told.question(
        1,
        "c9",
        evil,
        {evil: evil, "o": {"x": evil}},
        reason=evil,
        summary=evil,
        details=evil,
        diff=f"+{evil}",
        commands=[evil],
        rule=evil,
        storedIn=evil,
    )
    files = {"created": [evil], "modified": [evil], "deleted": [evil], "problem": evil}
    watched.say(
        told.began(evil),
        told.state(cwd=evil, model=evil, locked=evil, notices=[evil], mode=evil),
        told.turn(),
        told.text(evil),
        told.event("thinking_delta", index=1, text=evil),
        told.ready("c1", evil, {evil: evil}),
        told.output("c1", evil, evil),
        told.event("files_changed", call_id="c1", name=evil, **files),
        told.event(
            "hook_ran", event=evil, command=evil, seconds=0.1, outcome="deny", call_id="c1", name=evil, reason=evil
        ),
        told.settled("c1", evil, "error", evil, note=evil, diff=f"+++ {evil}\n@@ {evil}\n+{evil}"),
        told.event("notice", level="warning", text=evil),
        told.event(
            "call_broken",
            index=3,
            call={"type": "broken_call", "id": "c2", "index": 3, "name": evil, "raw": evil, "problem": evil},
        ),
        told.event("compacted", summary=evil),
        told.event("user_added", user={"parts": [{"type": "text", "text": evil}]}),
        {"type": "sessions", "items": [told.listed(cwd=evil)]},
        told.approvals(question),
        {
            "type": "stopping",
            "session": told.session,
            "runId": told.run,
            "reason": evil,
            "seconds": 1,
            "hurried": False,
            "waitingFor": [evil],
        },
        {"type": "error", "code": "failed", "text": evil, "fatal": False},
        {"type": "closing", "reason": evil, "grace": 1, "finish": False},
    )
    page.locator(".question").wait_for()
    for opener in page.locator(".opener").all():
        opener.click()
    page.locator(".thinking summary").click()
    page.get_by_role("button", name="Time-line", exact=True).click()
    page.locator("svg.lanes .span").first.wait_for()
    watched.say(
        told.ended("failed", reason=evil, failure={"kind": "server", "message": evil, "retryable": False}, jobs=[evil])
    )
    page.locator(".ended").wait_for()
    found = page.evaluate(
        """() => ({ hit: window.hit,
                    tags: [...new Set([...document.body.querySelectorAll('*')].map((one) => one.tagName))],
                    texts: document.body.innerText.split('onerror').length - 1,
                    hidden: document.body.textContent.includes('\\u202e'),
                    styled: [...document.querySelectorAll('[style]')].length })"""
    )
    assert found["hidden"] is False
    assert found.get("hit") is None
    assert not {"SCRIPT", "IFRAME", "OBJECT", "STYLE", "LINK"} & set(found["tags"])
    assert page.locator("img").count() == 1  # the page's own
    assert found["texts"] > 25
    assert found["styled"] == 0


def test_nothing_is_kept_in_the_browser(watched: Watched) -> None:
    """No storage, no cookie a script can see, no token in the address."""
    page = watched.page
    kept = page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
    assert kept == [0, 0, ""]
    page.evaluate("location.hash = '#token=secret'; location.reload()")
    page.locator('body[data-connection="open"]').wait_for()
    assert "token" not in page.url
