"""Where a provider is reached, and how long to wait for it. Knows no HTTP library."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

import attrs

from novacode.errors import CredentialsError, SettingsError

__all__ = ["Endpoint", "Timeouts"]


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"the base URL {url!r} cannot be used: it must look like https://host/path")
    return url


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        # A key pasted with a line break or a typographic quote fails deep in the HTTP library, which shows it whole.
        if not (value.isascii() and value.isprintable()):
            raise CredentialsError(
                f"the value of the header {name!r} has characters no header may have (a line break, or a letter "
                "outside ASCII): set the key again"
            )
    return MappingProxyType({name.lower(): value for name, value in headers.items()})


@attrs.frozen
class Endpoint:
    """Where a provider is and what it wants in every request. `headers` hold the key and are never shown.

    Raises `SettingsError` for a URL that cannot be used and `CredentialsError` for a header value that cannot.
    """

    base_url: str = attrs.field(converter=_checked_url)
    headers: Mapping[str, str] = attrs.field(factory=dict, converter=_checked_headers, repr=False)

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        name = urlsplit(self.base_url).hostname or ""
        if name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False

    def url(self, path: str) -> str:
        """Return the URL of `path` below the base URL; the query parts of both are kept.

        A version that ends the base URL and begins the path (`…/v1` and `/v1/messages`) is written once: people paste
        base URLs in both forms.
        """
        base, wanted = urlsplit(self.base_url), urlsplit(path)
        below = "/" + wanted.path.lstrip("/")
        root = base.path.rstrip("/")
        version = re.search(r"/v\d+[a-z0-9]*$", root)
        if version and below.startswith(version.group() + "/"):
            root = root[: version.start()]
        query = "&".join(part for part in (base.query, wanted.query) if part)
        return urlunsplit((base.scheme, base.netloc, root + below, query, ""))


@attrs.frozen
class Timeouts:
    """Seconds: to get a connection, to hand a request over, and without a byte from the server."""

    connect: float = 20.0
    write: float = 60.0
    idle: float | None = 300.0
