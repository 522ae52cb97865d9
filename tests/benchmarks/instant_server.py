"""A model service that takes no time: every reply is bytes made beforehand, sent by a thread that does nothing else.

It also is the clock of the turns: it notes when it has sent a reply, and when the next request is there.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

__all__ = ["InstantServer", "instant_server"]


@attrs.define(eq=False)
class InstantServer:
    """`replies` are given in order and from the start again; a number among the frames of one is a pause in seconds."""

    replies: Sequence[Sequence[bytes | float]]
    url: str = ""
    turns: list[float] = attrs.field(factory=list)
    """Seconds from the end of one reply to the arrival of the next request of the same connection, whole."""
    sizes: list[int] = attrs.field(factory=list)
    """Bytes of each request's body."""
    _next: int = 0

    def serve(self, listener: socket.socket) -> None:
        """Accept connections until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        sent, room = None, bytearray(1 << 20)
        with connection:
            while (size := _request_read(connection, room)) is not None:
                self.sizes.append(size)
                if sent is not None:
                    self.turns.append(time.perf_counter() - sent)
                reply = self.replies[self._next % len(self.replies)]
                self._next += 1
                _send(connection, reply)
                sent = time.perf_counter()


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _send(connection: socket.socket, reply: Sequence[bytes | float]) -> None:
    """Send the frames up to a pause as one write."""
    ready = _HEAD
    for frame in reply:
        if isinstance(frame, bytes):
            ready += b"%x\r\n%b\r\n" % (len(frame), frame)
        else:
            connection.sendall(ready)
            ready = b""
            time.sleep(frame)
    connection.sendall(ready + b"0\r\n\r\n")


def _request_read(connection: socket.socket, room: bytearray) -> int | None:
    """Read a request and return the size of its body; `None` where none comes any more.

    The body goes into `room`, over and over: memory made anew for each would be measured as ours.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 16)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    size = int(fields[b"content-length"])
    left = size - len(body)
    while left > 0:
        taken = connection.recv_into(room, min(left, len(room)))
        if not taken:
            return None
        left -= taken
    return size


@contextmanager
def instant_server(*replies: Sequence[bytes | float]) -> Iterator[InstantServer]:
    """Serve on a free port of the loopback interface while the body runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = InstantServer(replies, f"http://127.0.0.1:{listener.getsockname()[1]}")
    thread = threading.Thread(target=server.serve, args=(listener,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
