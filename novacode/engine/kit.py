"""What a run works with, handed in once. No module below looks anything up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import attrs
import trio

from novacode.authority.approvals import ApprovalDesk
from novacode.authority.hooks import Hooks
from novacode.authority.permissions import Permissions
from novacode.engine.gate import Gate
from novacode.engine.ledger import Stopping
from novacode.engine.patience import Patience, Retry
from novacode.engine.reply import Model
from novacode.tools.base import SeenFiles
from novacode.tools.toolset import Toolset
from novacode.values.events import Emit
from novacode.values.history import History
from novacode.values.request import ModelRequest
from novacode.workspace.base import Processes, Snapshots
from novacode.workspace.jobs import Jobs
from novacode.workspace.paths import Workspace

__all__ = ["Kit", "Services"]


async def _nothing_to_wait_for() -> Sequence[str]:
    await trio.lowlevel.checkpoint()
    return ()


@attrs.frozen(eq=False, repr=False)
class Services:
    """What all runs of a session share. `ready` waits, bounded, for tools on their way; it returns what to tell."""

    model: Model
    tools: Toolset
    hooks: Hooks
    permissions: Permissions
    snapshots: Snapshots
    workspace: Workspace
    processes: Processes
    seen: SeenFiles
    spill: Path
    request: Callable[[History, int | None], ModelRequest]
    retry: Retry
    clock: Callable[[], float]
    ready: Callable[[], Awaitable[Sequence[str]]] = attrs.field(default=_nothing_to_wait_for, kw_only=True)


@attrs.frozen(eq=False, repr=False)
class Kit(Services):
    """The same, with what belongs to one run and ends with it."""

    emit: Emit
    desk: ApprovalDesk
    gate: Gate
    stopping: Stopping
    jobs: Jobs = attrs.field(factory=Jobs)
    patience: Patience = attrs.field(default=attrs.Factory(lambda kit: Patience(kit.retry), takes_self=True))

    @classmethod
    def of(cls, services: Services, *, emit: Emit, desk: ApprovalDesk, gate: Gate, stopping: Stopping) -> Kit:
        """Return the kit of a new run."""
        shared = {field.name: getattr(services, field.name) for field in attrs.fields(Services)}
        return cls(**shared, emit=emit, desk=desk, gate=gate, stopping=stopping)
