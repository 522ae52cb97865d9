"""Hooks that installed packages bring along, by the entry point group `novacode.hooks`.

The name of an entry point is the event, with anything behind a dot to tell several apart (`PreToolUse.licences`); what
it names is the function. It is imported when it is first called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from novacode.authority.hook_settings import HookFunction, HookSpec
from novacode.authority.hooks import HookEvent
from novacode.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "plugin_hooks"]

GROUP = "novacode.hooks"
_KINDS = ("*.dist-info/entry_points.txt", "*.egg-info/entry_points.txt")


def plugin_hooks(search: Sequence[str]) -> tuple[HookSpec, ...]:
    """Return the hooks of all packages on the path `search`, sorted by name. Imports none of them.

    Raises `SettingsError` where an entry point names no event.
    """
    if not _anybody(search):
        return ()
    # Importing it takes longer than everything else here, and most have no such package.
    from importlib.metadata import distributions

    found = {
        (entry.name, entry.value): entry
        for package in distributions(path=list(search))
        for entry in package.entry_points
        if entry.group == GROUP
    }
    return tuple(_spec(entry) for _, entry in sorted(found.items()))


def _anybody(search: Sequence[str]) -> bool:
    """Whether any package declares a hook: a look at the files, without the machinery."""
    files = (path for folder in search for kind in _KINDS for path in Path(folder or ".").glob(kind))
    return any(GROUP.encode() in _content(path) for path in files)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _spec(entry: EntryPoint) -> HookSpec:
    event = entry.name.partition(".")[0]
    if event not in tuple(HookEvent):
        raise SettingsError(
            f"the entry point {entry.name!r} ({entry.value}) in the group {GROUP} must be named after an event:"
            f" {', '.join(HookEvent)}; with a dot and more behind it, if you like"
        )
    return HookSpec(HookEvent(event), entry.value, source=f"entry point {entry.name}", function=_loading(entry))


def _loading(entry: EntryPoint) -> HookFunction:
    # An import that fails is a failure of the hook, and so a no where it stands guard.
    return lambda told: entry.load()(told)
