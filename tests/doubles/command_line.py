"""The command line as its users run it: a process of its own, against a server that checks every request."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from doubles.model_server import Answer, Seen, Server, Step, server_in_thread
from doubles.rules import violations

__all__ = ["Ended", "Place", "checking"]

Reply = Sequence[Step]


@contextmanager
def checking(replies: Sequence[Reply], protocol: str = "anthropic") -> Iterator[Server]:
    """Serve `replies` in order, and answer 400 to any request that breaks the rules of the real service."""
    left = list(replies)

    def answer(seen: Seen) -> Answer:
        broken = violations(protocol, seen.body)
        if broken or not left:
            told = {"type": "invalid_request_error", "message": str(broken or "there is no reply left")}
            return Answer.error(400, {"type": "error", "error": told})
        return Answer.sse(*left.pop(0))

    with server_in_thread(answer) as server:
        yield server


@attrs.frozen
class Ended:
    """A process that has ended."""

    code: int
    out: bytes
    err: str

    @property
    def result(self) -> Mapping[str, Any]:
        """The result object: the last line of standard output."""
        found = json.loads(self.out.splitlines()[-1])
        assert found["type"] == "result"
        return found


@attrs.define
class Place:
    """A working folder and a home of its own. `environ` are further variables."""

    root: Path
    environ: dict[str, str] = attrs.field(factory=dict)
    patience: float = 60.0  # seconds; a hang guard, and nothing a test asserts

    def __attrs_post_init__(self) -> None:
        self.work.mkdir(exist_ok=True)

    @property
    def work(self) -> Path:
        return self.root / "work"

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start `novacode` with `arguments`."""
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_API_KEY") and not name.startswith("NOVACODE_")
        }
        environ |= {
            "NOVACODE_HOME": str(self.root / "home"),
            "ANTHROPIC_API_KEY": "k",
            "PYTHONFAULTHANDLER": "1",
        } | self.environ
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.Popen([sys.executable, "-m", "novacode", *arguments], cwd=self.work, env=environ, **pipes)

    @contextmanager
    def running(self, *arguments: str, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
        """Start `novacode` for the body: where that fails, it fails, and does not wait for what it has started."""
        process = self.start(*arguments, **more)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def run(self, *arguments: str, **more: Any) -> Ended:
        """Run `novacode` to its end."""
        return self.wait(self.start(*arguments, **more))

    def wait(self, process: subprocess.Popen[bytes]) -> Ended:
        """Wait for a process that was started. One that does not end has to say where it is."""
        try:
            out, err = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired as late:
            process.send_signal(signal.SIGABRT)
            _, err = process.communicate(timeout=10)
            raise AssertionError(f"it did not end in {self.patience:g} s:\n{(err or b'').decode()}") from late
        return Ended(process.returncode, out or b"", (err or b"").decode())

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something outside of the process is so."""
        end = time.monotonic() + self.patience
        while not true():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.01)
