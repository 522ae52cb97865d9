"""`novacode serve` over TLS: the page, the API and the WebSocket, and nothing in plain text."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import attrs
import httpx
import pytest
import trio
import trio_websocket
from doubles.certificates import self_signed
from doubles.command_line import Place
from remote.remote_world import SAY
from remote.test_remote_serve import Server, serve


@attrs.frozen
class Secure:
    """A server that speaks TLS, and what its certificate can be checked with."""

    server: Server
    trust: ssl.SSLContext

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.url.rpartition(":")[2].strip("/"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """A server for all of the module."""
    root = tmp_path_factory.mktemp("tls")
    key, certificate = self_signed(root)
    with serve(
        Place(root), "--tls-cert", str(certificate), "--tls-key", str(key), script=SAY, scheme="https"
    ) as server:
        yield Secure(server, ssl.create_default_context(cafile=certificate))
        code, err = server.end()
    assert code == 143
    assert "bug" not in err


def test_the_page_and_the_api_are_served(secure: Secure) -> None:
    """To who trusts the certificate; the cookie of a browser is one that only goes over TLS."""
    server = secure.server
    with httpx.Client(base_url=server.url, verify=secure.trust) as http:
        assert http.get("/").status_code == 401
        origin = {"origin": server.url.rstrip("/")}
        entered = http.post("/login", json={"token": server.token}, headers=origin)
        assert entered.status_code == 204
        assert "Secure" in entered.headers["set-cookie"].split("; ")
        assert http.get("/").status_code == 200
        assert http.get("/api/v1/state").json()["type"] == "hello"
        http_origin = {"origin": f"http://127.0.0.1:{secure.port}"}
        assert http.post("/api/v1/sessions", json={}, headers=http_origin).status_code == 403


async def test_a_websocket_is_served(secure: Secure) -> None:
    """The same wire as without TLS."""
    url = secure.server.url.replace("https://", "wss://") + "ws"
    headers = [(b"authorization", f"Bearer {secure.server.token}".encode())]
    with trio.fail_after(30):
        async with trio_websocket.open_websocket_url(url, secure.trust, extra_headers=headers) as socket:
            await socket.send_message(json.dumps({"type": "hello", "version": 1, "name": "a test"}))
            hello = json.loads(await socket.get_message())
    assert (hello["type"], hello["version"]) == ("hello", 1)


def test_nothing_is_said_in_plain_text(secure: Secure) -> None:
    """Nor to who does not finish the handshake; others are served meanwhile and afterwards."""
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secure.server.token}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", secure.port)) as silent:
        with socket.create_connection(("127.0.0.1", secure.port), timeout=30) as plain:
            plain.sendall(request)
            answer = plain.recv(1 << 16)
        assert b"HTTP" not in answer
        silent.sendall(b"\x16")
        bearer = {"authorization": f"Bearer {secure.server.token}"}
        with httpx.Client(base_url=secure.server.url, verify=secure.trust, headers=bearer) as http:
            assert http.get("/api/v1/state").status_code == 200


def test_a_certificate_nobody_trusts_is_the_clients_to_refuse(secure: Secure) -> None:
    """A failed handshake is none of the server's bugs: see the end of the fixture."""
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(secure.server.url)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tls-key", "KEY"), "--tls-key is the key of a certificate"),
        (("--tls-cert", "nowhere.pem"), "nowhere.pem"),
        (("--tls-cert", "KEY"), "cannot be used"),
        (("--tls-cert", "CERT", "--tls-key", "CERT"), "cannot be used"),
    ],
)
def test_what_is_no_certificate_is_told(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """In one line, with the file, before anything is served."""
    key, certificate = self_signed(tmp_path)
    named = [{"KEY": str(key), "CERT": str(certificate)}.get(word, word) for word in arguments]
    ran = Place(tmp_path).run("serve", "--port", "0", "--model", "demo", *named)
    assert ran.code in (2, 42)
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == b""
