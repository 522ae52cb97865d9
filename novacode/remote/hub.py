"""All sessions of one folder, for all clients: finding, beginning, listing them, and the end of the server."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import attrs
import trio

from novacode._version import VERSION
from novacode.app.setup import SessionWish, Setup
from novacode.authority.modes import Mode
from novacode.errors import SessionError
from novacode.remote import protocol
from novacode.remote.bounds import BOUNDS
from novacode.remote.missed import last_seq
from novacode.remote.room import Room
from novacode.remote.states import Refusal, Shared, listed
from novacode.remote.watcher import Batch, Watcher
from novacode.sessions.store import Store, project_key
from novacode.values.parts import JSON

__all__ = ["Hub"]

_MOST_OPEN = 32
_MOST_LISTED = 500
_CLOSING = 10.0
"""Seconds in which, after the last run, the sessions are closed: hooks are told, journals are brought to the disk."""


class Hub:
    """The rooms of one folder. `base` is what each session is made from but for its id; `bug` is told of bugs."""

    def __init__(self, base: Setup, store: Store, nursery: trio.Nursery, bug: Callable[[Exception], None]) -> None:
        self.base = base
        self.store = store
        self.instance = os.urandom(8).hex()
        self.shared = Shared(nursery, self._setup_of, bug)
        self.rooms: dict[str, Room] = {}
        self.watchers: set[Watcher] = set()
        self.over = trio.Event()
        self._numbers = itertools.count(1)
        self._folder = project_key(base.cwd)

    def client_name(self, given: str) -> str:
        """Return the name of a new client: what others see, and what the journal says of its answers."""
        word = "".join(character for character in given if character.isprintable() and character not in "()")[:40]
        return f"client-{next(self._numbers)}" + (f" ({word.strip()})" if word.strip() else "")

    def hello(self, client: str, room: Room | None = None) -> dict[str, JSON]:
        """Return the server's `hello`."""
        watched = {} if room is None else {"session": room.session, "lastSeq": room.audience.last_seq}
        bounds = BOUNDS
        return {
            "type": "hello",
            "version": protocol.VERSION,
            "server": self.instance,
            "client": client,
            "novacode": VERSION,
            **watched,
            "modes": [mode.value for mode in Mode],
            "folder": str(self.base.cwd),
            "simulate": self.base.simulate,
            "bounds": {"message": bounds.size, "depth": bounds.depth, "values": bounds.values},
        }

    def sessions(self, ref: str = "") -> dict[str, JSON]:
        """Return the list of sessions. Reads the head and the tail of each file: for a thread."""
        found = self.store.list(self.base.cwd)[:_MOST_LISTED]
        items: list[JSON] = [listed(summary, self.rooms.get(summary.id)) for summary in found]
        return {"type": "sessions", "ref": ref, "items": items}

    def room(self, wanted: str) -> Room:
        """Return the room of the session `wanted`: an id, the beginning of one, or `latest`. Raises `Refusal`."""
        if wanted in self.rooms:
            return self.rooms[wanted]
        wanted = (self.store.latest(self.base.cwd) or "") if wanted == "latest" else wanted
        try:
            path = self.store.find(wanted, self.base.cwd)
        except SessionError as error:
            raise Refusal("no_session", str(error)) from None
        if path.parent.name != self._folder:
            raise Refusal("no_session", f"{wanted!r} is a session of another folder than {self.base.cwd}")
        return self._room(path.stem, path)

    def create(self) -> Room:
        """Begin a session. Raises `Refusal` where none can be kept."""
        self.shared.must_be_open()
        made = self.store.create(self.base.cwd)
        made.close()
        if made.path is None:
            raise Refusal("failed", "; ".join(made.notices) or "the session cannot be kept")
        return self._room(made.id, made.path)

    def may_open(self, room: Room) -> None:
        """Raise `Refusal` where too many sessions are open already."""
        if room.app is None and sum(one.app is not None for one in self.rooms.values()) >= _MOST_OPEN:
            raise Refusal("busy", f"{_MOST_OPEN} sessions are open; wait until one of them is not used any more")

    def _room(self, session: str, path: Path) -> Room:
        if session not in self.rooms:
            for name, room in tuple(self.rooms.items()):
                if room.unused:
                    del self.rooms[name]
            self.rooms[session] = Room(self.shared, session, path, last_seq(path))
        return self.rooms[session]

    def _setup_of(self, session: str) -> Setup:
        return attrs.evolve(self.base, session=SessionWish(wanted=session), somebody=True)

    def tell(self, message: dict[str, JSON]) -> None:
        """Send `message` to all clients, whatever they watch."""
        batch = Batch(protocol.encode(message))
        for room in self.rooms.values():
            room.audience.flush()
        for watcher in self.watchers:
            watcher.put(batch)

    def stop_all(self, reason: str) -> None:
        """Ask every run to stop."""
        for room in self.rooms.values():
            room.stop(reason)

    def hurry_all(self) -> None:
        """Skip every grace under way."""
        for room in self.rooms.values():
            if room.app is not None:
                room.app.processes.hurry()

    async def close(self, reason: str, *, finish: bool) -> None:
        """Tell all clients that the server ends, stop the runs or wait for them, and close the sessions."""
        self.shared.closing = reason
        self.tell({"type": "closing", "reason": reason, "grace": _CLOSING, "finish": finish})
        if not finish:
            self.stop_all(reason)
        rooms = tuple(self.rooms.values())
        for room in rooms:
            await room.quiet()
        with trio.move_on_after(_CLOSING):
            async with trio.open_nursery() as nursery:
                for room in rooms:
                    nursery.start_soon(_give_back, room)
        for watcher in self.watchers:
            watcher.close()
        self.over.set()


async def _give_back(room: Room) -> None:
    async with room.given_back():
        pass
