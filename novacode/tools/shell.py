"""The `shell` tool."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping
from typing import Annotated

import attrs
import trio
from attrs.validators import gt, le, min_len

from novacode import grace
from novacode.errors import ToolFailed
from novacode.tools.base import EVERYTHING, Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.jobs import job_text
from novacode.tools.plain import plain
from novacode.tools.schema import text_of
from novacode.values.parts import JSON
from novacode.workspace.base import Command, Exit
from novacode.workspace.jobs import Work
from novacode.workspace.paths import SPILL, Workspace
from novacode.workspace.spill import Capture

__all__ = ["ShellArgs", "ShellTool", "start_job"]

_RESULT_LIMIT = 30_000  # bytes
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_MOST_LISTED = 10
_FIRST_LOOK = 0.5  # seconds in which a job may fail for its start to count as failed

_SANDBOXED = (
    "[it ran in a sandbox: only the working folder and /tmp can be written, never .git/hooks, .git/config or .novacode;"
    " there may be no network; what a command leaves running ends with it. Work within that, or tell the user]"
)
_STOPPED_BY_A_SANDBOX = (
    r"read-only file system|device or resource busy|network is unreachable|resolve|name resolution|connection refused"
    r"|operation not permitted|permission denied|EROFS|EBUSY|ENOTFOUND|EAI_AGAIN"
)

_DESCRIPTION = """Run a command line in bash, in the workspace folder, and get its output (stdout and stderr together).
Each call is a shell of its own: `cd` and variables do not last. There is no input and no terminal: what asks fails at
once. Output over 30,000 bytes is clipped in the middle; the whole is kept in a file that is named then.
With `background` the command becomes a job (a server, say): the call returns at once with the job's name, job_output
and job_stop take it from there, `timeout` does not apply. Jobs, and whatever a command itself leaves running with `&`,
`nohup` or `setsid`, are stopped when the run ends.
Calls of one turn may overlap only where all of them are known to read only; others run in order. Nothing is undone
when a command fails or is stopped half way: there is no transaction."""


@attrs.frozen
class ShellArgs:
    """Parameters of `shell`."""

    command: Annotated[str, "what to run, as typed at a prompt"] = attrs.field(validator=min_len(1))
    timeout: Annotated[float, "seconds it may take; then it is stopped"] = attrs.field(
        default=120.0, validator=[gt(0), le(600)]
    )
    background: Annotated[bool, "go on without waiting for its end"] = False


def _never(_command: str) -> bool:
    return False


class ShellTool:
    """Runs command lines. `reads_only` tells of one whether it is known to change nothing."""

    spec = ToolSpec("shell", _DESCRIPTION, ShellArgs)

    def __init__(self, reads_only: Callable[[str], bool] = _never) -> None:
        self._reads_only = reads_only

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Everything: for reading where that is all it does as far as known, else for writing."""
        command = text_of(arguments, "command")
        everything = frozenset({EVERYTHING})
        return Claims(reads=everything) if command and self._is_harmless(command) else Claims(writes=everything)

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """The command, exactly as it will run: it is judged by its own parse."""
        command = text_of(arguments, "command")
        job = " (as a background job)" if arguments.get("background") is True else ""
        return Effects(f"shell{job} {command}" if command is not None else "shell (no command)", command=command)

    def limit(self, args: ShellArgs) -> float | None:
        """What the model asked for; a job is not waited for."""
        return None if args.background else args.timeout

    async def run(self, permit: Permit[ShellArgs], ctx: ToolContext) -> ToolOutput:
        """Run it to its end. Cancelled, everything it started has stopped before `Cancelled` goes on."""
        command = permit.args.command
        if "\0" in command:
            raise ToolFailed("`command` has a NUL character in it, which no program can be given. Nothing was run.")
        spill = {} if ctx.workspace.spill is None else {SPILL[1:]: str(ctx.workspace.spill)}
        wanted = Command((_shell(), "-c", command), ctx.workspace.root, ctx.call_id, env=spill)
        if permit.args.background:
            return await start_job(command, lambda take: ctx.processes.run(wanted, take), ctx)
        capture = Capture(_RESULT_LIMIT, ctx.spill, f"{ctx.call_id}.txt", ctx.workspace.display)

        def take(data: bytes) -> None:
            capture.feed(data)
            ctx.output(data)

        try:
            ended = await ctx.processes.run(wanted, take)
            text = plain(capture.text())
        finally:
            capture.close()
        return ToolOutput.of(_told(text, ended), exit_code=ended.code)

    def _is_harmless(self, command: str) -> bool:
        try:
            return self._reads_only(command)
        except Exception:  # noqa: BLE001  an odd command must not fail before it has its slot
            return False


async def start_job(command: str, work: Work, ctx: ToolContext) -> ToolOutput:
    """Start `work` as a job of the run, and look at it for a moment: what fails at once is told at once.

    Cancelled meanwhile, the job has stopped before `Cancelled` goes on: nobody has been told its name.
    """
    job = ctx.jobs.start(command, work, ctx.spill, ctx.workspace.display)
    try:
        with trio.move_on_after(_FIRST_LOOK):
            await job.ended.wait()
    except BaseException:
        job.stop()
        with grace.cleanup(grace.DEFAULT.term + grace.DEFAULT.kill):
            await job.ended.wait()
        raise
    if job.problem:
        raise ToolFailed(job.problem)
    text = job_text(job)
    if job.exit is not None:
        return ToolOutput.of(text, exit_code=job.exit.code)
    return ToolOutput.of(f"{text}\nIt goes on in the background and is stopped when the run ends.")


def _shell() -> str:
    return next((shell for shell in _SHELLS if os.access(shell, os.X_OK)), "/bin/sh")


def _told(text: str, ended: Exit) -> str:
    said = [text.removesuffix("\n") or "(no output)"]
    if ended.code < 0:
        said.append(f"[killed by signal {-ended.code} ({_signal_name(-ended.code)})]")
    elif ended.code > 128 and _signal_name(ended.code - 128) != "unknown":
        said.append(f"[exit code {ended.code}: probably killed by {_signal_name(ended.code - 128)}]")
    elif ended.code:
        said.append(f"[exit code {ended.code}]")
    if ended.confined and ended.code and re.search(_STOPPED_BY_A_SANDBOX, text, re.IGNORECASE):
        said.append(_SANDBOXED)
    if ended.background:
        pids = ", ".join(map(str, ended.background[:_MOST_LISTED])) + (
            ", …" if len(ended.background) > _MOST_LISTED else ""
        )
        said.append(f"[still running in the background: pid {pids}; stopped when the run ends]")
    return "\n".join(said)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
