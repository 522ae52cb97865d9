"""Whether a request was meant for this server, and came from its own page. Pure.

A name that is no address can be made to point here by anybody (DNS rebinding), so only names that are known count. An
address is what the browser was told to go to, and counts where the connection came in on it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

import attrs

__all__ = ["Place", "Site"]

_PORTS = {"http": 80, "https": 443}


@attrs.frozen
class Place:
    """A host and a port, in lower case. An address is in its shortest form."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, scheme: str) -> Place | None:
        """Return the place of a `Host` header or the end of an origin; `None` where it is none."""
        host, bracket, rest = text.rpartition("]") if text.startswith("[") else ("", "", text)
        if bracket:
            host, colon, port = host[1:], rest[:1], rest[1:]
        else:
            host, colon, port = rest.partition(":")
        if (rest and bracket and colon != ":") or (colon and not (port.isascii() and port.isdigit())) or not host:
            return None
        number = int(port[:6]) if port else _PORTS[scheme]
        return cls(_short(host), number) if number < 65536 else None


@attrs.frozen
class Site:
    """What this server is called. `names` are known hosts, `places` known hosts with a port of their own."""

    scheme: str
    names: frozenset[str] = frozenset({"localhost"})
    places: frozenset[Place] = frozenset()

    @classmethod
    def of(cls, scheme: str, allowed: Iterable[str]) -> Site:
        """Return the site that is also called `allowed`: names, or names with a port. Raises `ValueError`."""
        names, places = {"localhost"}, set()
        for text in allowed:
            place = Place.parse(text, scheme)
            if place is None:
                raise ValueError(f"{text!r} is no host name; write NAME or NAME:PORT")
            if text.rpartition("]")[2].count(":") == 1:
                places.add(place)
            else:
                names.add(place.host)
        return cls(scheme, frozenset(names), frozenset(places))

    def is_host(self, header: str | None, local: Place) -> bool:
        """Whether the `Host` of a request on a connection to the address `local` is this server."""
        place = None if header is None else Place.parse(header, self.scheme)
        return place is not None and self._is_here(place, local)

    def is_own(self, origin: str, local: Place) -> bool:
        """Whether `origin` is of this server's page; letter case does not matter."""
        scheme, separator, rest = origin.lower().partition("://")
        place = Place.parse(rest, scheme) if separator and scheme == self.scheme else None
        return place is not None and self._is_here(place, local)

    def _is_here(self, place: Place, local: Place) -> bool:
        if place in self.places:
            return True
        return place.port == local.port and (place.host in self.names or place.host == local.host)


def _short(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower()
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
