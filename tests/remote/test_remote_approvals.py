"""Answers from browsers and scripts: which of them count. Cases of theme e of the reports, over real sockets."""

from __future__ import annotations

from pathlib import Path

import httpx
import trio
from remote.remote_world import ASK_TWICE, SAY, reply, serving

_ASK = reply(("shell", {"command": "ls; touch data"})) + reply(text="done")
_REMOVE = reply(("shell", {"command": "rm -r data"})) + reply(text="done")


async def test_br_058_an_answer_for_another_question_releases_nothing(tmp_path: Path) -> None:
    """Four answers that each have something wrong are ignored with the reason; the right pair works."""
    (tmp_path / "project" / "data").mkdir(parents=True)
    script = reply(("shell", {"command": "ls; touch x"})) + _REMOVE
    async with serving(tmp_path, script) as remote, remote.http() as http:
        first = await remote.run("one")
        session = first["session"]
        async with remote.browser(session) as browser:
            (old,) = await browser.question()
            assert (await browser.ask("cancel", runId=first["runId"]))["type"] == "receipt"
            await browser.until_event("run_ended")
            await browser.quiet()
            await browser.ask("prompt", text="two")
            (new,) = await browser.question()
            wrong = [
                ({"id": old["id"], "runId": old["runId"]}, 409, "stale_run"),
                ({"id": old["id"], "runId": new["runId"]}, 404, "unknown"),
                ({"id": new["id"], "runId": old["runId"]}, 409, "stale_run"),
                ({}, 409, "missing_run"),
                ({"id": new["id"]}, 409, "missing_run"),
                ({"runId": new["runId"]}, 409, "missing_id"),
                ({"id": [new["id"]], "runId": {"run": new["runId"]}}, 409, "missing_run"),
            ]
            for given, status, reason in wrong:
                answer = await http.post(f"/api/v1/sessions/{session}/answer", json={**given, "response": "allow"})
                assert (answer.status_code, answer.json()["type"], answer.json()["reason"]) == (
                    status,
                    "ignored",
                    reason,
                )
            state = (await http.get(f"/api/v1/sessions/{session}")).json()
            assert [item["id"] for item in state["approvals"]] == [new["id"]]
            assert (remote.cwd / "data").is_dir()
            assert (await browser.answer(new, "allow"))["decision"] == "allow"
            await browser.until_event("run_ended")
        assert not (remote.cwd / "data").exists()


async def test_br_059_the_second_question_is_answered_by_its_own_button(tmp_path: Path) -> None:
    """`two` is allowed and `one` is denied, in that order; the results stay with their calls."""
    async with serving(tmp_path, ASK_TWICE) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            one, two = await browser.question(2)
            assert [one["commands"], two["commands"]] == [["touch one"], ["touch two"]]
            await browser.answer(two, "allow")
            await browser.answer(one, "deny", reason="not that one")
            committed = await browser.until_event("turn_committed")
            await browser.until_event("run_ended")
        results = [(one["call_id"], one["outcome"]) for one in committed["exchange"]["results"]]
        assert results == [(one["call"]["id"], "denied"), (two["call"]["id"], "ok")]
        assert "not that one" in str(committed["exchange"]["results"][0])
        assert [(remote.cwd / name).exists() for name in ("one", "two")] == [False, True]


async def test_br_060_ten_answers_at_once_run_it_once(tmp_path: Path) -> None:
    """The first of ten equal answers counts; a contrary one and a late one are told who decided."""
    script = reply(("shell", {"command": "echo x >> once.txt"})) + reply(text="done")
    async with serving(tmp_path, script) as remote, remote.http() as http:
        started = await remote.run("go")
        path = f"/api/v1/sessions/{started['session']}"
        async with remote.browser(started["session"], name="watching") as browser:
            (asked,) = await browser.question()
            given = {"id": asked["id"], "runId": asked["runId"], "response": "allow"}
            assert sorted(await _ten_clicks(http, f"{path}/answer", given)) == [200] + [409] * 9
            late = (await http.post(f"{path}/answer", json={**given, "response": "deny"})).json()
            assert late["type"] == "ignored"
            if late["reason"] == "already":  # the run may be over by now
                assert (late["decision"], late["by"]) == ("allow", "a script, over HTTP")
            await browser.until_event("run_ended")
            after = (await http.post(f"{path}/answer", json=given)).json()
            assert after["reason"] == "stale_run"
            assert [message["items"] for message in browser.got if message["type"] == "approvals"][-1] == []
        assert (remote.cwd / "once.txt").read_text() == "x\n"


async def _ten_clicks(http: httpx.AsyncClient, path: str, given: dict[str, str]) -> list[int]:
    statuses: list[int] = []

    async def click() -> None:
        statuses.append((await http.post(path, json=given)).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(click)
    return statuses


async def test_br_061_a_question_of_a_server_that_died_is_gone(tmp_path: Path) -> None:
    """The session of a killed server has an open question on record: it is not shown, and its answer is stale."""
    async with serving(tmp_path, _ASK) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            (asked,) = await browser.question()
            # What SIGKILL leaves: the journal as it is now.
            path = remote.hub.room(started["session"]).path
            assert path is not None
            torn = path.read_bytes()
    path.write_bytes(torn)
    async with serving(tmp_path, SAY) as remote, remote.http() as http:
        async with remote.browser(started["session"], lastSeq=3, server="of another life") as browser:
            assert browser.got[-1]["items"] == []
            assert [message["reset"] for message in browser.got if message["type"] == "sync"] == [True]
            assert (await browser.answer(asked, "allow"))["reason"] == "stale_run"
            assert (await browser.ask("prompt", text="again"))["type"] == "receipt"
            await browser.until_event("run_ended")
            # Opened again, the stored call was closed with a result.
            closed = [event for event in browser.events if event["type"] == "approval_closed"]
            assert [event["approval_id"] for event in closed] == [asked["id"]]
            settled = [event["result"]["outcome"] for event in browser.events if event["type"] == "call_settled"]
            assert settled in ([], ["skipped"])
        answer = await http.post(
            f"/api/v1/sessions/{started['session']}/answer",
            json={"id": asked["id"], "runId": asked["runId"], "response": "allow"},
        )
        assert (answer.status_code, answer.json()["reason"]) == (409, "stale_run")
        assert not (remote.cwd / "data").exists()


async def test_cancelling_takes_the_questions_of_the_run_away_everywhere(tmp_path: Path) -> None:
    """All watchers see no open question at once, and the old button does nothing, before and after the next run."""
    async with serving(tmp_path, ASK_TWICE) as remote:
        started = await remote.run("go")
        session = started["session"]
        async with remote.browser(session) as one, remote.browser(session) as two:
            first, second = await one.question(2)
            assert (await two.ask("cancel", runId=started["runId"]))["re"] == "cancel"
            for browser in (one, two):
                await browser.until(lambda message: message["type"] == "approvals" and message["items"] == [])
            assert (await one.answer(first, "allow"))["reason"] in ("already", "stale_run")
            await one.quiet()
            assert (await one.answer(second, "allow"))["reason"] == "stale_run"
            assert (await one.ask("prompt", text="next"))["type"] == "receipt"
            await one.until_event("run_ended")
            assert (await two.answer(first, "allow"))["reason"] == "stale_run"
        assert not any((remote.cwd / name).exists() for name in ("one", "two"))


async def test_an_unknown_word_denies(tmp_path: Path) -> None:
    """Whatever is not one of the words is a no, in any letter case and type."""
    async with serving(tmp_path, _ASK) as remote:
        for word in ("Allow", "yes", "", None, True):
            (remote.cwd / "data").unlink(missing_ok=True)
            started = await remote.run("go")
            async with remote.browser(started["session"]) as browser:
                (asked,) = await browser.question()
                reply = await browser.ask("permission_response", id=asked["id"], runId=asked["runId"], response=word)
                assert (reply["type"], reply["decision"]) == ("receipt", "deny")
                await browser.until_event("run_ended")
        assert not (remote.cwd / "data").exists()


async def test_who_answered_is_on_record(tmp_path: Path) -> None:
    """The journal names the client; the other browser is told."""
    async with serving(tmp_path, _ASK) as remote:
        started = await remote.run("go")
        session = started["session"]
        async with remote.browser(session, name="phone") as phone, remote.browser(session, name="laptop") as laptop:
            (asked,) = await phone.question()
            await phone.answer(asked, "allow")
            closed = await laptop.until_event("approval_closed")
            late = await laptop.answer(asked, "deny")
            await laptop.until_event("run_ended")
        assert closed["by"].endswith("(phone)")
        if late["reason"] == "already":
            assert late["by"] == closed["by"]
        path = remote.hub.room(session).path
        assert path is not None
        assert f'"decision":"allow","by":"{closed["by"]}"' in path.read_text()


async def test_always_stores_the_rule_that_was_shown(tmp_path: Path) -> None:
    """The stored rule is the one on the card, or the one the person wrote; a wrong one leaves the question open."""
    script = reply(("shell", {"command": "touch data"})) + reply(text="done")
    async with serving(tmp_path, script * 2) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            (asked,) = await browser.question()
            assert asked["rule"] == "shell(touch data)"
            wrong = await browser.answer(asked, "allowAlways", rule="shell(")
            assert (wrong["type"], wrong["code"]) == ("error", "bad_rule")
            receipt = await browser.answer(asked, "allowAlways")
            assert receipt["rules"] == ["shell(touch data)"]
            await browser.until_event("run_ended")
            assert "shell(touch data)" in Path(asked["storedIn"]).read_text()
            # The next run is not asked.
            await browser.quiet()
            await browser.ask("prompt", text="again")
            await browser.until_event("run_ended")
            assert [message["items"] for message in browser.got if message["type"] == "approvals"][-1] == []
