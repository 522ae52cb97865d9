"""What a client can do besides answering: stop, change, shorten, take back, look; and what others see of it."""

from __future__ import annotations

from pathlib import Path

import trio
from doubles.os_processes import alive, present, unique
from remote.remote_world import ASK_TWICE, SAY, reply, serving

_BYPASS = {"permissions.mode": "bypass"}


async def test_stopping_shows_what_is_waited_for_and_leaves_nothing(tmp_path: Path) -> None:
    """A grandchild that ignores SIGTERM is named while it is waited for, is gone at the end, and a run follows."""
    sleep = unique()
    command = f"(trap '' TERM; setsid sleep {sleep} & while :; do sleep 0.05; done) & sleep {sleep}"
    script = reply(("shell", {"command": command})) + reply(text="fine")
    async with serving(tmp_path, script, _BYPASS) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            assert await present(sleep, 2)
            stale = await browser.ask("cancel", runId=f"{started['runId']}0")
            assert (stale["type"], stale["reason"]) == ("ignored", "stale_run")
            assert (await browser.ask("cancel"))["reason"] == "missing_run"
            assert (await browser.ask("cancel", runId=started["runId"]))["type"] == "receipt"
            ended = await browser.until_event("run_ended")
            assert ended["status"] == "cancelled"
            assert "client-" in ended["reason"]
            assert ended["reaped"].get("survivors", []) == []
            stopping = [message for message in browser.got if message["type"] == "stopping"]
            assert any(sleep in words for message in stopping for words in message["waitingFor"])
            assert alive(sleep) == []
            await browser.quiet()
            assert (await browser.ask("prompt", text="next"))["type"] == "receipt"
            assert (await browser.until_event("run_ended"))["status"] == "completed"


async def test_hurry_skips_the_grace(tmp_path: Path) -> None:
    """The second press kills at once."""
    sleep = unique()
    command = f"trap '' TERM; echo up; while :; do sleep {sleep} & wait; done"
    async with serving(tmp_path, reply(("shell", {"command": command})), _BYPASS) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            assert await present(sleep)
            await browser.ask("cancel", runId=started["runId"])
            await browser.ask("cancel", runId=started["runId"], hurry=True)
            ended = await browser.until_event("run_ended")
            assert any(message["hurried"] for message in browser.got if message["type"] == "stopping")
        assert ended["reaped"]["escalated"] >= 1
        assert alive(sleep) == []


async def test_stopping_one_call_lets_the_run_go_on(tmp_path: Path) -> None:
    """With its id; an id that is none is told."""
    sleep = unique()
    script = reply(("shell", {"command": f"sleep {sleep}"})) + reply(text="went on")
    async with serving(tmp_path, script, _BYPASS) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            assert await present(sleep)
            (ready,) = [event for event in browser.events if event["type"] == "call_ready"]
            unknown = await browser.ask("cancel", runId=started["runId"], callId="call_none")
            assert (unknown["type"], unknown["reason"]) == ("ignored", "unknown")
            stopped = await browser.ask("cancel", runId=started["runId"], callId=ready["call"]["id"])
            assert stopped["type"] == "receipt"
            ended = await browser.until_event("run_ended")
        assert (ended["status"], ended["text"], alive(sleep)) == ("completed", "went on", [])


async def test_a_second_prompt_waits_for_nothing(tmp_path: Path) -> None:
    """It is refused while a run is under way, and everything before it goes on."""
    async with serving(tmp_path, ASK_TWICE) as remote, remote.browser() as browser:
        first = await browser.ask("prompt", text="go")
        assert first["session"] in {message["session"] for message in browser.got if "session" in message}
        second = await browser.ask("prompt", text="more")
        assert (second["type"], second["code"]) == ("error", "busy")
        assert len(await browser.question(2)) == 2


async def test_mode_and_limits_hold_from_now_on(tmp_path: Path) -> None:
    """Everybody is told; wrong ones change nothing; the next run keeps to them."""
    turns = "".join(reply(("glob", {"pattern": "*"})) for _ in range(5))
    async with serving(tmp_path, ASK_TWICE + turns) as remote:
        session = remote.hub.create().session
        async with remote.browser(session) as browser, remote.browser(session) as other:
            for wrong in ({"mode": "reckless"}, {"limits": {"maxTurns": -1}}, {"limits": {"maxFun": 1}}):
                assert (await browser.ask("settings", **wrong))["code"] == "bad_settings"
            await browser.ask("settings", mode="bypass", limits={"maxTurns": 2})
            state = await other.until(lambda message: message["type"] == "state" and message["mode"] == "bypass")
            assert state["limits"]["maxTurns"] == 2
            await browser.ask("prompt", text="nobody is asked")
            assert (await browser.until_event("run_ended"))["status"] == "completed"
            await browser.quiet()
            await browser.ask("settings", limits={"maxTurns": 1})
            await browser.ask("prompt", text="two turns")
            ended = await browser.until_event("run_ended")
            assert (ended["status"], ended["reason"]) == ("limit", "max_turns")


async def test_rewind_does_what_its_preview_said_or_nothing(tmp_path: Path) -> None:
    """The preview names what would be done, a stale one does nothing, and the right one does it once."""
    write = reply(("write", {"path": "new.txt", "content": "from the model\n"})) + reply(text="done")
    async with serving(tmp_path, write, _BYPASS) as remote:
        session = remote.hub.create().session
        async with remote.browser(session) as browser:
            await browser.ask("prompt", text="go")
            await browser.until_event("run_ended")
            await browser.quiet()
            assert (remote.cwd / "new.txt").exists()
            preview = await browser.ask("rewind")
            assert [(item["verdict"], item["chosen"]) for item in preview["items"]] == [("restore", True)]
            assert (remote.cwd / "new.txt").exists()
            stale = await browser.ask("rewind", preview="0" * 16)
            assert stale["code"] == "stale_preview"
            assert (remote.cwd / "new.txt").exists()
            done = await browser.ask("rewind", preview=preview["preview"])
            assert (done["type"], len(done["done"]), done["failed"]) == ("rewound", 1, {})
            assert not (remote.cwd / "new.txt").exists()
            added = await browser.until_event("user_added")
            assert "new.txt" in str(added)
            # It can be taken back, and is on record.
            undo = await browser.ask("rewind", undo=True)
            await browser.ask("rewind", undo=True, preview=undo["preview"])
            assert (remote.cwd / "new.txt").read_text() == "from the model\n"


async def test_not_during_a_run(tmp_path: Path) -> None:
    """A rewind under a run would take files from under it."""
    async with serving(tmp_path, ASK_TWICE) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            await browser.question(2)
            preview = await browser.ask("rewind")
            refused = await browser.ask("rewind", preview=preview.get("preview", "0"))
            assert (refused["type"], refused["code"]) == ("error", "busy")


async def test_the_time_line_and_the_transcript(tmp_path: Path) -> None:
    """Over HTTP: lanes with spans, and the events on record from one on."""
    async with serving(tmp_path, ASK_TWICE, _BYPASS) as remote, remote.http() as http:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            await browser.quiet()
        path = f"/api/v1/sessions/{started['session']}"
        (run,) = (await http.get(f"{path}/timeline")).json()["runs"]
        assert (run["runId"], run["status"], run["prompt"]) == (started["runId"], "completed", "go")
        assert [lane["title"].split()[0] for lane in run["lanes"]] == ["turn", "shell", "shell", "turn"]
        lines = (await http.get(f"{path}/transcript", params={"after": 3})).text.splitlines()
        assert lines
        assert all('"crc"' not in line for line in lines)
        assert (await http.get("/api/v1/sessions/s-none")).status_code == 404


async def test_text_of_models_and_tools_is_never_markup(tmp_path: Path) -> None:
    """What is in prompts, texts, outputs and titles goes out as JSON only, and never as a page."""
    evil = "<script>alert(1)</script></pre><img src=x onerror=alert(1)>"
    script = reply(("shell", {"command": f"echo '{evil}'"}), text=evil) + reply(text=evil)
    async with serving(tmp_path, script, _BYPASS) as remote, remote.http() as http:
        started = await remote.run(evil)
        async with remote.browser(started["session"]) as browser:
            await browser.quiet()
        path = f"/api/v1/sessions/{started['session']}"
        for route in ("/api/v1/sessions", "/api/v1/state", path, f"{path}/transcript", f"{path}/timeline"):
            answer = await http.get(route)
            assert answer.headers["content-type"].split(";")[0] in ("application/json", "application/x-ndjson"), route
            assert answer.headers["x-content-type-options"] == "nosniff"
        for missing in (f"/assets/{evil}", f"/api/v1/sessions/{evil}"):
            answer = await http.get(missing)
            assert answer.status_code == 404
            assert not answer.headers["content-type"].startswith("text/html")


async def test_an_unused_session_is_given_back(tmp_path: Path) -> None:
    """Some time after its last run others can write it, and the next prompt opens it again."""
    async with serving(tmp_path, SAY) as remote:
        remote.hub.shared.unused = 0.05
        room = remote.hub.create()
        await room.prompt("go")
        await room.quiet()
        with trio.fail_after(20):
            await room._gone.wait()
        assert room.app is None
        session = remote.hub.store.open(room.session, remote.cwd)
        session.close()
        assert await room.prompt("again") == f"{room.session}-r2"
