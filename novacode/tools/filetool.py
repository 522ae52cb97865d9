"""What the file tools share: one path argument, judged by where it really leads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from novacode.tools.files import printable
from novacode.tools.schema import text_of
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["search_summary", "summary", "target"]


def target(arguments: Mapping[str, JSON], workspace: Workspace, default: str | None = None) -> Path | None:
    """Return where the raw argument `path` leads, resolved; `None` where there is none to speak of."""
    path = arguments.get("path", default)
    if path is None:
        path = default
    return workspace.resolve(path) if isinstance(path, str) else None


def summary(verb: str, arguments: Mapping[str, JSON], workspace: Workspace) -> str:
    """Return one line for people: `edit src/a.py`, with the real place behind it where a link leads elsewhere."""
    written = text_of(arguments, "path")
    path = target(arguments, workspace)
    if written is None or path is None:
        return f"{verb} (no path)"
    real = workspace.display(path)
    plain = str(Path(written)) if "\0" not in written else written
    return f"{verb} {written}" if plain in (real, str(path)) else f"{verb} {written} (really {printable(real)})"


def search_summary(verb: str, arguments: Mapping[str, JSON]) -> str:
    """Return one line for people: `grep TODO in src`."""
    pattern = text_of(arguments, "pattern")
    folder = text_of(arguments, "path") or "."
    return f"{verb} {pattern} in {folder}" if pattern is not None else f"{verb} (no pattern)"
