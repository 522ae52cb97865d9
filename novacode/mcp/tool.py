"""A tool of an MCP server as one of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs

from novacode.errors import ToolFailed
from novacode.mcp.client import Listed, call_tool
from novacode.mcp.content import result_parts, text_of
from novacode.mcp.names import tool_names
from novacode.mcp.peer import Peer, PeerClosed, PeerError
from novacode.mcp.schemas import Unusable, mended, parameters
from novacode.tools.base import EVERYTHING, Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["Checker", "McpTool", "tools_of"]

_DESCRIPTION_LIMIT = 4_000
_SHOWN = 2_000

Checker = Any
"""Makes a validator of a schema, or `None` where there is nothing to make one with."""


@attrs.frozen
class McpTool:
    """One tool of the server called `server`; `original` is its name there."""

    spec: ToolSpec[Any]
    server: str
    original: str
    reads_only: bool
    seconds: float
    peer: Peer

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Everything: for reading where it says so of itself, which lets such calls overlap and allows nothing."""
        everything = frozenset({EVERYTHING})
        return Claims(reads=everything) if self.reads_only else Claims(writes=everything)

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """Its readable name and the arguments; what it does with them nobody but its server knows."""
        text = json.dumps(dict(arguments), ensure_ascii=False)
        return Effects(f"{self.server}: {self.original} {text[:200]}", details=text[:_SHOWN])

    def limit(self, args: Any) -> float | None:
        """What the settings give its server for a call."""
        return self.seconds

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        """Call it. Cancelled, the server is told, and its answer is not waited for."""
        try:
            result = await call_tool(self.peer, self.original, permit.args)
        except PeerClosed as error:
            raise ToolFailed(f"the MCP server {self.server} is gone: {error}") from error
        except PeerError as error:
            failed = {"content": [{"type": "text", "text": f"the MCP server {self.server} answered: {error}"}]}
            raise ToolFailed(text_of(result_parts(failed, ctx))) from error
        parts = result_parts(result, ctx)
        if result.get("isError") is True:
            raise ToolFailed(text_of(parts) or f"{self.original} failed and did not say why")
        return ToolOutput(parts)


def tools_of(
    server: tuple[str, str, float], listed: Sequence[Listed], peer: Peer, checker: Checker
) -> tuple[tuple[McpTool, ...], tuple[str, ...]]:
    """Return the tools that can be offered, and a warning for each that is mended or left out.

    `server` is its name, its name in names of tools, and the seconds a call may take.
    """
    name, short, seconds = server
    names = tool_names(short, (one.name for one in listed))
    tools: dict[str, McpTool] = {}
    warnings: list[str] = []
    for one in listed:
        try:
            offered = names.get(one.name)
            if offered is None:
                raise Unusable("it has no name")
            if offered in tools:
                raise Unusable("another tool has the same name")
            schema, note = mended(one.schema)
            args = cast("Any", parameters(schema, checker))
        except Unusable as error:
            warnings.append(f"MCP server {name}: the tool {one.name!r} is left out: {error}")
            continue
        if note:
            warnings.append(f"MCP server {name}: the tool {one.name!r}: {note}")
        about = one.description[:_DESCRIPTION_LIMIT] or f"{one.name} of the MCP server {name}"
        tools[offered] = McpTool(ToolSpec(offered, about, args), name, one.name, one.reads_only, seconds, peer)
    return tuple(tools.values()), tuple(warnings)
