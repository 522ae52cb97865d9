"""A whole remote in this process: real sockets, a scripted model, and clients that say what they got."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx
import trio
import trio_websocket

from novacode.app.choosing import scripted
from novacode.app.clocks import WallClock
from novacode.app.settings import Places, load_settings
from novacode.app.setup import Setup
from novacode.models.script import parse_script
from novacode.remote.hub import Hub
from novacode.remote.server import Address, listen, serve
from novacode.sessions.store import Store

__all__ = ["ASK_TWICE", "SAY", "Browser", "Remote", "reply", "serving", "setup_in"]

TOKEN = "a-token-of-the-tests-which-is-long-enough"
JSON = dict[str, Any]
SAY = '[[turn]]\nsteps = [ { text = "hello" } ]\n'


def reply(*calls: tuple[str, JSON], text: str = "") -> str:
    """Return a turn of a script with these calls."""
    steps = [f"{{ text = {json.dumps(text)} }}"] if text else []
    for name, arguments in calls:
        inner = ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())
        steps.append(f"{{ call = {json.dumps(name)}, arguments = {{ {inner} }} }}")
    return f"[[turn]]\nsteps = [ {', '.join(steps)} ]\n"


ASK_TWICE = (
    reply(("shell", {"command": "touch one"}), ("shell", {"command": "touch two"}))
    + reply(text="done")
    + reply(("shell", {"command": "touch three"}))
    + reply(text="done")
)


def setup_in(tmp_path: Path, script: str, flags: Mapping[str, Any] | None = None, *, simulate: bool = False) -> Setup:
    """Return what sessions in `tmp_path` are made from."""
    home, cwd = tmp_path / "home", tmp_path / "project"
    home.mkdir(exist_ok=True)
    cwd.mkdir(exist_ok=True)
    settings = load_settings(Places(home, cwd), {}, dict(flags or {}))
    choice = scripted("script", parse_script(script, "a script of the tests"))
    return Setup(settings, {}, home, cwd, somebody=True, choice=choice, simulate=simulate)


@attrs.define
class Remote:
    """A server that runs. `bugs` has to stay empty; `serving` sees to it."""

    hub: Hub
    url: str
    cwd: Path
    bugs: list[Exception]

    @property
    def host(self) -> str:
        """Host and port, as browsers write them."""
        return self.url.removeprefix("http://").removesuffix("/")

    @property
    def port(self) -> int:
        """The port."""
        return int(self.host.rpartition(":")[2])

    def http(self, token: str | None = TOKEN, **headers: str) -> httpx.AsyncClient:
        """Return a client of the API that shows `token`."""
        given = {"authorization": f"Bearer {token}"} if token is not None else {}
        return httpx.AsyncClient(base_url=self.url, headers={**given, **headers}, timeout=20)

    @asynccontextmanager
    async def browser(self, session: str = "", **hello: Any) -> AsyncIterator[Browser]:
        """Yield a client over a WebSocket that has said hello."""
        headers = [("authorization", f"Bearer {TOKEN}")]
        url = f"ws://{self.host}/ws"
        async with trio_websocket.open_websocket_url(url, extra_headers=headers, max_message_size=1 << 24) as socket:
            browser = Browser(socket)
            try:
                await browser.say("hello", version=1, **({"session": session} if session else {}), **hello)
                await browser.until("hello")
                if session:
                    await browser.until("approvals")
                yield browser
                await socket.aclose()
            finally:
                # The client leaves its own socket to the garbage collector where the server has closed first.
                await trio.aclose_forcefully(socket._stream)

    async def run(self, prompt: str, session: str = "") -> JSON:
        """Start a run over HTTP and return the receipt."""
        async with self.http() as client:
            answer = await client.post("/api/v1/runs", json={"prompt": prompt, "session": session})
            assert answer.status_code == 202, answer.text
            return dict(answer.json())


class Browser:
    """A client. `got` is everything it was sent, with `events` taken apart."""

    def __init__(self, socket: trio_websocket.WebSocketConnection) -> None:
        self.socket = socket
        self.got: list[JSON] = []
        self._seen = 0
        self._refs = itertools.count(1)

    async def say(self, type: str, **fields: Any) -> str:
        """Send a message and return its `ref`."""
        ref = f"m{next(self._refs)}"
        await self.socket.send_message(json.dumps({"type": type, "ref": ref, **fields}))
        return ref

    async def ask(self, type: str, **fields: Any) -> JSON:
        """Send a message and return what answers it."""
        ref = await self.say(type, **fields)
        return await self.until(lambda message: message.get("ref") == ref)

    async def next(self) -> JSON:
        """Return the next message."""
        with trio.fail_after(20):
            text = await self.socket.get_message()
        return self.take(text)

    def take(self, text: str) -> JSON:
        """Take a message that has come, and return it."""
        message = json.loads(text)
        if message["type"] == "events":
            self.got += [{**message, "type": "event", "event": event} for event in message["events"]]
        else:
            self.got.append(message)
        return dict(message)

    async def until(self, wanted: str | Callable[[JSON], bool]) -> JSON:
        """Return the next message of that type, or for which `wanted` holds, after the last one that was returned."""
        while True:
            while self._seen < len(self.got):
                message = self.got[self._seen]
                self._seen += 1
                if message["type"] == wanted if isinstance(wanted, str) else wanted(message):
                    return message
            await self.next()

    async def until_event(self, type: str) -> JSON:
        """Return the next event of that type."""
        found = await self.until(lambda message: message["type"] == "event" and message["event"]["type"] == type)
        return dict(found["event"])

    async def question(self, number: int = 1) -> list[JSON]:
        """Wait until so many questions are open, and return them."""
        last = [message for message in self.got[: self._seen] if message["type"] == "approvals"][-1:]
        if last and len(last[0]["items"]) >= number:
            return list(last[0]["items"])
        found = await self.until(lambda message: message["type"] == "approvals" and len(message["items"]) >= number)
        return list(found["items"])

    async def quiet(self) -> None:
        """Wait until no run is under way."""
        last = [message for message in self.got[: self._seen] if message["type"] == "state"][-1:]
        if not last or last[0]["run"] is not None:
            await self.until(lambda message: message["type"] == "state" and message["run"] is None)

    async def answer(self, asked: JSON, response: str, **more: Any) -> JSON:
        """Answer a question and return the receipt."""
        return await self.ask("permission_response", id=asked["id"], runId=asked["runId"], response=response, **more)

    @property
    def events(self) -> list[JSON]:
        """The events it was sent."""
        return [message["event"] for message in self.got if message["type"] == "event"]


@asynccontextmanager
async def serving(
    tmp_path: Path, script: str, flags: Mapping[str, Any] | None = None, *, simulate: bool = False
) -> AsyncIterator[Remote]:
    """Have a remote run for the time of the body. Its runs are stopped at the end."""
    bugs: list[Exception] = []
    setup = setup_in(tmp_path, script, flags, simulate=simulate)
    listening = await listen(Address(port=0))
    async with trio.open_nursery() as nursery:
        hub = Hub(setup, Store(setup.home, WallClock()), nursery, bugs.append)
        async with trio.open_nursery() as running:
            await running.start(serve, hub, listening, TOKEN)
            yield Remote(hub, listening.url, setup.cwd, bugs)
            await hub.close("SIGTERM", finish=False)
        nursery.cancel_scope.cancel()
    assert bugs == []
