"""What stands before every route: whether a request is meant for us, from our own page, and by somebody we know.

In this order, and all of it before a body is read: host, origin, token or cookie, type and size. What is refused gets
no further; every answer gets the headers that keep browsers from doing more with it than they should.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Any

import attrs
import trio

from novacode.remote.bounds import BOUNDS, BadMessage, parse_object
from novacode.remote.connections import Connections
from novacode.remote.keys import Keys
from novacode.remote.login import LOGIN_PAGE, LOGIN_POLICY
from novacode.remote.origin import Place, Site
from novacode.remote.protocol import encode
from novacode.values.parts import JSON

__all__ = ["POLICY", "App", "Guard", "Message", "Receive", "Scope", "Send", "answer_json"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Mapping[bytes, bytes] = {
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": POLICY.encode(),
}
_READING = 10.0
_TOKEN_BODY = 4096  # of somebody who is not known yet
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")


class _No(Exception):
    """A request is refused."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@attrs.frozen
class _Asked:
    """What of a request matters here."""

    method: str
    path: str
    headers: Mapping[str, str]
    local: Place
    socket: bool

    @classmethod
    def of(cls, scope: Scope) -> _Asked:
        headers: dict[str, str] = {}
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1").lower()
            if name in headers and name in ("host", "origin", "authorization"):
                raise _No(400, f"there are two {name} headers")
            headers[name] = (
                f"{headers[name]}; {value.decode('latin-1')}" if name in headers else value.decode("latin-1")
            )
        host, port = scope.get("server") or ("", 0)
        local = Place.parse(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", "http") or Place("", 0)
        return cls(scope.get("method", "GET"), scope["path"], headers, local, scope["type"] == "websocket")


class Guard:
    """An ASGI application around another.

    `connections` are told of each request that is let in, of each message that is taken, and of bugs.
    """

    def __init__(self, app: App, site: Site, keys: Keys, cookie_name: str, connections: Connections) -> None:
        self._app = app
        self._site = site
        self._keys = keys
        self._cookie_name = cookie_name
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            return
        heard = partial(self._connections.heard, scope.get("client"))
        heard()
        receive, sending = _telling(receive, heard), _with_headers(send)
        try:
            asked = _Asked.of(scope)
            self._check_place(scope, asked)
            if (asked.method, asked.path) == ("POST", "/login") and not asked.socket:
                await self._login(scope, asked, receive, sending)
                return
            self._check_who(asked)
            self._connections.known(scope.get("client"))
            if asked.method in _CHANGING and not asked.socket:
                receive = _given(await _body(asked, receive))
        except _No as no:
            await self._refuse(scope, no, receive, sending)
            return
        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - of one request; it is told, and the others go on
            self._connections.bug(error)

    def _check_place(self, scope: Scope, asked: _Asked) -> None:
        if scope.get("http_version") not in ("1.0", "1.1"):
            raise _No(505, "this server speaks HTTP/1.1")
        if not self._site.is_host(asked.headers.get("host"), asked.local):
            raise _No(421, "this server has another name; --allow-host NAME makes this one known to it")
        origin = asked.headers.get("origin")
        if origin is not None and not self._site.is_own(origin, asked.local):
            raise _No(403, "this request comes from another page than that of this server")
        opening = asked.method in ("GET", "HEAD") and asked.path == "/" and not asked.socket
        if asked.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opening:
            raise _No(403, "this request comes from another page than that of this server")

    def _check_who(self, asked: _Asked) -> None:
        scheme, _, shown = asked.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            if not self._keys.is_token(shown.strip()):
                raise self._unknown()
            return
        if not self._keys.is_cookie(self._cookie(asked)):
            raise _No(401, "show the token that was printed when the server started")
        if (asked.method in _CHANGING or asked.socket) and "origin" not in asked.headers:
            raise _No(403, "a browser says where such a request comes from; scripts use the token itself")

    def _unknown(self) -> _No:
        return _No(429 if self._keys.tried_too_often else 401, "this is not the token")

    def _cookie(self, asked: _Asked) -> str:
        try:
            found = SimpleCookie(asked.headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    async def _login(self, scope: Scope, asked: _Asked, receive: Receive, send: Send) -> None:
        token = parse_body(await _body(asked, receive, _TOKEN_BODY)).get("token")
        if not isinstance(token, str) or not self._keys.is_token(token):
            raise self._unknown()
        self._connections.known(scope.get("client"))
        secure = "; Secure" if self._site.scheme == "https" else ""
        value = f"{self._cookie_name}={self._keys.cookie()}; Path=/; HttpOnly; SameSite=Strict{secure}"
        await _answer(send, 204, [(b"set-cookie", value.encode())], b"")

    async def _refuse(self, scope: Scope, no: _No, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await _refuse_socket(scope, no, send)
            return
        if no.status == 401 and scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            headers = [
                (b"content-type", b"text/html; charset=utf-8"),
                (b"content-security-policy", LOGIN_POLICY.encode()),
            ]
            await _answer(send, 401, headers, LOGIN_PAGE.encode() if scope["method"] == "GET" else b"")
            return
        more: Headers = [(b"connection", b"close")] if no.status in (408, 413) else []
        code = "refused" if no.status != 400 else "bad_message"
        await answer_json(send, no.status, {"type": "error", "code": code, "text": no.text, "fatal": False}, more)


def parse_body(body: bytes) -> dict[str, JSON]:
    """Return the JSON object that a body is; an empty one is an empty object. Raises what is answered with 400."""
    try:
        return parse_object(body) if body.strip() else {}
    except BadMessage as bad:
        raise _No(413 if bad.code == "too_big" else 400, bad.text) from None


async def answer_json(send: Send, status: int, message: dict[str, JSON], more: Headers | None = None) -> None:
    """Answer with a message of the wire."""
    await _answer(send, status, [(b"content-type", b"application/json"), *(more or [])], encode(message).encode())


async def _answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    length = [] if status == 204 else [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})


async def _refuse_socket(scope: Scope, no: _No, send: Send) -> None:
    """Answer a handshake with a status: before any frame, whatever is wrong with it, it is 403 but for a wrong name."""
    status = no.status if no.status in (421, 505) else 403
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    body = encode({"type": "error", "code": "refused", "text": no.text, "fatal": True}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


async def _body(asked: _Asked, receive: Receive, most: int = BOUNDS.size) -> bytes:
    """Return the body of a request that changes something: JSON, `most` bytes at most, and bounded in time."""
    kind = asked.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _No(415, f"the body has to be application/json, and not {kind or 'of no type'}")
    length = asked.headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length[:20]) > most:
        raise _No(413, f"this body may have {most} bytes")
    body = bytearray()
    with trio.move_on_after(_READING) as scope:
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > most:
                raise _No(413, f"this body may have {most} bytes")
            if message["type"] != "http.request" or not message.get("more_body", False):
                break
    if scope.cancelled_caught:
        raise _No(408, f"the body did not come within {_READING:g} s")
    return bytes(body)


def _telling(receive: Receive, heard: Callable[[], None]) -> Receive:
    async def receiving() -> Message:
        message = await receive()
        heard()
        return message

    return receiving


def _given(body: bytes) -> Receive:
    """Return a `receive` that has read `body` already, and then waits."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        while not waiting:
            await trio.sleep_forever()
        return waiting.pop()

    return receive


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            own: Headers = list(message.get("headers", []))
            names = {name.lower() for name, _ in own}
            message["headers"] = [*own, *((name, value) for name, value in _HEADERS.items() if name not in names)]
        await send(message)

    return sending
