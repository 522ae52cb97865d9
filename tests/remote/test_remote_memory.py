"""What a server under attack takes of memory: a bound of its own, whatever is sent at it.

Each attack is carried out twice against one process, small and then large. What the large one adds to the peak of its
memory is compared with a figure that does not grow with the attack.
"""

from __future__ import annotations

import contextlib
import json
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import attrs
import httpx
import pytest
import trio
from remote.served import Served, served

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads and resets the peak in /proc"),
    pytest.mark.timeout(300),
]

_MB = 1 << 20
_STRANGERS = 48
"""MB for what anybody can do: 256 connections, each with 16 KiB of header and what is made of it."""

_INSIDE = 160
"""MB for what clients with the token can do: 16 MiB of messages that are not whole, a character of which takes up to
four bytes where they are put together, and 50 bodies of 1 MiB."""

_OUTPUT = "head -c 20000000 /dev/zero | tr '\\\\0' 'x' | fold -w 99"


@attrs.frozen
class Target:
    """A server to attack. `size` is 1 for the small attack, and many times that for the large one."""

    server: Served
    size: int = 1

    @property
    def token(self) -> str:
        """The token."""
        return self.server.url.partition("#token=")[2]

    def head(self, request: str, *lines: str, inside: bool = False) -> bytes:
        """Return the beginning of a request, up to the empty line."""
        shown = [f"Authorization: Bearer {self.token}"] if inside else []
        return "".join(
            f"{line}\r\n" for line in (request, f"Host: 127.0.0.1:{self.server.port}", *shown, *lines)
        ).encode()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[trio.SocketStream]:
        """A connection that nobody waits for at its end."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.server.port)
        try:
            yield stream
        finally:
            await trio.aclose_forcefully(stream)

    @contextlib.asynccontextmanager
    async def socket(self, *lines: str) -> AsyncIterator[trio.SocketStream]:
        """A WebSocket with the token, after its handshake."""
        key = "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        async with self.connection() as stream:
            upgrade = self.head(
                "GET /ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", *key, *lines, inside=True
            )
            await stream.send_all(upgrade + b"\r\n")
            with trio.fail_after(30):
                answer = await stream.receive_some()
            assert answer.startswith(b"HTTP/1.1 101 "), answer
            yield stream


Attack = Callable[[Target], Awaitable[None]]


def _frame(data: bytes, kind: int = 1, *, last: bool = True, length: int | None = None) -> bytes:
    """Return a WebSocket frame; the mask is zero, which leaves the data as it is. `length` is what it says it has."""
    said = len(data) if length is None else length
    if said < 126:
        size = bytes([0x80 | said])
    else:
        size = b"\xfe" + said.to_bytes(2, "big") if said < 65_536 else b"\xff" + said.to_bytes(8, "big")
    return bytes([kind | (0x80 if last else 0)]) + size + bytes(4) + data


async def _pour(stream: trio.SocketStream, first: bytes, again: bytes = b"x", megabytes: int = 0) -> None:
    """Send `first`, and `again` until that is so much, or the other side has had enough."""
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(first)
        for _ in range(megabytes * _MB // len(again)):
            await stream.send_all(again)


async def _many(number: int, act: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(number):
            nursery.start_soon(act)


async def _endless_header(target: Target) -> None:
    """Header lines without end, from 100 connections at once."""

    async def one() -> None:
        async with target.connection() as stream:
            await _pour(stream, target.head("GET / HTTP/1.1"), b"X-More: " + b"x" * 8_000 + b"\r\n", 2 * target.size)

    await _many(10 * target.size, one)


async def _half_a_header(target: Target) -> None:
    """Slow loris: 500 connections with the first lines of a request, all open at once."""
    await _idle(target, target.head("GET / HTTP/1.1", "X-A: " + "b" * 10_000))


async def _nothing_said(target: Target) -> None:
    """500 connections that say nothing."""
    await _idle(target, b"")


async def _idle(target: Target, said: bytes) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(50 * target.size):
            stream = await stack.enter_async_context(target.connection())
            await _pour(stream, said)
        assert await _answers(target)


async def _stranger_s_body(target: Target) -> None:
    """A body of 64 MB from somebody without the token, 50 times at once."""
    await _many(5 * target.size, lambda: _body(target, 64 * _MB, inside=False))


async def _large_body(target: Target) -> None:
    """A body of 64 MB from somebody with the token, 50 times at once."""
    await _many(5 * target.size, lambda: _body(target, 64 * _MB, inside=True))


async def _body(target: Target, length: int, *, inside: bool) -> None:
    lines = "Content-Type: application/json", f"Content-Length: {length}"
    async with target.connection() as stream:
        first = target.head("POST /api/v1/runs HTTP/1.1", *lines, inside=inside) + b'\r\n{"prompt": "'
        await _pour(stream, first, b"x" * 65_536, 6 * target.size)


async def _endless_chunks(target: Target) -> None:
    """A chunked body without end, from 50 with the token at once."""

    async def one() -> None:
        lines = "Content-Type: application/json", "Transfer-Encoding: chunked"
        async with target.connection() as stream:
            first = target.head("POST /api/v1/runs HTTP/1.1", *lines, inside=True) + b"\r\n"
            await _pour(stream, first, b"10000\r\n" + b"[" * 65_536 + b"\r\n", 6 * target.size)

    await _many(5 * target.size, one)


async def _large_message(target: Target) -> None:
    """A WebSocket message of 64 MB in one frame, 50 times at once."""

    async def one() -> None:
        async with target.socket() as stream:
            await _pour(stream, _frame(b"", length=64 * _MB), b"x" * 65_536, 6 * target.size)

    await _many(5 * target.size, one)


async def _fragments(target: Target) -> None:
    """A WebSocket message that never ends, in fragments of 64 KiB and in ones of a byte, 50 times at once."""

    async def one(piece: bytes, megabytes: int) -> None:
        async with target.socket() as stream:
            again = _frame(piece, 0, last=False) * max(1, 65_536 // len(piece))
            await _pour(stream, _frame(b'{"', last=False), again, megabytes)

    await _many(3 * target.size, lambda: one(b"x" * 65_536, 6 * target.size))
    await _many(2, lambda: one(b"x", target.size))


async def _deep_message(target: Target) -> None:
    """Messages of nearly 1 MiB that are nothing but nesting, or nothing but values, over both ways in."""
    deep, wide = b'{"type":' + b"[" * 1_000_000, b'{"type":[' + b"1," * 500_000

    async def one(text: bytes) -> None:
        async with target.socket() as stream:
            await _pour(stream, _frame(text))
            await _until_closed(stream)
        async with target.connection() as stream:
            lines = "Content-Type: application/json", f"Content-Length: {len(text)}"
            await _pour(stream, target.head("POST /api/v1/runs HTTP/1.1", *lines, inside=True) + b"\r\n" + text)
            with trio.fail_after(60):
                assert b" 413 " in await stream.receive_some()

    for text in (deep, wide):
        await _many(2 * target.size, lambda text=text: one(text))


async def _bombs(target: Target) -> None:
    """Frames of 64 KiB that unpack to 64 MB each, from 20 clients at once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"x" * (64 * _MB)) + packer.flush(zlib.Z_SYNC_FLUSH)[:-4]

    async def one() -> None:
        async with target.socket("Sec-WebSocket-Extensions: permessage-deflate") as stream:
            await _pour(stream, _frame(packed, 0x41))
            await _until_closed(stream)

    await _many(2 * target.size, one)


async def _pings(target: Target) -> None:
    """Control frames without end, whose answers nobody reads."""

    async def one() -> None:
        async with target.socket() as stream:
            with trio.move_on_after(3):  # it stops reading where nobody reads its answers
                await _pour(stream, b"", _frame(b"x" * 125, 9) * 500, target.size)

    await _many(2 * target.size, one)


async def _guesses(target: Target) -> None:
    """Wrong tokens of a megabyte."""

    async def one() -> None:
        text = b'{"token": "' + b"x" * (_MB - 100) + b'"}'
        lines = "Content-Type: application/json", f"Content-Length: {len(text)}"
        async with target.connection() as stream:
            await _pour(stream, target.head("POST /login HTTP/1.1", *lines) + b"\r\n" + text)

    await _many(5 * target.size, one)


async def _deaf_watchers(target: Target) -> None:
    """Clients that watch a run with 20 MB of output, and do not read."""
    started = await _post(target, "/api/v1/runs", {"prompt": "go"})
    hello = json.dumps({"type": "hello", "version": 1, "session": started["session"], "name": "deaf"}).encode()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(4 * target.size):
            stream = await stack.enter_async_context(target.socket())
            await stream.send_all(_frame(hello))
        with trio.fail_after(120):
            while (await _get(target, f"/api/v1/sessions/{started['session']}"))["state"]["run"]:
                await trio.lowlevel.checkpoint()


STRANGERS: list[Attack] = [_nothing_said, _half_a_header, _endless_header, _stranger_s_body, _guesses]
INSIDERS: list[Attack] = [
    _large_body,
    _endless_chunks,
    _large_message,
    _fragments,
    _deep_message,
    _bombs,
    _pings,
    _deaf_watchers,
]


async def _until_closed(stream: trio.SocketStream) -> None:
    with trio.fail_after(60), contextlib.suppress(trio.BrokenResourceError):
        async for _ in stream:
            pass


async def _answers(target: Target) -> bool:
    """Whether somebody with the token gets an answer."""
    return isinstance(await _get(target, "/api/v1/state"), dict)


async def _get(target: Target, path: str) -> dict[str, object]:
    async with _http(target) as http:
        return (await http.get(path)).raise_for_status().json()  # type: ignore[no-any-return]


async def _post(target: Target, path: str, body: object) -> dict[str, str]:
    async with _http(target) as http:
        return (await http.post(path, json=body)).raise_for_status().json()  # type: ignore[no-any-return]


def _http(target: Target) -> httpx.AsyncClient:
    base = f"http://127.0.0.1:{target.server.port}"
    return httpx.AsyncClient(base_url=base, headers={"authorization": f"Bearer {target.token}"}, timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose every run prints 20 MB, attacked by all of the module."""
    root = tmp_path_factory.mktemp("attacked")
    turns = [[{"call": "shell", "arguments": {"command": _OUTPUT}}], [{"text": "done"}]] * 2
    with served(root, turns, "--yolo") as made:
        yield made
        process = made.process
        made.end()
    assert process is not None
    assert process.returncode == 143
    assert "Traceback" not in (root / "home" / "stderr.txt").read_text()


@pytest.fixture(scope="module")
def idle(server: Served) -> float:
    """The memory of the server before anything has come, in MB."""
    _forget_peak(server)
    return _peak(server)


def _peak(server: Served) -> float:
    """Return the peak of the server's memory in MB since it was last forgotten."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024


def _forget_peak(server: Served) -> None:
    assert server.process is not None
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


@pytest.mark.parametrize("attack", [*STRANGERS, *INSIDERS], ids=lambda attack: attack.__name__.strip("_"))
def test_memory_is_bounded(server: Served, idle: float, attack: Attack) -> None:
    """The attack, and ten times the attack, take no more than the bounds allow, and the server goes on."""

    async def carried_out() -> tuple[float, float]:
        peaks = []
        for size in (1, 10):
            _forget_peak(server)
            await attack(Target(server, size))
            peaks.append(_peak(server))
            assert await _answers(Target(server))
        return peaks[0], peaks[1]

    small, large = trio.run(carried_out)
    print(f"\n{attack.__name__}: {small - idle:.1f} MB, ten times that {large - idle:.1f} MB")
    assert large - idle <= (_STRANGERS if attack in STRANGERS else _INSIDE)
