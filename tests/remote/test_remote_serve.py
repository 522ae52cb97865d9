"""`novacode serve` as its users run it: a process of its own, and clients that know the documentation only."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
from doubles.command_line import Place
from doubles.os_processes import alive, unique
from remote.remote_world import reply

DOCS = Path(__file__).resolve().parents[2] / "docs"
_ASK = reply(("shell", {"command": "echo asked > asked.txt"}), text="I ask first. ") + reply(text="All is well.")


@attrs.define
class Server:
    """A process that serves. `address` is what it has printed."""

    process: subprocess.Popen[bytes]
    address: str

    @property
    def url(self) -> str:
        """The address without the token."""
        return self.address.partition("#")[0]

    @property
    def token(self) -> str:
        """The token."""
        return self.address.partition("#token=")[2]

    def http(self) -> httpx.Client:
        """Return a client of the API."""
        return httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {self.token}"}, timeout=30)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Ask it to end, and return its exit code and what it has complained of."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()


@contextmanager
def serve(place: Place, *arguments: str, script: str = "", scheme: str = "http") -> Iterator[Server]:
    """Have a server run in `place`; it is killed at the end, where it still runs."""
    if script:
        (place.root / "script.toml").write_text(script)
        arguments = ("--model", f"script:{place.root / 'script.toml'}", *arguments)
    process = place.start("serve", "--port", "0", *arguments)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        found = re.fullmatch(rf"Open ({scheme}://127\.0\.0\.1:\d+/#token=[A-Za-z0-9_-]{{43}})\n", line)
        assert found is not None, (line, process.stderr.read() if process.stderr and process.poll() else "")
        yield Server(process, found[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _events(client: httpx.Client, session: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of the event stream of a session; of what is an event, that."""
    with client.stream("GET", f"/api/v1/sessions/{session}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                message = json.loads(line.removeprefix("data: "))
                yield from message.get("events") or (message.get("event") or message,)


def _until(messages: Iterator[dict[str, Any]], type: str) -> dict[str, Any]:
    """Return the next message or event of that type."""
    for message in messages:
        if message["type"] == type:
            return message
    raise AssertionError(f"the stream ended without {type}")


def test_curl_runs_a_task_with_an_approval(tmp_path: Path) -> None:
    """The commands of docs/remote.md, as they stand there."""
    text = (DOCS / "remote.md").read_text()
    commands = re.search(r"```bash\n(.*?)```", text, re.DOTALL)
    assert commands is not None
    place = Place(tmp_path)
    with serve(place, script=_ASK) as server:
        environ = {**os.environ, "URL": server.url, "TOKEN": server.token}
        errors = tmp_path / "errors"
        with errors.open("wb") as file:  # a pipe would be held open by a `curl` that nobody reads any more
            ran = subprocess.run(
                ["bash", "-c", commands[1]], env=environ, stdout=subprocess.PIPE, stderr=file, timeout=60, check=False
            )
        assert ran.returncode == 0, errors.read_text()
        said = ran.stdout.decode()
        assert '"decision":"allow"' in said
        assert '"type":"run_ended"' in said
        assert (place.work / "asked.txt").read_text() == "asked\n"
        assert server.end()[0] == 143


@pytest.mark.parametrize(("said", "outcome"), [("y\n", True), ("no thanks\n", False)])
def test_the_documented_client_runs_a_task(tmp_path: Path, said: str, outcome: bool) -> None:
    """The script of the documentation, with the printed address and a prompt."""
    place = Place(tmp_path)
    script = DOCS / "remote_client.py"
    assert len(script.read_text().splitlines()) <= 40
    with serve(place, script=_ASK) as server:
        command = [sys.executable, str(script), server.address, "go"]
        ran = subprocess.run(command, input=said, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "I ask first." in ran.stdout
        assert "All is well." in ran.stdout
        assert ran.stdout.endswith("completed: completed\n"), ran.stdout
        assert (place.work / "asked.txt").exists() is outcome


def test_sigterm_during_a_run_tells_reaps_and_leaves_a_session_to_go_on_with(tmp_path: Path) -> None:
    """Clients are told, a daemon of the tool is gone, and the session goes on at the command line, and here again."""
    sleep = unique()
    command = f"setsid sleep {sleep} & sleep {sleep}"
    place = Place(tmp_path)
    with serve(place, "--yolo", script=_long(command)) as server:
        with server.http() as client:
            started = client.post("/api/v1/runs", json={"prompt": "go"}).json()
            messages = _events(client, started["session"])
            _until(messages, "synced")
            place.until(lambda: len(alive(sleep)) >= 2)
            server.process.send_signal(signal.SIGTERM)
            assert _until(messages, "closing") == {
                "type": "closing", "reason": "SIGTERM", "grace": 10.0, "finish": False
            }  # fmt: skip
            ended = _until(messages, "run_ended")
            assert (ended["status"], ended["reason"]) == ("cancelled", "SIGTERM")
            assert list(messages)[-1:] != []  # it is closed in order, after the last words
        _, err = server.process.communicate(timeout=60)
        assert server.process.returncode == 143, err
    assert alive(sleep) == []
    # At the command line.
    (place.root / "next.toml").write_text(reply(text="From the terminal."))
    ran = place.run("run", "-c", "and now", "--model", f"script:{place.root / 'next.toml'}", "--output-format", "json")
    assert (ran.code, ran.result["session_id"], ran.result["result"]) == (0, started["session"], "From the terminal.")
    # And here again.
    with serve(place, script=reply(text="From the browser.")) as server, server.http() as client:
        sent = {"prompt": "and now", "session": started["session"]}
        assert client.post("/api/v1/runs", json=sent).json()["runId"] == f"{started['session']}-r3"
        messages = _events(client, started["session"])
        ended = [_until(messages, "run_ended") for _ in range(3)]
        assert [one.get("text", "") for one in ended] == ["", "From the terminal.", "From the browser."]
        assert server.end()[0] == 143


def test_a_session_that_is_served_is_locked_for_others(tmp_path: Path) -> None:
    """The command line is told who holds it, and the remote when it is the other way round."""
    place = Place(tmp_path)
    with serve(place, script=_ASK) as server, server.http() as client:
        started = client.post("/api/v1/runs", json={"prompt": "go"}).json()
        ran = place.run("run", "-c", "and now", "--model", "demo", "--output-format", "json")
        assert ran.code != 0
        assert f"is in use by the process {server.process.pid}" in ran.err
        client.post(f"/api/v1/sessions/{started['session']}/cancel", json={"runId": started["runId"]})


def test_finish_waits_for_the_run(tmp_path: Path) -> None:
    """With --finish, SIGTERM lets the run come to its end; nothing new is begun meanwhile."""
    place = Place(tmp_path)
    with serve(place, "--finish", script=_ASK) as server, server.http() as client:
        started = client.post("/api/v1/runs", json={"prompt": "go"}).json()
        messages = _events(client, started["session"])
        while not (asked := _until(messages, "approvals"))["items"]:
            pass
        server.process.send_signal(signal.SIGTERM)
        assert _until(messages, "closing")["finish"] is True
        refused = client.post("/api/v1/runs", json={"prompt": "one more"})
        assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
        (item,) = asked["items"]
        answer = {"id": item["id"], "runId": item["runId"], "response": "allow"}
        assert client.post(f"/api/v1/sessions/{started['session']}/answer", json=answer).status_code == 200
        assert _until(messages, "run_ended")["status"] == "completed"
        _, err = server.process.communicate(timeout=60)
        assert server.process.returncode == 143, err
    assert (place.work / "asked.txt").exists()


def test_the_playground_shows_that_an_old_answer_writes_nothing(tmp_path: Path) -> None:
    """Cancel, answer the old question: the virtual file is not there, and the next run works."""
    place = Place(tmp_path)
    with serve(place, "--model", "demo", "--simulate") as server, server.http() as client:
        started = client.post("/api/v1/runs", json={"prompt": "go"}).json()
        session = f"/api/v1/sessions/{started['session']}"
        messages = _events(client, started["session"])
        while not (asked := _until(messages, "approvals"))["items"]:
            pass
        assert client.post(f"{session}/cancel", json={"runId": started["runId"]}).status_code == 202
        assert _until(messages, "run_ended")["status"] == "cancelled"
        old = {"id": asked["items"][0]["id"], "runId": started["runId"], "response": "allow"}
        ignored = client.post(f"{session}/answer", json=old)
        assert (ignored.status_code, ignored.json()["reason"]) == (409, "stale_run")
        sent = {"prompt": "again", "session": started["session"]}
        assert client.post("/api/v1/runs", json=sent).status_code == 202
        committed = _until(messages, "turn_committed")
        assert "notes.txt" in str(committed["exchange"]["results"])
        assert committed["exchange"]["results"][0]["outcome"] == "error"  # there is no such file
        assert _until(messages, "run_ended")["status"] == "completed"
        assert server.end()[0] == 143
    assert list(place.work.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "0.0.0.0"), "--insecure-plain-http"),
        (("--host", "192.0.2.1"), "--tls-cert"),
        (("--no-session",), "--no-session"),
        (("--model", "nobody/x"), "nobody"),
        (("--allow-host", "a:b:c"), "--allow-host"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Words and an exit code, before anything is served."""
    ran = Place(tmp_path).run("serve", "--port", "0", "--model", "demo", *arguments)
    assert ran.code in (2, 41, 42)
    assert words in ran.err
    assert ran.out == b""


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    """With the port, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = Place(tmp_path).run("serve", "--port", str(port), "--model", "demo")
    assert ran.code == 42
    assert f"127.0.0.1:{port} cannot be listened on" in ran.err
    assert "--port 0" in ran.err


def test_the_browser_is_given_a_file_that_leads_to_the_page(tmp_path: Path) -> None:
    """For its owner alone, and gone with the server; the token is on no command line that others could read."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(
        f'#!/bin/sh\necho "$$ $@" > {seen}.new\nmv {seen}.new {seen}\nexec sleep 300 > {seen}.out 2>&1\n'
    )
    browser.chmod(0o700)
    place = Place(tmp_path, {"BROWSER": str(browser), "TMPDIR": str(tmp_path)})
    with serve(place, "--model", "demo", "--open") as server:
        place.until(seen.exists)
        pid, opened = seen.read_text().split()
        assert server.token not in opened
        page = Path(opened.removeprefix("file://"))
        assert page.stat().st_mode & 0o777 == 0o600
        assert f'content="0; url={server.address}"' in page.read_text()
        assert server.end()[0] == 143  # and does not wait for the browser
        assert not page.exists()
    os.kill(int(pid), signal.SIGKILL)  # it is the person's, and no process of ours


def test_without_a_browser_the_server_serves(tmp_path: Path) -> None:
    """It says so; the address is printed all the same."""
    place = Place(tmp_path, {"BROWSER": str(tmp_path / "none"), "PATH": str(tmp_path)})
    with serve(place, "--model", "demo", "--open") as server, server.http() as http:
        assert http.get("/api/v1/state").status_code == 200
        code, err = server.end()
    assert code == 143
    assert "novacode: no browser could be opened: there is none, or it has failed; $BROWSER names one" in err


def _long(command: str) -> str:
    return reply(("shell", {"command": command})) + reply(text="done")
