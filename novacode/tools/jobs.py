"""The `job_output` and `job_stop` tools: a look at what `shell` has left running, and the end of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import attrs
import trio
from attrs.validators import ge, le, min_len

from novacode.errors import ToolFailed
from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.plain import plain
from novacode.tools.schema import text_of
from novacode.values.parts import JSON
from novacode.workspace.jobs import Job, Jobs
from novacode.workspace.paths import Workspace

__all__ = ["JobOutputTool", "JobStopTool", "job_text"]

_STOP_TAKES = 30.0  # seconds; more than any grace, so that a stop is only given up on where the machine is in trouble


@attrs.frozen
class JobOutputArgs:
    """Parameters of `job_output`."""

    job: Annotated[str, "the name that shell gave, for example job_1_1"] = attrs.field(validator=min_len(1))
    wait: Annotated[float, "seconds to wait for new output or for its end, where there is none yet"] = attrs.field(
        default=0.0, validator=[ge(0), le(600)]
    )


@attrs.frozen
class JobStopArgs:
    """Parameters of `job_stop`."""

    job: Annotated[str, "the name that shell gave, for example job_1_1"] = attrs.field(validator=min_len(1))


class JobOutputTool:
    """Gives what a job has said since the last look, and whether it still runs."""

    spec = ToolSpec(
        "job_output",
        "Get the output of a background job since you last looked, and whether it is still running. With `wait` it"
        " returns as soon as there is something new. Output over 30,000 bytes is clipped in the middle.",
        JobOutputArgs,
    )

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Nothing: it waits for nobody."""
        return Claims()

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """A look at something the session has already."""
        return _effects(self.spec.name, arguments)

    def limit(self, args: JobOutputArgs) -> float | None:
        """None: it waits no longer than it was asked to."""
        return None

    async def run(self, permit: Permit[JobOutputArgs], ctx: ToolContext) -> ToolOutput:
        """Wait if there is nothing new yet, then return it."""
        job = _found(ctx.jobs, permit.args.job)
        with trio.move_on_after(permit.args.wait):
            await job.news.wait()
        return ToolOutput.of(job_text(job))


class JobStopTool:
    """Stops a job and gives the rest of its output."""

    spec = ToolSpec(
        "job_stop",
        "Stop a background job and everything it started, and get the rest of its output. Jobs that are still running"
        " when the run ends are stopped anyway.",
        JobStopArgs,
    )

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """Nothing: it waits for nobody."""
        return Claims()

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """What this run has started may be stopped by it; nothing else can be named."""
        return _effects(self.spec.name, arguments)

    def limit(self, args: JobStopArgs) -> float | None:
        """More than stopping takes."""
        return _STOP_TAKES

    async def run(self, permit: Permit[JobStopArgs], ctx: ToolContext) -> ToolOutput:
        """Ask it to stop, and wait until it has."""
        job = _found(ctx.jobs, permit.args.job)
        job.stop()
        await job.ended.wait()
        return ToolOutput.of(job_text(job))


def job_text(job: Job) -> str:
    """Return what is new of `job` and how it is, for the model."""
    state = job.state
    return f"{plain(job.read()).removesuffix(chr(10)) or '(no new output)'}\n[{job.name}: {state}]"


def _effects(tool: str, arguments: Mapping[str, JSON]) -> Effects:
    job = text_of(arguments, "job") or ""
    return Effects(f"{tool} {job}", subject=job)


def _found(jobs: Jobs, name: str) -> Job:
    job = jobs.find(name)
    if job is None:
        known = f"those of this run are {', '.join(jobs.names)}" if jobs.names else "this run has none"
        raise ToolFailed(f"there is no background job {name!r}; {known}. Jobs end with the run that started them.")
    return job
