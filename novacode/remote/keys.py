"""The token that lets in, and the cookie it is exchanged for."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections import deque
from collections.abc import Callable
from pathlib import Path

from novacode.errors import InputError

__all__ = ["Keys", "kept_token", "new_token"]

_BYTES = 32
_LEAST = 24
"""Characters of the shortest token that is taken from a file."""

_TRIES = 10
_WINDOW = 60.0


def new_token() -> str:
    """Return a random token of 256 bits that can stand in an address."""
    return secrets.token_urlsafe(_BYTES)


def kept_token(path: Path) -> str:
    """Return the token in the file at `path`; makes one, for the owner's eyes only, where there is no such file.

    Raises `InputError` where it cannot be read or made, others can read it, or it is too short to be one.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        raise InputError(f"the token file {path} cannot be made: {error.strerror or error}") from error
    token = new_token()
    with os.fdopen(fd, "w") as file:
        file.write(f"{token}\n")
    return token


def _read_token(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"the token file {path} cannot be read: {error}") from error
    if mode & 0o077:
        raise InputError(f"others can read the token file {path}: run `chmod 600 {path}`, and better make a new one")
    if len(token) < _LEAST or not all(character.isalnum() or character in "-_" for character in token):
        raise InputError(
            f"{path} holds no token: at least {_LEAST} letters, digits, - and _; remove it to get a new one"
        )
    return token


class Keys:
    """Compares in constant time what a client shows. `now` is a clock in seconds, for counting wrong tokens."""

    def __init__(self, token: str, now: Callable[[], float], chance: Callable[[int], bytes] = os.urandom) -> None:
        self._token = token.encode()
        self._now = now
        self._chance = chance
        self._wrong: deque[float] = deque(maxlen=_TRIES)

    def is_token(self, shown: str) -> bool:
        """Whether `shown` is the token; counts where it is not."""
        # Of both a digest: comparing texts of different lengths would tell the length.
        right = hmac.compare_digest(_digest(shown.encode("utf-8", "surrogatepass")), _digest(self._token))
        if not right:
            self._wrong.append(self._now())
        return right

    @property
    def tried_too_often(self) -> bool:
        """Whether many wrong tokens were shown in the last minute."""
        return len(self._wrong) == _TRIES and self._now() - self._wrong[0] < _WINDOW

    def cookie(self) -> str:
        """Return a new cookie: worth as much as the token, and no way back to it."""
        nonce = self._chance(16).hex()
        return f"{nonce}.{self._sealed(nonce)}"

    def is_cookie(self, shown: str) -> bool:
        """Whether `shown` is a cookie that was made with this token."""
        nonce, _, seal = shown.partition(".")
        return hmac.compare_digest(self._sealed(nonce).encode(), seal.encode("utf-8", "surrogatepass"))

    def _sealed(self, nonce: str) -> str:
        words = b"novacode cookie " + nonce.encode("utf-8", "surrogatepass")
        return hmac.new(self._token, words, hashlib.sha256).hexdigest()


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
