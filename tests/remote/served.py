"""`novacode serve` as a process of its own, with a scripted model, in a folder and a home of a test."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

__all__ = ["Served", "served", "written"]


def written(path: Path, turns: Sequence[Sequence[Mapping[str, Any]]]) -> Path:
    """Write a script of `turns`, each a list of steps, to `path`. JSON texts are TOML texts."""
    lines = []
    for steps in turns:
        lines.append("[[turn]]\nsteps = [")
        lines += [f"  {_inline(step)}," for step in steps]
        lines.append("]")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


@attrs.define
class Served:
    """A server under way. `url` holds the token."""

    folder: Path
    home: Path
    options: tuple[str, ...]
    process: subprocess.Popen[str] | None = None
    url: str = ""
    port: int = 0

    def start(self) -> None:
        """Start it, on the port it had before."""
        command = [sys.executable, "-m", "novacode", "serve", "--port", str(self.port), *self.options]
        environ = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environ |= {"NOVACODE_HOME": str(self.home), "PYTHONUNBUFFERED": "1"}
        said = self.home / "stderr.txt"
        with said.open("a", encoding="utf-8") as stderr:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=environ, stdout=subprocess.PIPE, stderr=stderr, text=True
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().removeprefix("Open ").strip()
        if not self.url.startswith("http://127.0.0.1:"):
            self.end()
            pytest.fail(f"the server did not start: {said.read_text(encoding='utf-8')}")
        self.port = int(self.url.split("/")[2].rpartition(":")[2])

    def end(self, *, kill: bool = False) -> None:
        """End it, and wait until it has ended."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.kill() if kill else self.process.terminate()
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        self.process = None


@contextlib.contextmanager
def served(root: Path, turns: Sequence[Sequence[Mapping[str, Any]]], *options: str) -> Iterator[Served]:
    """Serve a script of `turns` from `root/work` until the block ends."""
    folder, home = root / "work", root / "home"
    folder.mkdir()
    home.mkdir()
    script = written(root / "model.toml", turns)
    made = Served(folder, home, ("--model", f"script:{script}", "--token-file", str(root / "token"), *options))
    made.start()
    try:
        yield made
    finally:
        made.end()
