"""One end of a JSON-RPC conversation: who asked what, and which answer is whose.

Every request has exactly one waiter, under a number that is never used again. An answer that nobody waits for (late,
double, of an unknown number) is dropped, so a server that answers after a cancel disturbs nobody.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping

import attrs
import trio

from novacode.errors import NovaError
from novacode.values.parts import JSON

__all__ = ["Peer", "PeerClosed", "PeerError"]


class PeerError(NovaError):
    """The server has answered with an error."""


class PeerClosed(NovaError):
    """There is no server any more; the text says why."""


@attrs.define(eq=False)
class _Waiter:
    answered: trio.Event = attrs.field(factory=trio.Event)
    result: JSON = None
    failure: NovaError | None = None

    def settle(self, result: JSON, failure: NovaError | None = None) -> None:
        self.result, self.failure = result, failure
        self.answered.set()


class Peer:
    """Asks and is asked. `send` takes one message to be written; it is synchronous, so what is sent is sent.

    `noise` counts what was received and is no message, `dropped` answers that nobody waited for.
    """

    def __init__(self, send: Callable[[Mapping[str, JSON]], None]) -> None:
        self.noise = 0
        self.dropped = 0
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiter] = {}
        self._closed = ""

    async def request(self, method: str, params: Mapping[str, JSON], *, tell_cancel: bool = True) -> JSON:
        """Ask, and return the result. Cancelled, the server is told at once, and nothing is waited for.

        Raises `PeerError` for an error as the answer and `PeerClosed` where the server is gone.
        """
        if self._closed:
            raise PeerClosed(self._closed)
        number = next(self._numbers)
        waiter = self._waiting[number] = _Waiter()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)})
        try:
            await waiter.answered.wait()
        except trio.Cancelled:
            if tell_cancel and not waiter.answered.is_set():
                self.notify("notifications/cancelled", {"requestId": number, "reason": "cancelled by the client"})
            raise
        finally:
            self._waiting.pop(number, None)
        if waiter.failure is not None:
            raise waiter.failure
        return waiter.result

    def notify(self, method: str, params: Mapping[str, JSON] | None = None) -> None:
        """Tell something that has no answer. Synchronous; nothing happens where the server is gone."""
        if not self._closed:
            self._send({"jsonrpc": "2.0", "method": method} | ({"params": dict(params)} if params else {}))

    def receive_line(self, line: bytes) -> None:
        """Take one line of the server's."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self.noise += 1
            return
        self.receive(message)

    def receive(self, message: JSON) -> None:
        """Take one message of the server's."""
        if not isinstance(message, Mapping) or message.get("jsonrpc") != "2.0":
            self.noise += 1
        elif isinstance(message.get("method"), str):
            self._asked(message)
        else:
            self._answered(message)

    def close(self, why: str) -> None:
        """There is no server any more: everybody who waits is told `why`, and whoever asks from now on."""
        self._closed = self._closed or why
        for waiter in self._waiting.values():
            if not waiter.answered.is_set():
                waiter.settle(None, PeerClosed(self._closed))

    def _answered(self, message: Mapping[str, JSON]) -> None:
        number = message.get("id")
        # `true` and `1.0` are equal to 1, and were never sent.
        waiter = self._waiting.get(number) if type(number) is int else None
        if waiter is None or waiter.answered.is_set():
            self.dropped += 1
        elif (error := message.get("error")) is not None:
            told = error if isinstance(error, Mapping) else {"message": str(error)}
            text = str(told.get("message") or "no message")
            waiter.settle(None, PeerError(f"{text} (code {told['code']})" if "code" in told else text))
        else:
            waiter.settle(message.get("result"))

    def _asked(self, message: Mapping[str, JSON]) -> None:
        """Answer what a server may ask: whether we are there. Everything else we have not offered."""
        if "id" not in message or self._closed:
            return
        answer: dict[str, JSON] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            self._send(answer | {"result": {}})
        else:
            self._send(answer | {"error": {"code": -32601, "message": f"not offered: {message['method']!s:.100}"}})
