"""What a tool may use while it runs. Apart from the contract, so that deciding about a call knows nothing of trio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from novacode.tools.base import SeenFiles
from novacode.values.ids import CallId
from novacode.workspace.base import Processes
from novacode.workspace.jobs import Jobs
from novacode.workspace.paths import Workspace

__all__ = ["ToolContext"]


@attrs.frozen(eq=False, repr=False)
class ToolContext:
    """What a tool may use while it runs.

    `output` takes live output: it is shown to people, and it is what the result holds where the call times out or is
    cancelled. It is synchronous and cheap; feed it large chunks. `spill` is a folder for output too long for a
    result. `jobs` are those of the run, which outlive the call and never the run. `unreadable` tells which files below
    a folder a rule keeps from the call, by their resolved paths; `None` where there are none.
    """

    call_id: CallId
    workspace: Workspace
    processes: Processes
    seen: SeenFiles
    output: Callable[[bytes], None]
    spill: Path
    jobs: Jobs = attrs.field(factory=Jobs)
    unreadable: Callable[[Path], bool] | None = None
