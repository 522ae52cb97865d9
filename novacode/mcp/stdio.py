"""A server that is a process: started, talked to over its pipes, and reaped like every other command."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import trio

from novacode.errors import NovaError
from novacode.mcp.config import ServerConfig, expanded
from novacode.mcp.lines import Lines
from novacode.mcp.peer import Peer
from novacode.tools.plain import plain
from novacode.values.ids import CallId
from novacode.values.parts import JSON
from novacode.workspace.base import Command, Dialogue, Processes

__all__ = ["StdioLink", "innermost"]

_STDERR_KEPT = 4_096
_STDERR_LINES = 5
_GOODBYE = 0.5
"""Seconds it has to end by itself once its stdin is closed."""
_AFTER_EOF = 0.3
"""Seconds for a server that has closed its output to end, so that its exit code can be told."""


class StdioLink:
    """The process of one server. `ended` is set when it has, whatever the way; then `why` says how."""

    def __init__(self, config: ServerConfig, processes: Processes, cwd: Path, environ: Mapping[str, str]) -> None:
        self.peer = Peer(self._send)
        self.ended = trio.Event()
        self.why = ""
        self.on_noise: Callable[[], None] = lambda: None
        self._config = config
        self._processes = processes
        self._cwd = cwd
        self._environ = environ
        self._outgoing, self._to_write = trio.open_memory_channel[bytes](math.inf)
        self._lines = Lines()
        self._stderr = bytearray()
        self._closed = trio.Event()
        self._told_noise = False
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Start the process and stay with it to its end. Cancelled, it is stopped as any command is. Never raises.

        Everybody who waits for an answer when it ends is told how it ended, with its last lines on stderr.
        """
        why = "the server was stopped"
        try:
            with self._scope:
                why = await self._to_its_end()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a server must not end the session
            why = innermost(error)
        finally:
            self._end(why)

    def stop(self) -> None:
        """Have it end: its stdin is closed, a moment later it is stopped; `ended` tells when. Synchronous."""
        self._scope.cancel()

    def _end(self, why: str) -> None:
        self.why = self.why or why
        self.peer.close(self.why)
        self._outgoing.close()
        self.ended.set()

    async def _to_its_end(self) -> str:
        config = self._config
        env = expanded(config.env, self._environ, f"mcp_servers.{config.name}.env")
        talk = Dialogue(self._write, self._closed.set, _GOODBYE)
        marker = CallId(f"mcp-{config.name}")
        command = Command(config.argv, config.folder(self._cwd), marker, env=env, confined=False, dialogue=talk)
        why = "the server has closed its output and did not end; it was stopped"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_output, nursery.cancel_scope)
            ended = await self._processes.run(command, self._take, self._note_stderr)
            why = f"server ended, code {ended.code}"
            nursery.cancel_scope.cancel()
        return self._with_stderr(why)

    async def _watch_output(self, scope: trio.CancelScope) -> None:
        """Stop a server that lives on and can say nothing any more."""
        await self._closed.wait()
        await trio.sleep(_AFTER_EOF)
        self.peer.close(self._with_stderr("the server has closed its output and goes on; it is being stopped"))
        scope.cancel()

    async def _write(self, stdin: trio.abc.SendStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # its end is told by whoever waits for it
            async with self._to_write:
                async for line in self._to_write:
                    await stdin.send_all(line)

    def _send(self, message: Mapping[str, JSON]) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self._outgoing.send_nowait(json.dumps(message, ensure_ascii=True).encode() + b"\n")

    def _take(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self.peer.receive_line(line)
        if not self._told_noise and self._lines.noise + self.peer.noise:
            self._told_noise = True
            self.on_noise()

    def _note_stderr(self, data: bytes) -> None:
        self._stderr += data[-_STDERR_KEPT:]
        del self._stderr[:-_STDERR_KEPT]

    def _with_stderr(self, text: str) -> str:
        lines = plain(self._stderr.decode("utf-8", "replace")).strip().splitlines()[-_STDERR_LINES:]
        return f"{text}; its last words: {' | '.join(lines)}" if lines else text


def innermost(error: BaseException) -> str:
    """Return in words the first exception that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, NovaError) else f"{type(error).__name__}: {error}"
