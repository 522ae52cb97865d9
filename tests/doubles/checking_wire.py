"""A wire with the rules of the real services behind it, and a model that can change its provider in between."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs
import trio
from doubles.rules import violations
from doubles.spoken import PROTOCOLS, Lost, Rest

from novacode.errors import ModelFailed
from novacode.models.client import ModelClient, ModelStream
from novacode.protocols.base import Codec, WireRequest
from novacode.protocols.openai_chat import OpenAIChatCodec
from novacode.protocols.quirks import quirks_for
from novacode.protocols.summary import codec_for
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import CallIds
from novacode.values.request import ModelRequest

__all__ = ["CheckingWire", "Switching", "codec_of"]

_SSE = {"content-type": "text/event-stream"}

Reply = Sequence[bytes | Rest | Lost]


def codec_of(protocol: str) -> Codec:
    """Return a codec; Chat Completions in the dialect that wants its reasoning back, which is the strictest."""
    return OpenAIChatCodec(quirks_for("deepseek")) if protocol == "openai-chat" else codec_for(protocol)


@attrs.define
class _Response:
    status: int
    headers: Mapping[str, str]
    frames: list[bytes | Rest | Lost]

    async def receive_some(self) -> bytes:
        await trio.lowlevel.checkpoint()
        while self.frames:
            match self.frames.pop(0):
                case Rest(seconds):
                    await trio.sleep(seconds)
                case Lost():
                    raise ModelFailed(Failure(FailureKind.NETWORK, "the connection broke", retryable=True))
                case data:
                    return data
        return b""


class CheckingWire:
    """Answers with the next of `replies`, and with 400 whatever the real service would refuse. `refused` says why."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.replies: list[Reply] = []
        self.bodies: list[bytes] = []
        self.refused: list[str] = []

    @asynccontextmanager
    async def open(self, request: WireRequest) -> AsyncIterator[_Response]:
        await trio.lowlevel.checkpoint()
        self.bodies.append(request.body)
        broken = violations(self.protocol, request.body)
        self.refused += broken
        if broken:
            error = {"error": {"type": "invalid_request_error", "message": str(broken)}}
            yield _Response(400, {}, [json.dumps(error).encode()])
        elif not self.replies:
            yield _Response(500, {}, [b"the test gave no reply for this request"])
        else:
            yield _Response(200, _SSE, list(self.replies.pop(0)))

    async def aclose(self) -> None:
        return None


class Switching:
    """All providers of one session. `protocol` says which of them is asked next."""

    def __init__(self, protocol: str, make_codec: Callable[[str], Codec] = codec_of) -> None:
        ids = CallIds()
        self.protocol = protocol
        self.wires = {name: CheckingWire(name) for name in (*PROTOCOLS, "ollama")}
        self._clients = {name: ModelClient(make_codec(name), wire, ids) for name, wire in self.wires.items()}

    @property
    def issuer(self) -> str:
        return self._clients[self.protocol].issuer

    @property
    def wire(self) -> CheckingWire:
        """The wire of the provider that is asked next."""
        return self.wires[self.protocol]

    @property
    def refused(self) -> dict[str, list[str]]:
        """What the services refused, by protocol."""
        return {name: wire.refused for name, wire in self.wires.items() if wire.refused}

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelStream]:
        return self._clients[self.protocol].stream(request)
