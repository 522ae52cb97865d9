"""Where settings are looked for."""

from __future__ import annotations

from pathlib import Path

import attrs

from novacode.app.mcp_servers import mcp_file
from novacode.app.rule_store import personal_file

__all__ = ["Places", "folder_of", "project_folder"]


@attrs.frozen(eq=False, repr=False)
class Places:
    """Where settings are looked for: `home` is NovaCode's own folder, `cwd` where the run works."""

    home: Path
    cwd: Path

    @property
    def user(self) -> Path:
        """The user's file."""
        return self.home / "config.toml"

    @property
    def personal(self) -> Path:
        """The file with what the user allowed for good in this folder. It is their own, so it needs no trust."""
        return personal_file(self.home, self.cwd)

    @property
    def project(self) -> tuple[Path, ...]:
        """The project's file and the local one beside it; none where `.novacode` is NovaCode's own folder."""
        folder = project_folder(self.cwd) / ".novacode"
        if folder.resolve() == self.home.resolve():
            return ()
        return (folder / "config.toml", folder / "config.local.toml")

    @property
    def hooks(self) -> Path:
        """The user's file of hooks, in the form other agents use."""
        return self.home / "hooks.json"

    @property
    def project_hooks(self) -> tuple[Path, ...]:
        """The project's file of hooks, with the same exception as for `project`."""
        return tuple(path.with_name("hooks.json") for path in self.project[:1])

    @property
    def servers(self) -> Path:
        """The project's file of MCP servers, in the form other agents use."""
        return mcp_file(self.cwd)


def project_folder(cwd: Path) -> Path:
    """Return the nearest folder from `cwd` up to its repository's root with something in `.novacode`; else `cwd`."""
    for folder in (cwd, *cwd.parents):
        if _holds_something(folder / ".novacode"):
            return folder
        if (folder / ".git").exists():
            break
    return cwd


def _holds_something(folder: Path) -> bool:
    """Whether `folder` is one that is not empty: an empty one, as a sandbox makes it for a time, hides no other."""
    try:
        return any(folder.iterdir())
    except OSError:
        return folder.is_dir()  # one that cannot be looked into may hold anything


def folder_of(path: Path) -> Path:
    """Return the folder that has to be trusted for a project's file at `path` to count."""
    return path.parent if path.name == ".mcp.json" else path.parent.parent
