"""What the decoders of all protocols share: the contract of `base.Decoder`, kept in one place."""

from __future__ import annotations

from novacode.errors import LocalProtocolError, ModelFailed, NovaError, RemoteProtocolError
from novacode.protocols import jsonio
from novacode.protocols.assemble import Assembler
from novacode.protocols.framing import Framer
from novacode.values.events import ModelEvent
from novacode.values.ids import CallIds
from novacode.values.parts import JSON

__all__ = ["BodyDecoder"]

# A message whose fields are missing or of another type shows as one of these, wherever it is taken apart. Only the
# peer's data reaches that code; the fuzz tests hold that nothing else comes out of a decoder.
_WRONG_SHAPE = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)


class BodyDecoder:
    """A decoder of one response body. Subclasses say what a message means and what the end of the body does.

    An error is raised by the call that finds it when there are no events before it to return, else by the next one;
    `error` is set at once in both cases.
    """

    def __init__(self, framer: Framer, ids: CallIds) -> None:
        self.error: NovaError | None = None
        self.finished = False
        self._framer = framer
        self._closed = False
        self._payload = b""
        self._parts = Assembler(ids)

    def feed(self, data: bytes) -> list[ModelEvent]:
        """Take more bytes and return what they complete. Raises `error`, once everything before it was returned."""
        if self._closed:
            raise LocalProtocolError("a decoder was fed after it was closed")
        if self.error is not None:
            raise self.error
        return self._read(data)

    def close(self) -> list[ModelEvent]:
        """The body has ended. Returns the last events; raises `error` as `feed` does. A second call returns nothing."""
        if self.error is not None:
            raise self.error
        if self._closed:
            return []
        self._closed = True
        return self._read(None)

    def _read(self, data: bytes | None) -> list[ModelEvent]:
        events = self._parts.events
        try:
            if data is None:
                self._take_last()
            else:
                for name, payload in self._framer.feed(data):
                    self._take(name, payload)
            if self._framer.problem and not self._parts.finished:
                raise RemoteProtocolError(self._framer.problem)
        except (RemoteProtocolError, ModelFailed) as error:
            self.error = error
        self.finished = self._parts.finished
        taken = events[:]
        events.clear()
        if self.error is not None and not taken:
            raise self.error
        return taken

    def _take_last(self) -> None:
        for name, payload in self._framer.close():
            try:
                self._take(name, payload)
            except RemoteProtocolError:
                if not self._may_end():
                    raise
                break  # the cut went through a message, but everything that counts had come
        if not self._parts.finished:
            try:
                self._end()  # takes apart what messages only left behind
            except _WRONG_SHAPE as error:
                raise RemoteProtocolError(_unreadable(self._payload, error)) from error

    def _take(self, name: bytes, payload: bytes) -> None:
        """Take one message. Blank data and comments inside data are keep-alives of some gateways."""
        if self._parts.finished:
            return
        self._payload = payload
        try:
            if payload.startswith(b"{"):
                self._message(name, jsonio.load(payload))
                return
            payload = payload.strip()
            if payload and not payload.startswith(b":") and not self._mark(payload):
                value = jsonio.load(payload)
                if not isinstance(value, dict):
                    raise TypeError("not an object")
                self._message(name, value)
        except _WRONG_SHAPE as error:
            raise RemoteProtocolError(_unreadable(payload, error)) from error

    def _message(self, name: bytes, message: dict[str, JSON]) -> None:
        """Take one message apart."""
        raise NotImplementedError

    def _mark(self, payload: bytes) -> bool:
        """Whether `payload`, which is no object, is a mark of this protocol; it is acted on here."""
        return False

    def _may_end(self) -> bool:
        """Whether what has come is a whole response, so that the body may end here."""
        raise NotImplementedError

    def _end(self) -> None:
        """The body has ended without the end mark: finish, or raise `RemoteProtocolError`."""
        raise NotImplementedError


def _unreadable(payload: bytes, error: Exception) -> str:
    shown = payload[:200].decode("utf-8", "replace")
    return f"a message of the stream cannot be read ({type(error).__name__}: {error}): {shown!r}"
