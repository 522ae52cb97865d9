"""The remote's room around an agent on doubles: everything that decides about answers, without sockets and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import trio
from doubles.fake_model import call, end, say
from doubles.world import World

from novacode.app.choosing import Choice, scripted
from novacode.app.settings import Places, load_settings
from novacode.app.setup import Setup
from novacode.authority.modes import Mode
from novacode.engine.agent import Agent
from novacode.engine.bus import Bus
from novacode.models.script import Script
from novacode.remote import protocol, steering
from novacode.remote.room import Room
from novacode.remote.states import Shared
from novacode.remote.watcher import Watcher
from novacode.sessions.store import Session, memory_session
from novacode.values.events import ApprovalAsked
from novacode.values.ids import CallId, SessionId
from novacode.values.request import StopReason
from novacode.workspace.base import Processes

__all__ = ["AppOnDoubles", "RemoteWorld", "Sent", "asking_world", "opened_room", "send"]

JSON = dict[str, Any]
_NOWHERE = Path("/nowhere")


@attrs.define
class AppOnDoubles:
    """What a room needs of an opened session."""

    agent: Agent
    bus: Bus
    setup: Setup
    processes: Processes
    choice: Choice
    session: Session = attrs.field(factory=lambda: memory_session(SessionId("s")))
    notices: Sequence[str] = ()


@attrs.frozen
class Sent:
    """An answer that was sent, what came back, and whether its question was open at that moment."""

    id: str
    run_id: str
    response: str
    reply: JSON
    was_open: bool


def opened_room(agent: Agent, bus: Bus, nursery: trio.Nursery | None = None) -> Room:
    """Return a room in which `agent` is open."""
    choice = scripted("doubles", Script("doubles", ()))
    setup = Setup(load_settings(Places(_NOWHERE, _NOWHERE), {}), {}, _NOWHERE, _NOWHERE, choice=choice)
    room = Room(Shared(nursery, lambda _: setup, _raise), "s", None, 0)  # type: ignore[arg-type]
    app = AppOnDoubles(agent, bus, setup, agent.services.processes, choice)
    room._attach(app, nursery)  # type: ignore[arg-type]
    return room


def send(room: Room, **fields: Any) -> Sent:
    """Send an answer as a client would, as text; the reply is what the client gets. Without a checkpoint."""
    message = protocol.parse(json.dumps({"type": "permission_response", **fields}))
    assert isinstance(message, protocol.PermissionResponse)
    run = None if room.app is None else room.app.agent.active
    open_ = [] if run is None else [(run.id, asked.approval_id) for asked in run.kit.desk.pending]
    was_open = (message.run_id, message.id) in open_
    reply = steering.answer(room, message, "client-1")
    return Sent(message.id, message.run_id, message.response, json.loads(protocol.encode(reply)), was_open)


def _raise(error: Exception) -> None:
    raise error


class RemoteWorld(World):
    """A world whose questions are answered by a client of the remote, who also says a good many wrong things.

    `sent` is what it said, and what came back.
    """

    def __init__(self, replies: Sequence[Sequence[Any]] = (), *, response: str = "allow", **more: Any) -> None:
        super().__init__(replies, **more)
        self.permissions.policy = SimpleNamespace(mode=Mode.DEFAULT)
        self.sent: list[Sent] = []
        self.watcher = Watcher("client-1")
        self.room: Room | None = None
        self._response = response
        self._over = False
        self._old: list[tuple[str, str]] = []

    async def person(self) -> None:
        """Read frames, and answer each list of questions: wrongly in every way, and then rightly."""
        self.room = opened_room(self.agent, self.bus)
        self.room.watch(self.watcher)
        while True:
            await self.watcher.wait()
            batch = self.watcher.take()
            message = {} if batch is None else json.loads(batch.text)
            if message.get("type") != "approvals":
                continue
            for item in message["items"]:
                await trio.lowlevel.checkpoint()
                self._say_wrong(item["id"], item["runId"])
                self._old.append((item["id"], item["runId"]))
                if self._response and not self._over:
                    await trio.sleep(1)
                    self._say(id=item["id"], runId=item["runId"], response=self._response)

    def next_act(self, *, asking: bool) -> str:
        """As in the world; from now on only wrong things are said."""
        self._over = True
        if self.room is not None:
            for id, run_id in self._old:
                self._say(id=id, runId=run_id, response="allow")
        return super().next_act(asking=asking)

    def _say(self, **fields: Any) -> None:
        assert self.room is not None
        self.sent.append(send(self.room, **fields))

    def _say_wrong(self, id: str, run_id: str) -> None:
        for given in (
            {},
            {"id": id},
            {"runId": run_id},
            {"id": id, "runId": None},
            {"id": id, "runId": f"{run_id}0"},
            {"id": f"{id}0", "runId": run_id},
            {"id": id, "runId": run_id.upper()},
            *({"id": old, "runId": run_id} for old, _ in self._old if old != id and not self._open(old)),
            *({"id": id, "runId": old} for _, old in self._old if old != run_id),
            *({"id": old, "runId": other} for old, other in self._old if not self._open(old)),
        ):
            self._say(**given, response="allow")

    def _open(self, id: str) -> bool:
        run = self.agent.active
        return run is not None and any(asked.approval_id == id for asked in run.kit.desk.pending)

    @property
    def wrongs(self) -> list[str]:
        """What must never be: an answer without a receipt, or one that counted and had no open question."""
        found = []
        for sent in self.sent:
            if sent.reply["type"] not in ("receipt", "ignored"):
                found.append(f"no receipt: {sent}")
            if (sent.reply["type"] == "receipt") is not sent.was_open:
                found.append(f"it counted, and was not open; or the other way round: {sent}")
        return found

    @property
    def events_asked(self) -> list[ApprovalAsked]:
        """The questions there were."""
        return list(self.of(ApprovalAsked))

    @property
    def released(self) -> set[CallId]:
        """The calls that an answer has allowed."""
        return {asked for asked in self.ran if self.ran[asked].name == "asks"}


def asking_world(response: str = "allow") -> RemoteWorld:
    """A world with two questions, of calls among others."""
    first = [
        call("a", "asks", 1, takes=1),
        call("b", "work", 2, takes=2),
        call("c", "asks", 3, takes=1, writes=["x"]),
        end(StopReason.TOOL_USE),
    ]
    return RemoteWorld([first, [say("done"), end()]], response=response)
