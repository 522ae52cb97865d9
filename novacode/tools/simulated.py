"""The built-in tools over a simulated world: the same names, parameters, claims and limits, and nothing real behind."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, Tool, ToolOutput, ToolSpec
from novacode.tools.builtin import builtin_tools, job_tools
from novacode.tools.context import ToolContext
from novacode.tools.diffs import unified
from novacode.tools.files import digest_of
from novacode.tools.filetool import summary
from novacode.tools.pathglob import PathGlob
from novacode.tools.shell import start_job
from novacode.values.parts import JSON
from novacode.workspace.base import Exit
from novacode.workspace.paths import Workspace
from novacode.workspace.simulated import SimulatedWorld

__all__ = ["simulated_tools"]

Act = Callable[[SimulatedWorld, Any, ToolContext], str]


def simulated_tools(world: SimulatedWorld, reads_only: Callable[[str], bool]) -> tuple[Tool[Any], ...]:
    """Return the built-in tools as they are in `world`."""
    same = {tool.spec.name: tool for tool in job_tools()}
    return tuple(same.get(real.spec.name) or SimulatedTool(real, world) for real in builtin_tools(reads_only))


class SimulatedTool:
    """One tool: declared by the real one, done by the world."""

    def __init__(self, real: Tool[Any], world: SimulatedWorld) -> None:
        self._real = real
        self._world = world
        self._act = _ACTS[real.spec.name]

    @property
    def spec(self) -> ToolSpec[Any]:
        """As the real tool's."""
        return self._real.spec

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """As the real tool's."""
        return self._real.claims(arguments, workspace)

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """As the real tool's, but for the preview of a change, which would read a real file."""
        claims = self.claims(arguments, workspace)
        if self.spec.name in ("write", "edit"):
            return Effects(summary(self.spec.name, arguments, workspace), writes=tuple(sorted(claims.writes)))
        return self._real.effects(arguments, workspace)

    def limit(self, args: Any) -> float | None:
        """As the real tool's."""
        return self._real.limit(args)

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        """Play the call in the world. A checkpoint; cancelled before its time is up, it has had no effect."""
        args, name = permit.args, self.spec.name
        subject = str(getattr(args, "command", None) or getattr(args, "pattern", None) or getattr(args, "path", ""))
        if getattr(args, "background", False):
            return await start_job(subject, functools.partial(self._job, permit, ctx), ctx)
        before = dict(self._world.files)
        output, code = await self._world.play(
            permit.call.id, name, subject, lambda: self._act(self._world, args, ctx), ctx.output
        )
        text = output or "(no output)"
        if code:
            text += f"\nexit code {code}"
        return ToolOutput.of(text, exit_code=code if name == "shell" or code else None, diff=_diff(before, self._world))

    async def _job(self, permit: Permit[Any], ctx: ToolContext, take: Callable[[bytes], None]) -> Exit:
        """Play the call as a job: what it prints comes while it works, its output at its end."""
        subject = str(permit.args.command)
        output, code = await self._world.play(
            permit.call.id, self.spec.name, subject, lambda: self._act(self._world, permit.args, ctx), take
        )
        take(output.encode())
        return Exit(code)


def _read(world: SimulatedWorld, args: Any, ctx: ToolContext) -> str:
    path = ctx.workspace.resolve(args.path)
    text = world.text(path, args.path)
    ctx.seen.note(path, digest_of(text.encode()))
    return text or f"`{args.path}` is empty."


def _write(world: SimulatedWorld, args: Any, ctx: ToolContext) -> str:
    path = ctx.workspace.resolve(args.path)
    if path in world.files:
        _must_be_seen(world, args.path, ctx)
    world.put(ctx.call_id, path, args.content)
    ctx.seen.note(path, digest_of(args.content.encode()))
    return f"Wrote `{args.path}`."


def _edit(world: SimulatedWorld, args: Any, ctx: ToolContext) -> str:
    path = ctx.workspace.resolve(args.path)
    text = world.text(path, args.path)
    _must_be_seen(world, args.path, ctx)
    count = text.count(args.old) if args.old else 0
    if count == 0 or (count > 1 and not args.replace_all):
        raise ToolFailed(f"`old` is in `{args.path}` {count} times; it must be there once. Nothing was changed.")
    changed = text.replace(args.old, args.new)
    world.put(ctx.call_id, path, changed)
    ctx.seen.note(path, digest_of(changed.encode()))
    return f"Edited `{args.path}`."


def _must_be_seen(world: SimulatedWorld, shown: str, ctx: ToolContext) -> None:
    path = ctx.workspace.resolve(shown)
    if ctx.seen.digest(path) != digest_of(world.files[path].encode()):
        raise ToolFailed(f"`{shown}` has not been read, or has changed since. Read it first. Nothing was changed.")


def _glob(world: SimulatedWorld, args: Any, ctx: ToolContext) -> str:
    wanted = PathGlob(args.pattern)
    names = sorted(ctx.workspace.display(path) for path in world.files)
    return "\n".join([name for name in names if wanted.fits(name)][: args.limit])


def _grep(world: SimulatedWorld, args: Any, ctx: ToolContext) -> str:
    try:
        wanted = re.compile(args.pattern, re.IGNORECASE if args.ignore_case else 0)
    except re.error as error:
        raise ToolFailed(f"the pattern {args.pattern!r} cannot be read: {error}") from None
    found = [
        f"{ctx.workspace.display(path)}:{number}:{line}"
        for path, text in sorted(world.files.items())
        for number, line in enumerate(text.splitlines(), 1)
        if wanted.search(line)
    ]
    return "\n".join(found[: args.limit])


def _shell(world: SimulatedWorld, args: Any, ctx: ToolContext) -> str:
    return ""


_ACTS: Mapping[str, Act] = {
    "read": _read,
    "write": _write,
    "edit": _edit,
    "glob": _glob,
    "grep": _grep,
    "shell": _shell,
}


def _diff(before: Mapping[Any, str], world: SimulatedWorld) -> str:
    changed = [path for path, text in sorted(world.files.items()) if before.get(path, "") != text]
    return "".join(unified(before.get(path, ""), world.files[path], str(path)) for path in changed)
