"""What every wire must hold. The same three replies are asked of each: one in chunks, one refused, one that breaks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import assert_checkpoints

from novacode.errors import ModelFailed
from novacode.models.wire import Wire, WireResponse
from novacode.protocols.base import WireRequest
from novacode.values.failure import FailureKind

__all__ = ["PAUSE", "REQUEST", "SCRIPT", "check_wire"]

REQUEST = WireRequest("POST", "/v1/messages", {"content-type": "application/json"}, (b'{"messages":[]}',))

PAUSE = 0.2
"""Seconds of silence in the middle of the last reply."""

SCRIPT = f"""
[[turn]]
steps = [ {{ text = "one two three", fragments = 3 }} ]

[[turn]]
steps = [ {{ text = "read only a bit of this", fragments = 5 }} ]

[[turn]]
steps = [ {{ status = 429, message = "too many", retry_after = 7 }} ]

[[turn]]
steps = [ {{ text = "it breaks" }}, {{ disconnect = true }} ]

[[turn]]
steps = [ {{ text = "slow" }}, {{ pause = {PAUSE} }}, {{ text = "ly" }} ]

[[turn]]
steps = [ {{ text = "after all" }} ]
"""
"""The replies a wire has to give, in order, as a scripted model says them."""


async def check_wire(wire: Wire) -> None:
    """Attack `wire`, whose replies are those of `SCRIPT`. It is closed at the end."""
    chunks = await _whole(wire)
    assert b"one two three" not in chunks, "a wire hands bytes on as they come, and they came in pieces"
    assert b"".join(chunks).endswith(b'data: {"type": "message_stop"}\n\n')
    await _left_early(wire)
    await _refused(wire)
    await _broken(wire)
    await _cancelled(wire)
    assert b"after all" in b"".join(await _whole(wire)), "what was cancelled has used up its reply, and no other"
    await wire.aclose()
    await wire.aclose()


async def _whole(wire: Wire) -> Sequence[bytes]:
    async with wire.open(REQUEST) as response:
        assert response.status == 200
        assert dict(response.headers)["content-type"] == "text/event-stream"
        chunks = await _read(response)
        assert len(chunks) > 1
        with assert_checkpoints():
            assert await response.receive_some() == b"", "the end stays the end"
    return chunks


async def _read(response: WireResponse) -> list[bytes]:
    chunks = []
    while True:
        with assert_checkpoints():
            data = await response.receive_some()
        if not data:
            return chunks
        chunks.append(data)


async def _left_early(wire: Wire) -> None:
    async with wire.open(REQUEST) as response:
        assert await response.receive_some()


async def _refused(wire: Wire) -> None:
    async with wire.open(REQUEST) as response:
        assert (response.status, response.headers["retry-after"]) == (429, "7")
        assert b"too many" in b"".join(await _read(response))


async def _broken(wire: Wire) -> None:
    said = b""
    async with wire.open(REQUEST) as response:
        while b"it breaks" not in said:
            data = await response.receive_some()
            assert data, "what came before a break is handed on"
            said += data
        with pytest.raises(ModelFailed) as caught:
            await _read(response)
    assert (caught.value.failure.kind, caught.value.failure.retryable) == (FailureKind.NETWORK, True)


async def _cancelled(wire: Wire) -> None:
    """Stop waiting in the middle of the silence."""
    said = b""
    with trio.CancelScope() as scope:
        async with wire.open(REQUEST) as response:
            while b'"slow"' not in said:
                said += await response.receive_some()
            scope.deadline = trio.current_time() + PAUSE / 4
            while True:
                said += await response.receive_some()
    assert scope.cancelled_caught
    assert b'"ly"' not in said
