"""Who is let in, and what others can do: nothing. Over real sockets, with bytes that a browser would not send.

The attacks are one table each, so that what is not refused has nowhere to hide.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio_websocket
from remote.remote_world import SAY, TOKEN, Remote, reply, serving

from novacode.remote.keys import Keys, kept_token
from novacode.remote.origin import Place, Site

_ASK = reply(("shell", {"command": "touch data"})) + reply(text="done")
_ROUTES = (
    ("GET", "/"),
    ("GET", "/assets/app.js"),
    ("GET", "/ws"),
    ("GET", "/api/v1/state"),
    ("GET", "/api/v1/sessions"),
    ("GET", "/api/v1/sessions/S"),
    ("GET", "/api/v1/sessions/S/transcript"),
    ("GET", "/api/v1/sessions/S/timeline"),
    ("GET", "/api/v1/sessions/S/events"),
    ("GET", "/nothing/here"),
    ("POST", "/logout"),
    ("POST", "/api/v1/sessions"),
    ("POST", "/api/v1/runs"),
    ("POST", "/api/v1/sessions/S/answer"),
    ("POST", "/api/v1/sessions/S/cancel"),
    ("POST", "/api/v1/sessions/S/settings"),
    ("POST", "/api/v1/sessions/S/compact"),
    ("POST", "/api/v1/sessions/S/rewind"),
)
_EVIL = "https://attacker.example"


@asynccontextmanager
async def _asking(tmp_path: Path) -> AsyncIterator[tuple[Remote, str, dict[str, str]]]:
    """Yield a remote with an open question, its session, and the right answer; the question has to stay open."""
    async with serving(tmp_path, _ASK) as remote:
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            (asked,) = await browser.question()
        yield remote, started["session"], {"id": asked["id"], "runId": asked["runId"], "response": "allow"}
        async with remote.http() as http:
            state = (await http.get(f"/api/v1/sessions/{started['session']}")).json()
        assert [item["id"] for item in state["approvals"]] == [asked["id"]]
        assert not (remote.cwd / "data").exists()


async def test_br_062_every_route_wants_the_token(tmp_path: Path) -> None:
    """Without and with a wrong token all are 401 or 429; with a good one from a foreign page 403; no CORS anywhere."""
    async with _asking(tmp_path) as (remote, session, _):
        await _all_refused(remote, session, None, {}, {401})
        await _all_refused(remote, session, "wrong-" + TOKEN, {}, {401, 429})
        await _all_refused(remote, session, TOKEN, {"origin": _EVIL}, {403})
        async with remote.http(TOKEN, origin=_EVIL) as http:
            asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
            preflight = await http.options("/api/v1/runs", headers=asked)
            assert preflight.status_code == 403
            assert not [name for name in preflight.headers if name.startswith("access-control")]


async def _all_refused(
    remote: Remote, session: str, token: str | None, headers: dict[str, str], wanted: set[int]
) -> None:
    async with remote.http(token, **headers) as http:
        for method, path in _ROUTES:
            answer = await http.request(method, path.replace("S", session), json={} if method == "POST" else None)
            assert answer.status_code in wanted, (method, path, answer.status_code)
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../server.py",
        "/assets/%2e%2e/server.py",
        "/assets/..%2fserver.py",
        "/assets/%2fetc%2fpasswd",
        "/assets//etc/passwd",
        "/assets/app.js%00.html",
        "/assets/",
        "/assets/..",
        "/../../etc/passwd",
        "/api/v1/sessions/..%2f..%2f..%2fetc%2fpasswd/transcript",
        "/api/v1/sessions/%2e%2e/transcript",
    ],
)
async def test_no_other_file_is_served(tmp_path: Path, path: str) -> None:
    """Paths that lead out of the package, or out of the sessions, find nothing, with a good token, too."""
    async with serving(tmp_path, SAY) as remote:
        answer = await _raw(remote, f"GET {path} HTTP/1.1", f"Authorization: Bearer {TOKEN}")
        assert re.match(rb"HTTP/1.1 4\d\d ", answer), answer[:200]
        assert b"root:" not in answer
        assert b"import " not in answer


async def test_br_063_a_foreign_page_cannot_answer(tmp_path: Path) -> None:
    """Forms, plain text, rebound names and cross-site requests are refused before the body is read."""
    async with _asking(tmp_path) as (remote, session, given):
        path = f"/api/v1/sessions/{session}/answer"
        body = json.dumps(given)
        cookie = await _cookie(remote)
        good = (f"Cookie: {cookie}", f"Origin: {remote.url[:-1]}")
        json_type = "Content-Type: application/json"
        tried = {
            "no token, text": (401, ("Content-Type: text/plain",)),
            "cookie, text": (415, (*good, "Content-Type: text/plain")),
            "cookie, form": (415, (*good, "Content-Type: application/x-www-form-urlencoded")),
            "cookie, no type": (415, good),
            "cookie, two types": (415, (*good, "Content-Type: text/plain; application/json")),
            "cookie, cross-site": (403, (*good, json_type, "Sec-Fetch-Site: cross-site")),
            "cookie, same site": (403, (*good, json_type, "Sec-Fetch-Site: same-site")),
            "cookie, no origin": (403, (f"Cookie: {cookie}", json_type)),
            "cookie, null origin": (403, (f"Cookie: {cookie}", "Origin: null", json_type)),
            "cookie, other port": (403, (f"Cookie: {cookie}", "Origin: http://127.0.0.1:1", json_type)),
            "cookie, TLS origin": (403, (f"Cookie: {cookie}", f"Origin: https://{remote.host}", json_type)),
            "two origins": (400, (*good, f"Origin: {_EVIL}", json_type)),
            "query token": (401, (json_type,)),
        }
        for name, (status, headers) in tried.items():
            query = f"?token={TOKEN}" if name == "query token" else ""
            answer = await _raw(remote, f"POST {path}{query} HTTP/1.1", *headers, body=body.encode())
            assert _status(answer) == status, (name, answer[:200])


@pytest.mark.parametrize(
    "host",
    [
        "rebind.attacker.example:PORT",
        "127.0.0.1.attacker.example",
        "127.0.0.1.attacker.example:PORT",
        "localhost.attacker.example:PORT",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.2:PORT",
        "10.0.0.1:PORT",
        "[::ffff:10.0.0.1]:PORT",
        "localhost:PORT@attacker.example",
        "localhost:PORT:1",
        "localhost:",
        "",
        None,
    ],
)
async def test_br_063_another_host_is_not_this_server(tmp_path: Path, host: str | None) -> None:
    """A name that is made to point here is not answered, whatever comes with it."""
    async with serving(tmp_path, SAY) as remote:
        lines = [f"Authorization: Bearer {TOKEN}"]
        if host is not None:
            lines.append(f"Host: {host.replace('PORT', str(remote.port))}")
        for path in ("/", "/api/v1/state"):
            answer = await _raw(remote, f"GET {path} HTTP/1.1", *lines, host=False)
            assert _status(answer) in (400, 421), answer[:200]
            assert TOKEN.encode() not in answer


async def test_br_064_only_the_own_page_and_scripts_get_a_socket(tmp_path: Path) -> None:
    """Handshakes by origin and by what is shown: the others are 403 before any frame."""
    async with serving(tmp_path, SAY) as remote:
        cookie, bearer = ("cookie", await _cookie(remote)), ("authorization", f"Bearer {TOKEN}")
        own = f"http://{remote.host}"
        tried = [
            ([("origin", _EVIL), cookie], False),
            ([("origin", _EVIL), bearer], False),
            ([("origin", "null"), cookie], False),
            ([("origin", f"http://127.0.0.1:{remote.port + 1}"), cookie], False),
            ([("origin", f"https://{remote.host}"), cookie], False),
            ([("origin", own), ("sec-fetch-site", "cross-site"), cookie], False),
            ([("origin", own)], False),
            ([("origin", own), ("authorization", "Bearer wrong")], False),
            ([cookie], False),
            ([], False),
            ([("origin", f"HTTP://LOCALHOST:{remote.port}"), cookie], True),
            ([("origin", own), cookie], True),
            ([bearer], True),
        ]
        for headers, good in tried:
            assert await _shakes_hands(remote, headers) == (101 if good else 403), headers


async def test_br_065_the_token_is_nowhere_to_be_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not taken from a query, not in an answer, not in what is written; the cookie is another secret, and strict."""
    async with serving(tmp_path, _ASK) as remote:
        async with remote.http(None) as http:
            refused = await http.get("/api/v1/state", params={"token": TOKEN})
            assert refused.status_code == 401
            entered = await http.post("/login", json={"token": TOKEN}, headers={"origin": remote.url[:-1]})
            assert entered.status_code == 204
            cookie = entered.headers["set-cookie"]
            assert re.fullmatch(
                rf"novacode_{remote.port}=[0-9a-f]{{32}}\.[0-9a-f]{{64}}; Path=/; HttpOnly; SameSite=Strict", cookie
            )
            page = await http.get("/", headers={"cookie": cookie.partition(";")[0]})
            assert page.status_code == 200
            for answer in (refused, entered, page):
                assert answer.headers["referrer-policy"] == "no-referrer"
                assert answer.headers["cache-control"] == "no-store"
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                assert "unsafe" not in answer.headers["content-security-policy"]
                assert TOKEN not in answer.text + str(answer.headers)
        started = await remote.run("go")
        async with remote.browser(started["session"]) as browser:
            assert TOKEN not in json.dumps(browser.got)
    out = capfd.readouterr()
    assert TOKEN not in out.out + out.err
    written = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert written == []


async def test_a_stranger_gets_the_page_that_takes_the_token(tmp_path: Path) -> None:
    """It is the body of the 401, its script is allowed by its digest alone, and nothing of the request is in it."""
    async with serving(tmp_path, SAY) as remote, remote.http(None) as http:
        answer = await http.get("/?<script>alert(1)</script>", headers={"cookie": "x=<script>"})
        assert answer.status_code == 401
        assert "alert" not in answer.text
        assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]+';", answer.headers["content-security-policy"])
        assert "history.replaceState" in answer.text


async def test_guesses_are_slowed_down_and_the_right_token_still_works(tmp_path: Path) -> None:
    """After ten wrong ones it is 429; who has the token is let in all the same."""
    async with serving(tmp_path, SAY) as remote:
        statuses = []
        for number in range(12):
            async with remote.http(f"{TOKEN}{number}") as http:
                statuses.append((await http.get("/api/v1/state")).status_code)
        assert statuses == [401] * 9 + [429] * 3
        async with remote.http() as http:
            assert (await http.get("/api/v1/state")).status_code == 200


@pytest.mark.parametrize(
    "cookie", ["", "x", ".", "a.b", "0" * 32 + "." + "0" * 64, "é.é", '"', "novacode", f"{TOKEN}.{TOKEN}", TOKEN]
)
async def test_no_made_up_cookie_counts(tmp_path: Path, cookie: str) -> None:
    """What was not made with the token lets nobody in."""
    async with serving(tmp_path, SAY) as remote:
        line = f"Cookie: novacode_{remote.port}={cookie}"
        answer = await _raw(remote, "GET /api/v1/state HTTP/1.1", line, f"Origin: {remote.url[:-1]}")
        assert _status(answer) == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 413),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 413),
        (b"[" + b"1," * 5000 + b"1]", 413),
        (b'{"prompt": "' + b"x" * (1 << 20) + b'"}', 413),
        (b"{", 400),
        (b'"text"', 400),
        (b"\xff\xfe", 400),
        (b'{"prompt": 7}', 400),
        (b"{}", 400),
        (b'{"prompt": NaN}', 400),
        (b'{"prompt": "x", "session": "' + b"y" * 300 + b'"}', 400),
    ],
)
async def test_what_is_too_much_or_no_message_starts_nothing(tmp_path: Path, body: bytes, status: int) -> None:
    """Oversized, deep, wide and broken bodies are refused, and the server goes on."""
    async with serving(tmp_path, SAY) as remote:
        lines = (f"Authorization: Bearer {TOKEN}", "Content-Type: application/json")
        answer = await _raw(remote, "POST /api/v1/runs HTTP/1.1", *lines, body=body)
        assert _status(answer) == status
        async with remote.http() as http:
            assert (await http.get("/api/v1/state")).json()["sessions"] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 50_000, "too_big"),
        ('{"type":"ping","x":' + '{"a":' * 40 + "1" + "}" * 40 + "}", "too_big"),
        ('{"type":"ping","x":[' + "1," * 5000 + "1]}", "too_big"),
        ("not json", "bad_message"),
        ('{"type":"frobnicate"}', "unknown_type"),
        ('{"type":["ping"]}', "unknown_type"),
        ('{"type":"prompt"}', "bad_message"),
        ('{"type":"resync","lastSeq":-1}', "bad_message"),
        ('{"type":"resync","lastSeq":1e400}', "bad_message"),
    ],
)
async def test_bad_frames_are_told_and_the_worst_close_the_connection(tmp_path: Path, text: str, code: str) -> None:
    """A bound that is passed closes; anything else is answered, and the connection goes on."""
    async with serving(tmp_path, SAY) as remote, remote.browser() as browser:
        await browser.socket.send_message(text)
        error = await browser.until("error")
        assert (error["code"], error["fatal"]) == (code, code == "too_big")
        if error["fatal"]:
            with pytest.raises(trio_websocket.ConnectionClosed) as closed:
                await browser.next()
            assert closed.value.reason.code == 1009
        else:
            assert (await browser.ask("ping"))["type"] == "pong"


async def test_a_flood_of_messages_ends_its_connection_and_no_other(tmp_path: Path) -> None:
    """More than the burst at once is too fast."""
    async with serving(tmp_path, SAY) as remote, remote.browser() as other:
        with pytest.raises(trio_websocket.ConnectionClosed) as closed:
            await _flood(remote)
        # What was not read any more may make the system reset the connection before the code is seen.
        assert closed.value.reason.code in (1006, 1008)
        assert (await other.ask("ping"))["type"] == "pong"


async def _flood(remote: Remote) -> None:
    async with remote.browser() as browser:
        for _ in range(400):
            await browser.socket.send_message('{"type":"ping"}')
        await browser.until("nothing that ever comes")


async def test_five_hundred_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    """Strangers make place for each other; who has shown the token stays connected, and others still get in."""
    async with serving(tmp_path, SAY) as remote, remote.browser() as inside:
        idle = [await trio.open_tcp_stream("127.0.0.1", remote.port) for _ in range(500)]
        async with remote.http() as http:
            assert (await http.get("/api/v1/state")).status_code == 200
        assert (await inside.ask("ping"))["type"] == "pong"
        for stream in idle:
            await trio.aclose_forcefully(stream)


async def test_slow_loris(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    """A header that never ends, and a body that never comes, are given up. (On a virtual clock.)"""
    async with serving(tmp_path, SAY) as remote:
        header = await trio.open_tcp_stream("127.0.0.1", remote.port)
        body = await trio.open_tcp_stream("127.0.0.1", remote.port)
        silent = await trio.open_tcp_stream("127.0.0.1", remote.port)
        await header.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b")
        lines = _lines(remote, f"Authorization: Bearer {TOKEN}", "Content-Type: application/json", "Content-Length: 99")
        await body.send_all(b"POST /api/v1/runs HTTP/1.1\r\n" + lines + b"\r\n{")
        assert _status(await _all(body)) == 408
        for stream in (header, silent):
            assert await _all(stream) == b""


def test_the_token_file_is_for_its_owner(tmp_path: Path) -> None:
    """It is made for the owner alone, read again, and refused where others can read it or it holds no token."""
    path = tmp_path / "token"
    token = kept_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_token(path) == token
    path.chmod(0o644)
    with pytest.raises(Exception, match="chmod 600"):
        kept_token(path)
    path.chmod(0o600)
    path.write_text("short\n")
    with pytest.raises(Exception, match="holds no token"):
        kept_token(path)


def test_a_cookie_is_of_its_token_alone() -> None:
    """A cookie outlives a restart with the same token, and no other."""
    keys = Keys("one" * 10, lambda: 0.0)
    cookie = keys.cookie()
    assert keys.is_cookie(cookie)
    assert Keys("one" * 10, lambda: 0.0).is_cookie(cookie)
    assert not Keys("two" * 10, lambda: 0.0).is_cookie(cookie)
    assert not any(keys.is_cookie(cookie[:at] + "0" * (cookie[at] != "0") + cookie[at + 1 :]) for at in (0, 33, 96))


@pytest.mark.parametrize(
    ("header", "good"),
    [
        ("example.org", True),
        ("EXAMPLE.ORG:443", True),
        ("tunnel:9000", True),
        ("tunnel", False),
        ("[::1]:443", True),
        ("[0:0:0:0:0:0:0:1]", True),
        ("[::1", False),
        ("[::1]x443", False),
        ("example.org:99999", False),
        ("example.org:4a3", False),
        ("other.org", False),
    ],
)
def test_names_of_this_server(header: str, good: bool) -> None:
    """Allowed names, the address a connection came in on, and names with a port of their own."""
    site = Site.of("https", ["Example.org", "tunnel:9000"])
    assert site.is_host(header, Place("::1", 443)) is good


# --- by hand ------------------------------------------------------------------------------------------------------


async def _cookie(remote: Remote) -> str:
    async with remote.http(None) as http:
        entered = await http.post("/login", json={"token": TOKEN})
        return str(entered.headers["set-cookie"].partition(";")[0])


async def _shakes_hands(remote: Remote, headers: list[tuple[str, str]]) -> int:
    """Return the status of the answer to a handshake."""
    key = "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    given = (f"{name}: {value}" for name, value in headers)
    lines = _lines(remote, "Connection: Upgrade", "Upgrade: websocket", *key, *given)
    stream = await trio.open_tcp_stream("127.0.0.1", remote.port)
    await stream.send_all(b"GET /ws HTTP/1.1\r\n" + lines + b"\r\n")
    with trio.fail_after(20):
        answer = await stream.receive_some()
    await trio.aclose_forcefully(stream)
    return _status(answer)


def _lines(remote: Remote, *lines: str, host: bool = True) -> bytes:
    given = [f"Host: {remote.host}"] if host and not any(line.startswith("Host:") for line in lines) else []
    return "".join(f"{line}\r\n" for line in (*given, *lines)).encode()


async def _raw(remote: Remote, request: str, *lines: str, body: bytes = b"", host: bool = True) -> bytes:
    """Send a request as bytes and return all that comes back until the server closes."""
    stream = await trio.open_tcp_stream("127.0.0.1", remote.port)
    more = [f"Content-Length: {len(body)}"] if body else []
    head = f"{request}\r\n".encode() + _lines(remote, *lines, *more, "Connection: close", host=host) + b"\r\n"
    with contextlib.suppress(trio.BrokenResourceError):  # it may answer and close before it has read everything
        await stream.send_all(head + body)
    return await _all(stream)


async def _all(stream: trio.SocketStream) -> bytes:
    received = bytearray()
    with trio.move_on_after(60):
        try:
            async for data in stream:
                received += data
        except trio.BrokenResourceError:
            pass
    await trio.aclose_forcefully(stream)
    return bytes(received)


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0
