"""What is said to an MCP server: the greeting, the list of its tools, a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs
import trio

from novacode._version import VERSION
from novacode.mcp.peer import Peer, PeerError
from novacode.values.parts import JSON

__all__ = ["PROTOCOL", "Link", "Listed", "call_tool", "greet", "list_tools"]

PROTOCOL = "2025-06-18"
_MOST_PAGES = 100
_MOST_TOOLS = 1_000


class Link(Protocol):
    """A way to one server. `peer` is our end of the conversation."""

    peer: Peer
    ended: trio.Event
    why: str

    async def run(self) -> None:
        """Be connected, to the end; see `StdioLink.run`."""
        ...

    def stop(self) -> None:
        """End it; see `StdioLink.stop`."""
        ...


@attrs.frozen
class Listed:
    """A tool as the server has it. `reads_only` is what it says of itself: a hint, and never a permission."""

    name: str
    description: str
    schema: JSON
    reads_only: bool = False


async def greet(peer: Peer) -> str:
    """Introduce ourselves; returns the server's own name and version."""
    info = {"name": "novacode", "version": VERSION}
    asked = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info}
    # The protocol forbids to cancel this request.
    answer = await peer.request("initialize", asked, tell_cancel=False)
    if not isinstance(answer, Mapping) or not isinstance(answer.get("protocolVersion"), str):
        raise PeerError(f"the answer to `initialize` is not one: {answer!r:.200}")
    peer.notify("notifications/initialized")
    about = answer.get("serverInfo")
    return f"{about.get('name', '')} {about.get('version', '')}".strip() if isinstance(about, Mapping) else ""


async def list_tools(peer: Peer) -> tuple[Listed, ...]:
    """Return all its tools, page by page. Raises `PeerError` for a list that is none, or never ends."""
    found: list[Listed] = []
    cursor: JSON = None
    for _ in range(_MOST_PAGES):
        answer = await peer.request("tools/list", {"cursor": cursor} if cursor else {})
        tools = answer.get("tools") if isinstance(answer, Mapping) else None
        if not isinstance(tools, list):
            raise PeerError(f"the answer to `tools/list` has no list of tools: {answer!r:.200}")
        found += [_listed(one) for one in tools if isinstance(one, Mapping)]
        cursor = answer.get("nextCursor")
        if len(found) > _MOST_TOOLS:
            break
        if not cursor:
            return tuple(found)
    raise PeerError(f"it lists more than {_MOST_TOOLS} tools, or never comes to an end")


async def call_tool(peer: Peer, name: str, arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Call a tool and return what it returns. Raises `PeerError` and `PeerClosed`."""
    answer = await peer.request("tools/call", {"name": name, "arguments": dict(arguments)})
    if not isinstance(answer, Mapping):
        raise PeerError(f"the answer to the call is not an object: {answer!r:.200}")
    return answer


def _listed(tool: Mapping[str, JSON]) -> Listed:
    name, hints = tool.get("name"), tool.get("annotations")
    return Listed(
        name if isinstance(name, str) else "",
        str(tool.get("description") or tool.get("title") or ""),
        tool.get("inputSchema"),
        isinstance(hints, Mapping) and hints.get("readOnlyHint") is True,
    )
