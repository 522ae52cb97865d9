"""The strict shell parser: shfmt, run as a process that parses and does nothing else."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from novacode.errors import NovaError

__all__ = ["SyntaxRefused", "find", "parse"]

_LIMIT = 2.0
"""Seconds a parse may take; one takes about four milliseconds."""


class SyntaxRefused(NovaError):
    """The line has no syntax tree; the text says why."""


@functools.cache
def find() -> str | None:
    """Return the parser's path: beside our own Python, where the wheel puts it, else on the PATH; `None` for neither.

    A relative entry of the PATH is not looked at: it could name a program of the workspace.
    """
    beside = Path(sys.executable).parent / "shfmt"
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("shfmt")
    return found if found and Path(found).is_absolute() else None


def parse(line: str, program: str) -> Mapping[str, Any]:
    """Return the syntax tree of `line` as bash, as shfmt's typed JSON. Raises `SyntaxRefused` where there is none.

    Blocks for the few milliseconds it takes, two seconds at most. `-ln` also keeps it from reading EditorConfig files.
    """
    try:
        done = subprocess.run(
            [program, "-ln=bash", "--to-json"],
            input=line.encode(),
            capture_output=True,
            timeout=_LIMIT,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeEncodeError) as exc:
        raise SyntaxRefused(f"the line could not be parsed: {exc}") from exc
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SyntaxRefused(f"the line does not parse: {words[0] if words else f'exit {done.returncode}'}")
    try:
        tree = json.loads(done.stdout)
    except ValueError as exc:
        raise SyntaxRefused(f"the line could not be parsed: {exc}") from exc
    if not isinstance(tree, dict) or tree.get("Type") != "File":
        raise SyntaxRefused("the line could not be parsed: not a syntax tree")
    return tree
