"""The routes: the page, its WebSocket, and the API of docs/remote.md for scripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from novacode.errors import SessionError
from novacode.remote import protocol, steering
from novacode.remote.bounds import BadMessage, parse_object
from novacode.remote.guard import Receive, Scope, Send
from novacode.remote.hub import Hub
from novacode.remote.missed import Missed
from novacode.remote.pages import files_of_the_page
from novacode.remote.protocol import Cancel, Compact, PermissionResponse, Prompt, Rewind, SettingsChange
from novacode.remote.room import Room
from novacode.remote.sockets import EventStream, WebSocket
from novacode.remote.states import Refusal, room_state
from novacode.values.parts import JSON

__all__ = ["routes"]

_API = "/api/v1"
_BY = "a script, over HTTP"
_STATUS = {
    "no_session": 404,
    "busy": 409,
    "session_in_use": 409,
    "stale_preview": 409,
    "shutting_down": 503,
    "no_rule": 422,
    "bad_rule": 422,
    "bad_settings": 422,
    "refused": 422,
    "too_big": 413,
    "failed": 500,
}

Answer = Callable[[Request], Awaitable[Any]]


def routes(hub: Hub, cookie_name: str) -> Starlette:
    """Return the application behind the guard."""
    page, api = _Page(cookie_name), _Api(hub)
    table: list[BaseRoute] = [
        Route("/", page.index, methods=["GET"]),
        Route("/assets/{name}", page.asset, methods=["GET"]),
        Route("/logout", page.logout, methods=["POST"]),
        WebSocketRoute("/ws", WebSocket(hub)),
        Route(f"{_API}/state", _safely(api.state), methods=["GET"]),
        Route(f"{_API}/sessions", _safely(api.sessions), methods=["GET"]),
        Route(f"{_API}/sessions", _safely(api.begin), methods=["POST"]),
        Route(f"{_API}/runs", _safely(api.run), methods=["POST"]),
    ]
    of_a_session: Mapping[str, tuple[str, Answer]] = {
        "": ("GET", api.session),
        "/transcript": ("GET", api.transcript),
        "/timeline": ("GET", api.timeline),
        "/events": ("GET", api.events),
        "/answer": ("POST", api.answer),
        "/cancel": ("POST", api.cancel),
        "/settings": ("POST", api.settings),
        "/compact": ("POST", api.compact),
        "/rewind": ("POST", api.rewind),
    }
    for end, (method, answer) in of_a_session.items():
        table.append(Route(f"{_API}/sessions/{{session}}{end}", _safely(answer), methods=[method]))
    return Starlette(routes=table)


class _Page:
    def __init__(self, cookie_name: str) -> None:
        self._cookie_name = cookie_name
        self._files = files_of_the_page()

    async def index(self, _: Request) -> Response:
        kind, content = self._files["index.html"]
        return Response(content, media_type=kind)

    async def asset(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None:
            return _json({"type": "error", "code": "no_file", "text": "there is no such file", "fatal": False}, 404)
        return Response(found[1], media_type=found[0])

    async def logout(self, _: Request) -> Response:
        gone = Response(status_code=204)
        gone.delete_cookie(self._cookie_name, path="/", httponly=True, samesite="strict")
        return gone


class _Api:
    """The API. What a body says is read as the message of the wire that it stands for."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def state(self, _: Request) -> Response:
        hub = self._hub
        rooms = [room for room in hub.rooms.values() if room.app is not None]
        states: list[JSON] = [room_state(room, hub.shared.setup_of(room.session)) for room in rooms]
        return _json({**hub.hello(_BY), "sessions": states})

    async def sessions(self, _: Request) -> Response:
        return _json(await trio.to_thread.run_sync(self._hub.sessions))

    async def begin(self, _: Request) -> Response:
        return _json({"type": "session_created", "session": self._hub.create().session}, 201)

    async def run(self, request: Request) -> Response:
        data = await _data(request)
        given = protocol.fields_of(Prompt, {**data, "text": data.get("prompt")})
        room = self._hub.room(given.session) if given.session else self._hub.create()
        return _json(await steering.prompt(self._hub, room, given), 202)

    async def session(self, request: Request) -> Response:
        room = self._room(request)
        room.refresh()
        state = room_state(room, self._hub.shared.setup_of(room.session))
        return _json({"state": state, "approvals": room.approvals()})

    async def transcript(self, request: Request) -> Response:
        room = self._room(request)
        room.audience.flush()
        return _Transcript(room, _after(request) or 0)

    async def timeline(self, request: Request) -> Response:
        return _json(await steering.timeline(self._room(request)))

    async def events(self, request: Request) -> EventStream:
        return EventStream(self._hub, self._room(request), _after(request))

    async def answer(self, request: Request) -> Response:
        reply = steering.answer(self._room(request), protocol.fields_of(PermissionResponse, await _data(request)), _BY)
        return _json(reply, _status(reply, 200))

    async def cancel(self, request: Request) -> Response:
        reply = steering.cancel(self._room(request), protocol.fields_of(Cancel, await _data(request)), _BY)
        return _json(reply, _status(reply, 202))

    async def settings(self, request: Request) -> Response:
        room = self._room(request)
        steering.change(room, protocol.fields_of(SettingsChange, await _data(request)))
        return _json(room_state(room, self._hub.shared.setup_of(room.session)))

    async def compact(self, request: Request) -> Response:
        given = protocol.fields_of(Compact, await _data(request))
        return _json(await steering.compact(self._hub, self._room(request), given), 202)

    async def rewind(self, request: Request) -> Response:
        given = protocol.fields_of(Rewind, await _data(request))
        return _json(await steering.rewind(self._hub, self._room(request), given))

    def _room(self, request: Request) -> Room:
        return self._hub.room(request.path_params["session"])


class _Transcript(Response):
    """What is on record, an event a line, as it is read."""

    def __init__(self, room: Room, after: int) -> None:
        super().__init__(media_type="application/x-ndjson")
        self._room = room
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        missed = None if self._room.path is None else Missed(self._room.path)
        at: int | None = None
        while missed is not None:
            try:
                piece, at = await trio.to_thread.run_sync(missed.read, self._after, None, at, abandon_on_cancel=True)
            except SessionError:
                break
            body = b"".join(text + b"\n" for _, text in piece)
            await send({"type": "http.response.body", "body": body, "more_body": True})
            if at is None:
                break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _safely(answer: Answer) -> Answer:
    """Return `answer`, which tells what cannot be done as an `error` with a fitting status."""

    async def answering(request: Request) -> Any:
        try:
            return await answer(request)
        except Refusal as refusal:
            return _error(refusal.code, refusal.text)
        except BadMessage as bad:
            return _error(bad.code, bad.text)

    return answering


def _error(code: str, text: str) -> Response:
    return _json({"type": "error", "code": code, "text": text, "fatal": False}, _STATUS.get(code, 400))


def _status(reply: Mapping[str, JSON], good: int) -> int:
    match reply["type"]:
        case "ignored":
            return 404 if reply["reason"] == "unknown" else 409
        case "error":
            return _STATUS.get(str(reply["code"]), 400)
        case _:
            return good


async def _data(request: Request) -> dict[str, JSON]:
    body = await request.body()
    return parse_object(body) if body.strip() else {}


def _after(request: Request) -> int | None:
    """Return the last event seen: of the query, or what a browser says by itself when it comes back."""
    given = request.query_params.get("after") or request.headers.get("last-event-id") or ""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None


def _json(message: Mapping[str, JSON], status: int = 200) -> Response:
    return Response(protocol.encode(message), status, media_type="application/json")
