"""The hooks of a session, from settings and installed packages; imported as far as there are any."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from novacode.app.hook_plugins import plugin_hooks
from novacode.app.settings import project_folder
from novacode.authority.hooks import Hooks, NoHooks

if TYPE_CHECKING:
    from novacode.app.choosing import Choice
    from novacode.app.setup import Setup
    from novacode.authority.hook_wire import HookFacts
    from novacode.authority.permissions import Permissions
    from novacode.sessions.store import Session
    from novacode.workspace.base import Processes
    from novacode.workspace.paths import Workspace

__all__ = ["hook_facts", "hooks_of"]


def hook_facts(setup: Setup, choice: Choice, session: Session, workspace: Workspace) -> HookFacts:
    """Return what every hook is told of the session."""
    from novacode.authority.hook_wire import HookFacts  # see `hooks_of`

    return HookFacts(
        session.id,
        workspace,
        str(project_folder(setup.cwd)),
        choice.label,
        str(session.path or ""),
        "resume" if session.loaded.runs else "startup",
    )


def hooks_of(
    setup: Setup,
    permissions: Permissions,
    surroundings: Callable[[], tuple[HookFacts, Processes, Callable[[], float]]],
) -> Hooks:
    """Return the hooks of the settings and of installed packages; a simulation runs nothing, so it has none.

    `surroundings` are what they are told, how they are run and by which clock; only asked for where there are hooks.
    """
    specs = () if setup.simulate else (*setup.settings.hooks, *plugin_hooks(sys.path))
    if not specs:
        return NoHooks()
    # Running hooks takes 14 ms to import, and most have none.
    from novacode.authority.hook_process import Host
    from novacode.authority.hook_runner import CommandHooks

    return CommandHooks(specs, Host(*surroundings()), lambda: permissions.policy.mode)
