"""What paths are to permission: which are sensitive, and what a pattern in a shell line stands for."""

from __future__ import annotations

import glob
import itertools
from pathlib import Path

from novacode.workspace.paths import Workspace

__all__ = ["SENSITIVE_FOLDERS", "SENSITIVE_NAMES", "expand", "sensitive"]

SENSITIVE_FOLDERS = frozenset({".git", ".novacode", ".ssh", ".gnupg", ".aws", ".vscode", ".idea", ".husky", ".claude"})
"""Folders, at any depth, whose files decide what later runs, or are keys. In lower case."""

SENSITIVE_NAMES = frozenset(
    {
        ".bash_login",
        ".bash_profile",
        ".bashrc",
        ".envrc",
        ".gitconfig",
        ".gitmodules",
        ".mcp.json",
        ".netrc",
        ".npmrc",
        ".profile",
        ".pypirc",
        ".zprofile",
        ".zshenv",
        ".zshrc",
        "head",  # beside `config`, `objects` and `refs` it makes a folder a git repository, whose settings run programs
    }
)
"""File names, at any depth, of the same kind; `.env` and everything that starts with `.env.` as well."""

_MATCHES = 2000
"""A pattern in a shell line is looked at up to so many matches."""


def sensitive(path: Path, workspace: Workspace) -> str:
    """Say what is sensitive about writing `path`, resolved and inside the workspace; empty where nothing is."""
    parts = [part.casefold() for part in path.parts]
    for folder in (workspace.root, *workspace.extra):
        if path == folder:
            return "the workspace itself"
        if folder in path.parents:
            parts = [part.casefold() for part in path.relative_to(folder).parts]
            break
    folder_name = next((part for part in parts if part in SENSITIVE_FOLDERS), "")
    if folder_name:
        return f"in {folder_name}, which decides what runs"
    name = parts[-1] if parts else ""
    if name in SENSITIVE_NAMES or name == ".env" or name.startswith(".env."):
        return "a file that holds secrets or decides what runs"
    return ""


def expand(text: str, workspace: Workspace) -> tuple[Path, ...] | None:
    """Return the resolved paths that `text` stands for in a shell line; `None` where it cannot be told.

    A pattern that matches nothing stands for itself. Links among the matches are resolved: that is why it is looked at.
    """
    if not any(sign in text for sign in "*?"):
        return (workspace.resolve(text),)
    if ".." in Path(text).parts:
        return None  # a pattern may lead through a link, and `..` from there to anywhere
    try:
        pattern = str(Path(text).expanduser())
    except RuntimeError:
        return None  # `~*`: whose home folder that is nobody can tell
    found = list(itertools.islice(_matches(pattern, workspace), _MATCHES + 1))
    if len(found) > _MATCHES:
        return None
    return tuple(dict.fromkeys(workspace.resolve(match) for match in [*found, text.split("*")[0].split("?")[0]]))


def _matches(pattern: str, workspace: Workspace) -> list[str] | itertools.chain[str]:
    try:
        # `[…]` is never read-only, so it is only ever a literal name here.
        return itertools.chain(glob.iglob(pattern.replace("[", "[[]"), root_dir=workspace.root))
    except (OSError, ValueError):
        return []
