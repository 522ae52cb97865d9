"""The tools every session has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from novacode.tools.base import Tool
from novacode.tools.edit import EditTool
from novacode.tools.glob import GlobTool
from novacode.tools.grep import GrepTool
from novacode.tools.jobs import JobOutputTool, JobStopTool
from novacode.tools.read import ReadTool
from novacode.tools.shell import ShellTool
from novacode.tools.write import WriteTool

__all__ = ["builtin_tools", "job_tools"]


def builtin_tools(reads_only: Callable[[str], bool]) -> tuple[Tool[Any], ...]:
    """Return the built-in tools. `reads_only` tells of a shell command whether it is known to change nothing."""
    return (ReadTool(), WriteTool(), EditTool(), GlobTool(), GrepTool(), ShellTool(reads_only), *job_tools())


def job_tools() -> tuple[Tool[Any], ...]:
    """Return the tools for background jobs, which are the same whatever the jobs are made of."""
    return (JobOutputTool(), JobStopTool())
