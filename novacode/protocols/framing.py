"""A response body as messages: Server-Sent Events or JSON lines, incremental and bounded.

Both work on bytes. Text helpers that split lines also split at U+2028, U+0085 and others, which are legal inside JSON.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["LIMIT", "Framer", "LineFramer", "Message", "SseFramer"]

LIMIT = 16 * 2**20
"""Bytes one message may have. The longest real ones are whole files in tool arguments, far below it."""

Message = tuple[bytes, bytes]
"""The event's name, empty where it has none, and its data."""


class Framer(Protocol):
    """Bytes in, whole messages out."""

    problem: str
    """Why no more messages will come, or empty. Messages before the problem were returned."""

    def feed(self, data: bytes) -> list[Message]:
        """Take more bytes and return the messages they complete."""
        ...

    def close(self) -> list[Message]:
        """The body has ended: return a last message that lacks its end mark."""
        ...


class _Lines:
    """Bytes to lines without their ends, for LF, CRLF and lone CR, also where a chunk cuts a CRLF in two."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self.held = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        if self._at_start:
            data = self._without_mark(data)
        if self._after_cr or b"\r" in data:
            data = self._unified(data)
        cut = data.rfind(b"\n")
        if cut < 0:
            if data:
                self._rest.append(data)
                self.held += len(data)
            return []
        block, rest = data[:cut], data[cut + 1 :]
        if self._rest:
            block = b"".join((*self._rest, block))
        self._rest = [rest] if rest else []
        self.held = len(rest)
        return block.split(b"\n")

    def close(self) -> bool:
        """No more bytes come. Returns whether a line without an end is left; feeding a line end brings it out."""
        self._after_cr = False
        return bool(self._rest)

    def _without_mark(self, data: bytes) -> bytes:
        """Drop a byte order mark, which may come in pieces."""
        data = b"".join((*self._rest, data))
        self._rest, self.held = [], 0
        if len(data) < 3 and b"\xef\xbb\xbf".startswith(data):
            self._rest, self.held = [data], len(data)
            return b""
        self._at_start = False
        return data.removeprefix(b"\xef\xbb\xbf")

    def _unified(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class SseFramer:
    """Server-Sent Events as the standard reads them, with two exceptions.

    An event that the end of the body cuts off before its blank line counts, because some servers never send the last
    one. And a JSON object that stands there without `data:`, which the standard skips, is a message at the end of the
    body: that is how some servers and proxies report an error, with status 200.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.problem = ""
        self._limit = limit
        self._lines = _Lines()
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0
        self._bare: list[bytes] = []

    def feed(self, data: bytes) -> list[Message]:
        """Take more bytes and return the messages they complete."""
        messages: list[Message] = []
        if self.problem:
            return messages
        for line in self._lines.feed(data):
            if not line:
                if self._data:
                    messages.append((self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
                    self._data = []
                    self._size = sum(map(len, self._bare))
                self._name = b""
            elif line.startswith(b"data:"):
                self._add(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event: "):
                self._name = line[7:]
            else:
                self._field(line)
            if self._size > self._limit:
                break
        self._measure(self._size + self._lines.held)
        return messages

    def close(self) -> list[Message]:
        """The body has ended: return a last message that lacks its blank line."""
        messages = self.feed(b"\n") if self._lines.close() else []
        messages += self.feed(b"\n") if self._data else []
        return [*messages, (b"", b"\n".join(self._bare))] if self._bare and not self.problem else messages

    def _add(self, value: bytes) -> None:
        self._data.append(value)
        self._size += len(value) + 1

    def _field(self, line: bytes) -> None:
        """Take a line that is not plain data; comments and fields without a use here are skipped."""
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ")
        elif name == b"data":
            self._add(value.removeprefix(b" "))
        elif self._bare or line.startswith(b"{"):
            self._bare.append(line)
            self._size += len(line) + 1

    def _measure(self, size: int) -> None:
        if size > self._limit:
            self.problem = f"a message of the stream is longer than {self._limit} bytes"


class LineFramer:
    """One JSON value a line."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.problem = ""
        self._limit = limit
        self._lines = _Lines()

    def feed(self, data: bytes) -> list[Message]:
        """Take more bytes and return the messages they complete."""
        messages: list[Message] = []
        if self.problem:
            return messages
        for line in self._lines.feed(data):
            if len(line) > self._limit:
                break
            if line:
                messages.append((b"", line))
        else:
            if self._lines.held <= self._limit:
                return messages
        self.problem = f"a line of the stream is longer than {self._limit} bytes"
        return messages

    def close(self) -> list[Message]:
        """The body has ended: return a last line without an end."""
        return self.feed(b"\n") if self._lines.close() else []
