"""Head and tail of an output that may be without end, in bounded memory."""

from __future__ import annotations

__all__ = ["Clip", "clip_text"]


class Clip:
    """Collects bytes; keeps the first and the last of them, `limit` in all, and counts the rest.

    Half of the limit is head and half tail. Feeding is linear and holds at most about 1.5 times the limit.
    """

    def __init__(self, limit: int) -> None:
        if limit < 2:
            raise ValueError(f"limit is {limit}; it must be 2 bytes or more")
        self._head_room = limit // 2
        self._tail_room = limit - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self.total += len(data)
        missing = self._head_room - len(self._head)
        if missing > 0:
            self._head += data[:missing]
            data = data[missing:]
        if len(data) >= self._tail_room:
            self._tail[:] = data[-self._tail_room :]
            return
        self._tail += data
        if len(self._tail) > 2 * self._tail_room:
            del self._tail[: -self._tail_room]

    @property
    def omitted(self) -> int:
        """How many bytes in the middle are not kept."""
        return max(0, self.total - self._head_room - self._tail_room)

    def text(self, where_the_rest_is: str = "") -> str:
        """Return what was kept as text: bad bytes become U+FFFD, and a line says how much is left out."""
        tail = bytes(self._tail[-self._tail_room :])
        if not self.omitted:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        hint = f"; {where_the_rest_is}" if where_the_rest_is else ""
        marker = f"\n[... {self.omitted} bytes left out{hint} ...]\n"
        return _whole(bytes(self._head), "end") + marker + _whole(tail, "start")


def clip_text(text: str, limit: int, where_the_rest_is: str = "") -> str:
    """Return `text` cut to about `limit` bytes of UTF-8, head and tail, with a line that says how much is left out."""
    data = text.encode("utf-8", "surrogatepass" if not text.isascii() else "strict")
    if len(data) <= limit:
        return text
    clip = Clip(limit)
    clip.feed(data)
    return clip.text(where_the_rest_is)


def _whole(data: bytes, side: str) -> str:
    """Decode without the character that the cut went through."""
    if side == "end":
        for back in range(1, min(4, len(data)) + 1):
            byte = data[-back]
            if byte & 0xC0 != 0x80:  # the last byte that starts a character
                width = 1 if byte < 0x80 else 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4
                data = data[:-back] if width > back else data
                break
    else:
        start = 0
        while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
            start += 1
        data = data[start:]
    return data.decode("utf-8", "replace")
