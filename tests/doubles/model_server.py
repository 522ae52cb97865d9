"""A real HTTP/1.1 server on trio that answers from a list, misbehaves on command, and remembers what it was asked.

    answers = [Answer.sse(b"data: 1\\n\\n", Stall())]
    async with serving(answers) as server:
        ...  # talk to server.url
    assert server.requests[0].json["model"] == "m"

For tests that drive a subprocess: `with server_in_thread(answers) as server:`. The answers may also be a function of
the request. What is left unanswered gets a 500 that says so.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import attrs
import h11
import trio

__all__ = ["Answer", "Close", "Pause", "Reset", "Seen", "Server", "Stall", "server_in_thread", "serving"]


@attrs.frozen
class Pause:
    """Wait before the next chunk."""

    seconds: float


@attrs.frozen
class Stall:
    """Say nothing more, with the connection open, until the client goes away."""


@attrs.frozen
class Close:
    """Close the connection without ending the body."""


@attrs.frozen
class Reset:
    """Close the connection with RST."""


Step = bytes | Pause | Stall | Close | Reset


@attrs.frozen
class Answer:
    """One response: a status, headers, and a body whose chunks are sent one by one (chunked, unless a length is given).

    `before` happens before the status line: a `Close` there is a server that hangs up without a word.
    """

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    before: tuple[Step, ...] = ()

    @classmethod
    def sse(cls, *steps: Step) -> Answer:
        return cls(steps, headers=(("content-type", "text/event-stream"),))

    @classmethod
    def error(cls, status: int, body: Any, *headers: tuple[str, str]) -> Answer:
        return cls((json.dumps(body).encode(),), status, (("content-type", "application/json"), *headers))


@attrs.frozen
class Seen:
    """A request as it arrived. `connection` counts the connections from 1."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answers = Sequence[Answer] | Callable[[Seen], Answer]


@attrs.define(eq=False)
class Server:
    """What a test sees of the server. `closed` counts the connections that are over, for whatever reason."""

    url: str = ""
    requests: list[Seen] = attrs.field(factory=list)
    opened: int = 0
    closed: int = 0
    _answers: Answers = ()
    _given: int = 0
    _error: Exception | None = None
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    async def wait_closed(self, count: int) -> None:
        """Return when `count` connections are over."""
        while self.closed < count:
            await self._changed.park()

    def _answer(self, seen: Seen) -> Answer:
        if callable(self._answers):
            try:
                return self._answers(seen)
            except Exception as error:  # noqa: BLE001 - raised at the end of `serving`
                # Raised here it could be lost: closing the connection is a checkpoint, where a `Cancelled` replaces it.
                self._error = error
                return Answer.error(500, {"error": {"type": "test_server", "message": repr(error)}})
        if self._given >= len(self._answers):
            text = f"request {self._given + 1} came, but only {len(self._answers)} answers were given"
            return Answer.error(500, {"error": {"type": "test_server", "message": text}})
        self._given += 1
        return self._answers[self._given - 1]

    async def _connection(self, stream: trio.SocketStream) -> None:
        self.opened += 1
        number = self.opened
        http = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while await self._exchange(stream, http, number):
                    http.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError):
            pass  # clients that go away are what this server is for
        finally:
            self.closed += 1
            self._changed.unpark_all()

    async def _exchange(self, stream: trio.SocketStream, http: h11.Connection, number: int) -> bool:
        """Serve one request; return whether the connection can be used again."""
        seen = await _read_request(stream, http, number)
        if seen is None:
            return False
        self.requests.append(seen)
        answer = self._answer(seen)
        early, whole = bytearray(), False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, stream, early, nursery.cancel_scope)
            # The client may go away while it is being answered; the watcher sees that too.
            with suppress(trio.BrokenResourceError):
                whole = await _send(stream, http, answer)
            nursery.cancel_scope.cancel()
        if early:
            http.receive_data(bytes(early))
        return whole and http.our_state is h11.DONE and http.their_state is h11.DONE


async def _read_request(stream: trio.SocketStream, http: h11.Connection, number: int) -> Seen | None:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Seen(head.method.decode(), head.target.decode(), headers, bytes(body), number)
        else:
            return None


async def _watch(stream: trio.SocketStream, early: bytearray, scope: trio.CancelScope) -> None:
    """Notice the client going away while an answer is being given; keep what it sends meanwhile."""
    with suppress(trio.BrokenResourceError):
        while data := await stream.receive_some(65536):
            early += data
    scope.cancel()


async def _send(stream: trio.SocketStream, http: h11.Connection, answer: Answer) -> bool:
    """Give `answer`; return whether the response is whole. The connection is closed by the caller where not."""
    if not await _steps(stream, None, answer.before):
        return False
    head = h11.Response(status_code=answer.status, headers=[(n.encode(), v.encode()) for n, v in answer.headers])
    await stream.send_all(http.send(head) or b"")
    if not await _steps(stream, http, answer.steps):
        return False
    await stream.send_all(http.send(h11.EndOfMessage()) or b"")
    return True


async def _steps(stream: trio.SocketStream, http: h11.Connection | None, steps: Iterable[Step]) -> bool:
    for step in steps:
        match step:
            case Pause(seconds):
                await trio.sleep(seconds)
            case Stall():
                await trio.sleep_forever()
            case Close():
                return False
            case Reset():
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            case bytes():
                await stream.send_all(step if http is None else http.send(h11.Data(data=step)) or b"")
    return True


@asynccontextmanager
async def serving(answers: Answers = ()) -> AsyncIterator[Server]:
    """Serve on a free port of the loopback interface for as long as the body runs.

    An answering function that raises gives the client a 500, and the test its exception at the end of the block.
    """
    server = Server(answers=answers)
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, server._connection, [listener])
        yield server
        nursery.cancel_scope.cancel()
    if server._error is not None:
        raise server._error


@contextmanager
def server_in_thread(answers: Answers = ()) -> Iterator[Server]:
    """Do the same from a thread of its own, for tests whose client is another process."""
    ready = threading.Event()
    box: dict[str, Any] = {}

    async def main() -> None:
        async with serving(answers) as server:
            stop = trio.Event()
            box.update(server=server, stop=stop, token=trio.lowlevel.current_trio_token())
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as error:  # noqa: BLE001 - handed to the test below
            box["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="model-server")
    thread.start()
    ready.wait()
    if "error" in box:
        raise box["error"]
    try:
        yield box["server"]
    finally:
        with suppress(trio.RunFinishedError):  # it has crashed; the error is raised below
            box["token"].run_sync_soon(box["stop"].set)
        thread.join()
        if "error" in box:
            raise box["error"]  # it says why the client failed, which is all that the body can say
