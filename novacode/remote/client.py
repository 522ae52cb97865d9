"""One client: what it is sent, in which order, and what its messages do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from novacode.errors import SessionError
from novacode.remote import protocol, steering
from novacode.remote.bounds import BadMessage
from novacode.remote.hub import Hub
from novacode.remote.missed import Missed, Piece, of_records
from novacode.remote.protocol import ClientMessage
from novacode.remote.room import Room
from novacode.remote.states import Refusal, batch_of, room_state
from novacode.remote.watcher import Batch, Watcher
from novacode.sessions.journal import MemoryJournal
from novacode.values.parts import JSON

__all__ = ["Client", "TooSlow"]

Send = Callable[[Batch], Awaitable[None]]


class TooSlow(Exception):
    """A client reads nothing at all."""


class Client:
    """A browser or a script. `send_all` runs in one task, `take` in another; replies go out in the order of events."""

    def __init__(self, hub: Hub, name: str = "") -> None:
        self.hub = hub
        self.name = hub.client_name(name)
        self.watcher = Watcher(self.name)
        self.room: Room | None = None
        self._wish: tuple[Room, int | None] | None = None
        hub.watchers.add(self.watcher)

    def leave(self) -> None:
        """Watch nothing any more. Idempotent."""
        self.hub.watchers.discard(self.watcher)
        self.watcher.close()
        if self.room is not None:
            self.room.unwatch(self.watcher)
            self.room = None

    def tell(self, message: dict[str, JSON]) -> None:
        """Send a message, after the events before it."""
        if self.room is not None:
            self.room.audience.flush()
        self.watcher.put(Batch(protocol.encode(message)))

    def watch(self, room: Room, after: int | None) -> None:
        """Watch `room` from the event `after` on; from the beginning where that is `None`."""
        if self.room is not room:
            if self.room is not None:
                self.room.unwatch(self.watcher)
            self.room = room
            room.refresh()
            room.watch(self.watcher)
        self._wish = (room, after)
        self.watcher.again()

    # --- what it is sent --------------------------------------------------------------------------------------

    async def send_all(self, send: Send) -> None:
        """Send what there is, until the client has left. Raises `TooSlow`, and what `send` does."""
        watcher = self.watcher
        while True:
            await watcher.wait()
            if watcher.broken:
                raise TooSlow(self.name)
            if (batch := watcher.take()) is not None:
                await send(batch)
                watcher.sent = batch.last or watcher.sent
            elif watcher.missed or watcher.resync:
                await self._catch_up(send)
            elif watcher.closed:
                return

    async def _catch_up(self, send: Send) -> None:
        room, missed = self.room, self.watcher.missed
        if room is None:
            self.watcher.begin(0)
            return
        wish, self._wish = self._wish, None
        after: int | None = self.watcher.sent
        if wish is not None:
            after = wish[1]
        elif missed:
            await send(Batch(protocol.encode({"type": "lagging", "session": room.session, "missed": missed})))
        await self._sync(room, after, send)

    async def _sync(self, room: Room, after: int | None, send: Send) -> None:
        """Send what is on record after `after`, and the fragments of the turn under way, up to now.

        From now on what happens waits in the queue; it is sent after that, and after what is open now.
        """
        room.audience.flush()
        cut = room.audience.last_seq
        reset = after is None or after > cut
        start = 0 if after is None or reset else after
        tail = [one for one in room.audience.tail if start < one[0] <= cut]
        self.watcher.begin(cut)
        self.watcher.sent = start
        await send(Batch(protocol.encode({"type": "sync", "session": room.session, "reset": reset, "from": start})))
        pieces = _Pieces(room, start, cut)
        while (piece := await pieces.next()) is not None:
            before = [one for one in tail if one[0] < piece[-1][0]]
            tail = tail[len(before) :]
            await self._send_piece(room, sorted((*piece, *before)), send)
        if tail:
            await self._send_piece(room, tail, send)
        self.watcher.sent = max(cut, self.watcher.sent)
        await send(Batch(protocol.encode({"type": "synced", "session": room.session, "lastSeq": cut})))
        if self.room is room:
            self.tell(room_state(room, self.hub.shared.setup_of(room.session)))
            self.tell({"type": "approvals", "session": room.session, "items": room.approvals()})

    async def _send_piece(self, room: Room, piece: Piece, send: Send) -> None:
        await send(batch_of(room.session, piece))
        self.watcher.sent = piece[-1][0]

    # --- what it says -------------------------------------------------------------------------------------------

    async def take(self, message: ClientMessage) -> None:
        """Do what a message says, and answer it. Raises nothing for what cannot be done: that is told."""
        try:
            await self._take(message)
        except Refusal as refusal:
            self.tell(_error(refusal, message.ref))

    async def _take(self, message: ClientMessage) -> None:
        match message:
            case protocol.Ping():
                self.tell({"type": "pong", "ref": message.ref})
            case protocol.Hello():
                self.hello(message)
            case protocol.Open():
                self.watch(self.hub.room(message.session), self._since(message))
            case protocol.Resync():
                self.watch(self._watched(), message.last_seq)
            case protocol.New():
                self._begin(message.ref)
            case protocol.ListSessions():
                self.tell(await trio.to_thread.run_sync(self.hub.sessions, message.ref))
            case _:
                await self._steer(message)

    async def _steer(self, message: ClientMessage) -> None:
        match message:
            case protocol.PermissionResponse():
                self.tell(steering.answer(self.room, message, self.name))
            case protocol.Cancel():
                self.tell(steering.cancel(self.room, message, self.name))
            case protocol.Prompt():
                room = self.hub.room(message.session) if message.session else self.room or self._begin("")
                self.tell(await steering.prompt(self.hub, room, message))
            case protocol.Compact():
                self.tell(await steering.compact(self.hub, self._watched(), message))
            case protocol.SettingsChange():
                self.tell(steering.change(self._watched(), message))
            case protocol.Rewind():
                self.tell(await steering.rewind(self.hub, self._watched(), message))
            case _:
                raise AssertionError(message)

    def hello(self, message: protocol.Hello) -> None:
        """Answer a `hello`, and begin to watch what it names. Raises `BadMessage` and `Refusal`."""
        if message.version != protocol.VERSION:
            text = f"this server speaks version {protocol.VERSION} of the wire, and not {message.version}"
            raise BadMessage("version", text, ref=message.ref, fatal=True)
        room = self._named(message.session)
        self.tell(self.hub.hello(self.name, room))
        if room is not None:
            self.watch(room, self._since(message))

    def _named(self, session: str) -> Room | None:
        if not session or (session == "latest" and not self.hub.store.latest(self.hub.base.cwd)):
            return None
        return self.hub.room(session)

    def _since(self, message: protocol.Hello | protocol.Open) -> int | None:
        """Return the last event seen; `None` where it was seen under another server: numbers may mean others now."""
        return message.last_seq if message.server in ("", self.hub.instance) else None

    def _watched(self) -> Room:
        if self.room is None:
            raise Refusal("no_session", "no session is watched; send `open`, `new` or a `prompt` first")
        return self.room

    def _begin(self, ref: str) -> Room:
        room = self.hub.create()
        self.tell({"type": "session_created", "session": room.session, "ref": ref})
        self.watch(room, None)
        return room


class _Pieces:
    """What is on record of a session between two events, piece by piece."""

    def __init__(self, room: Room, after: int, until: int) -> None:
        self._after = after
        self._until = until
        self._missed = None if room.path is None else Missed(room.path)
        self._records: Piece | None = None
        self._at: int | None = None
        self._over = False
        if room.app is not None and isinstance(room.app.session.journal, MemoryJournal):
            self._missed = None
            self._records = of_records(room.app.session.journal.records, after, until)

    async def next(self) -> Piece | None:
        """Return the next piece, which is not empty; `None` at the end."""
        if self._records:
            records, self._records = self._records, None
            return records
        while self._missed is not None and not self._over:
            try:
                piece, self._at = await trio.to_thread.run_sync(
                    self._missed.read, self._after, self._until, self._at, abandon_on_cancel=True
                )
            except SessionError:
                return None
            self._over = self._at is None
            if piece:
                return piece
        return None


def _error(refusal: Refusal, ref: str) -> dict[str, JSON]:
    return {"type": "error", "code": refusal.code, "text": refusal.text, "ref": ref, "fatal": False}
