"""Runs that are killed with SIGKILL at a chosen write of their journal, one small process each.

`Zygote` is a process that has imported everything and forks for each run: a crash point costs milliseconds. What the
run had been told was written it has acknowledged in a file of its own, which survives it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["Zygote", "acknowledged"]

TESTS = Path(__file__).resolve().parents[1]


class Zygote:
    """Ask it for runs: `crash(home, n, how)` forks one that dies at its `n`th write; 0 for one that does not die."""

    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def crash(self, home: Path, at: int, how: str = "before", *, resume: bool = False) -> dict[str, Any]:
        """Run, and return `{"status": wait status, "writes": how many there were}`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wish = {"home": str(home), "at": at, "how": how, "resume": resume}
        self._process.stdin.write(json.dumps(wish).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def acknowledged(home: Path) -> list[int]:
    """Return the numbers of the events a run has seen to be written."""
    path = home / "acknowledged"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def _serve() -> None:
    for line in sys.stdin:
        wish = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _run(wish)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        count = Path(wish["home"]) / "writes"
        answer = {"status": status, "writes": int(count.read_text()) if count.exists() else 0}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(wish: dict[str, Any]) -> None:
    import trio
    import trio.testing

    trio.run(_main, wish, clock=trio.testing.MockClock(autojump_threshold=0))


async def _main(wish: dict[str, Any]) -> None:
    import trio
    from doubles.reader import Reader
    from doubles.world import World

    from novacode.engine.agent import Agent, AgentOptions
    from novacode.engine.bus import Bus
    from novacode.engine.conversation import Conversation
    from novacode.sessions.journal import Journal
    from novacode.sessions.secrets import Secrets
    from novacode.sessions.store import Store
    from novacode.values.ids import IdSource

    home = Path(wish["home"])
    real = getattr(Journal._write, "real", Journal._write)
    Journal._write = _dying(real, wish["at"], wish["how"])  # type: ignore[method-assign]
    store = Store(home, lambda: 1.9e9, lambda count: bytes(count), Secrets())
    session = store.open(store.latest(home) or "") if wish["resume"] else store.create(home)
    loaded = session.loaded
    model = Reader(_script("b" if wish["resume"] else "a"), limit=_CAN_READ)
    world = World(services={"model": model})
    world.bus = Bus(trio.current_time, loaded.last_seq)
    world.bus.subscribe(session.journal.append)
    world.agent = Agent(
        world.services,
        Conversation(loaded.history),
        world.bus,
        IdSource(session.id, loaded.runs),
        AgentOptions(somebody=True, model="fake", window=_CAN_READ),
    )
    seen = os.open(home / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    world.bus.subscribe(lambda stamped: os.write(seen, b"%d\n" % stamped.seq) if _kept(stamped) else None)
    world.answer_all(allowed=True)
    for prompt in ("first", "second"):
        await world.agent.run(prompt)
    session.close()
    (home / "writes").write_text(str(_COUNT[0]))


def _kept(stamped: Any) -> bool:
    from novacode.sessions.record import is_kept

    return is_kept(stamped.event)


_COUNT = [0]
_CAN_READ = 4_000  # tokens; what the calls below give does not fit, so that the conversation is shortened on the way


def _dying(real: Any, at: int, how: str) -> Any:
    """Return `Journal._write` that ends the process before, in the middle of, or after the `at`th line."""
    _COUNT[0] = 0

    def write(self: Any, line: bytes) -> None:
        _COUNT[0] += 1
        if _COUNT[0] == at:
            if how == "after":
                real(self, line)
            elif how == "middle":
                os.write(self._fd, line[: len(line) // 2])
            elif how == "no line end":
                os.write(self._fd, line[:-1])
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, line)

    write.real = real  # type: ignore[attr-defined]
    return write


def _script(name: str) -> list[list[Any]]:
    """Two prompts of several turns: calls side by side, some asked for, some refused, one broken, a stream lost.

    Its results outgrow what the model can read, and so does what it says: outputs are shortened, and summaries asked.
    """
    from doubles.fake_model import Break, Pause, broken, call, end, say

    from novacode.values.request import StopReason

    def turn(number: int) -> list[Any]:
        ids = [f"{name}{number}{letter}" for letter in "abcd"]
        return [
            say(f"turn {number}" + "." * (5_000 if number == 3 else 0)),
            call(ids[0], "work", 1, takes=2, prints="x", gives=8_500 if number == 1 else 0),
            call(ids[1], "asks", 2, takes=1, writes=["f"]),
            Pause(0.5),
            call(ids[2], "asks", 3, takes=1, writes=["f"]),
            call(ids[3], "denied" if number % 2 else "work", 4, takes=1, fails="tool"),
            end(StopReason.TOOL_USE),
        ]

    lost = [say("then"), call(f"{name}9a", "work", 1, takes=3), Break()]
    torn = [broken(f"{name}8a", "work"), call(f"{name}8b", "slow", 2, takes=1), end(StopReason.TOOL_USE)]
    return [turn(1), turn(2), torn, [say("done"), end()], turn(3), lost, turn(4), [say("all done"), end()]]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # what is imported and generated once, no fork has to do again
        for resumed in (False, True):
            _run({"home": folder, "at": 0, "how": "", "resume": resumed})
    _serve()
