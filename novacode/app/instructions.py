"""`AGENTS.md`: what a project wants an agent to know, from the root of the repository down to the working folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import attrs

from novacode.values.clip import clip_text

__all__ = ["LIMIT", "NAME", "Instructions", "load_instructions"]

NAME = "AGENTS.md"
LIMIT = 32 * 1024


@attrs.frozen
class Instructions:
    """`text` is ready for the system prompt, empty where there is none; `files` are those in it, farthest first."""

    text: str = ""
    files: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()


def load_instructions(cwd: Path, limit: int = LIMIT) -> Instructions:
    """Read the files from the root of the repository of `cwd` down to it; without a repository only that of `cwd`.

    `limit` bytes in all. The nearest file is the most particular one, so room is given from the nearest outwards; a
    file that does not fit is cut and a notice says so. A file that cannot be read is a notice, never an error.
    """
    cwd = cwd.resolve()
    folders = _folders(cwd)
    notices: list[str] = []
    chosen: list[tuple[Path, str]] = []
    room = limit
    for folder in reversed(folders):
        path = folder / NAME
        text = _read(path, folders[0], notices)
        if not text.strip():
            continue
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > room:
            notices.append(f"{path} is {size} bytes long; {max(room, 0)} of the {limit} there are room for were left")
            text = clip_text(text, room) if room >= 2 else ""
        room -= min(size, max(room, 0))
        if text:
            chosen.append((path, text))
    chosen.reverse()
    parts = [f"# Instructions of {path}\n\n{text.strip()}\n" for path, text in chosen]
    return Instructions("\n".join(parts), tuple(path for path, _ in chosen), tuple(notices))


def _folders(cwd: Path) -> tuple[Path, ...]:
    """Return the folders from the root of the repository down to `cwd`."""
    upwards = (cwd, *cwd.parents)
    for depth, folder in enumerate(upwards):
        if (folder / ".git").exists():
            return tuple(reversed(upwards[: depth + 1]))
    return (cwd,)


def _read(path: Path, root: Path, notices: list[str]) -> str:
    """Return the text of `path`; empty where there is none, or none that may be read.

    A link that leads out of the repository is not followed: what it names would be sent to a model provider. Opening
    does not block on a pipe somebody put there.
    """
    try:
        real = path.resolve(strict=True)
        if root not in real.parents:
            notices.append(f"{path} is a link to {real}, outside of {root}, and is left out")
            return ""
        with open(real, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                notices.append(f"{path} is not a regular file and is left out")
                return ""
            return file.read().decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return ""
    except (OSError, RuntimeError) as error:
        notices.append(f"{path} cannot be read and is left out: {error}")
        return ""
