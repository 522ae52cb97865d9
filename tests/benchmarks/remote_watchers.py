"""So many clients of the remote that only watch, cheap enough to share a machine with what they watch.

`remote_watchers.py PORT TOKEN SESSION NUMBER DEAF` prints `ready` when all have caught up and, when all have seen the
run end, a JSON list: of each client, the last `seq` of each frame and the time it came. DEAF further ones never read.
"""

from __future__ import annotations

import base64
import json
import os
import re
import selectors
import socket
import sys
import time

_SEQ = re.compile(rb'"seq":(\d+),"run_id"')


class Watcher:
    """One connection."""

    def __init__(self, port: int, token: str, session: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.buffer = b""
        self.ready = self.over = False
        self.seen: list[tuple[int, float]] = []
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(65536)
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101"), head
        hello = json.dumps({"type": "hello", "version": 1, "session": session}).encode()
        assert len(hello) < 126
        # A mask of zeros: the text stands as it is.
        self.socket.sendall(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)

    def read(self) -> None:
        """Take what has come."""
        data = self.socket.recv(1 << 20)
        assert data, "the server has closed"
        now = time.monotonic()
        self.buffer += data
        while (frame := self._frame()) is not None:
            if b'"type":"approvals"' in frame[:40]:
                self.ready = True
            elif found := _SEQ.findall(frame):
                self.seen.append((int(found[-1]), now))
                self.over = self.over or (self.ready and b'"type":"run_ended"' in frame)

    def _frame(self) -> bytes | None:
        data = self.buffer
        if len(data) < 2:
            return None
        length, start = data[1] & 127, 2
        if length >= 126:
            size = 2 if length == 126 else 8
            if len(data) < 2 + size:
                return None
            length, start = int.from_bytes(data[2 : 2 + size], "big"), 2 + size
        if len(data) < start + length:
            return None
        self.buffer = data[start + length :]
        return data[start : start + length]


def main(port: int, token: str, session: str, number: int, deaf: int) -> None:
    """Watch one run."""
    watchers = [Watcher(port, token, session) for _ in range(number)]
    silent = [Watcher(port, token, session) for _ in range(deaf)]
    found = selectors.DefaultSelector()
    for watcher in watchers:
        found.register(watcher.socket, selectors.EVENT_READ, watcher)
    told = False
    while not all(watcher.over for watcher in watchers):
        for key, _ in found.select():
            key.data.read()
        if not told and all(watcher.ready for watcher in watchers):
            told = True
            for watcher in watchers:
                watcher.seen.clear()
            print("ready", flush=True)
    print(json.dumps([watcher.seen for watcher in watchers]), flush=True)
    for watcher in (*watchers, *silent):
        watcher.socket.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
