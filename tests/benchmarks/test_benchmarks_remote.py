"""What fifty browsers cost the run they watch, and how late they see it.

The model speaks at a pace of a hundred fragments a second, as the fastest do, and calls a tool in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import trio
from remote.remote_world import TOKEN, Remote, serving

from novacode.values.events import RunBegan, RunEnded, Stamped

_WATCHERS = 50
_MOST = 1.10
_SCRIPT = (
    "[[turn]]\nsteps = ["
    + ", ".join('{ text = "word ", fragments = 1 }, { pause = 0.01 }' for _ in range(300))
    + ', { call = "glob", arguments = { pattern = "*" } } ]\n[[turn]]\nsteps = ['
    + ", ".join('{ text = "word ", fragments = 1 }, { pause = 0.01 }' for _ in range(100))
    + "]\n"
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("deaf", [0, 1])
async def test_fifty_browsers_cost_a_run_little(
    tmp_path: Path, deaf: int, record_property: pytest.RecordProperty
) -> None:
    """The run takes at most a tenth longer than with nobody there, also where one never reads; prints the p99."""
    alone: list[float] = []
    watched: list[float] = []
    late: list[float] = []
    for turn in range(3):
        folder = tmp_path / str(turn)
        folder.mkdir()
        async with serving(folder, _SCRIPT * 2) as remote:
            session = remote.hub.create().session
            alone.append((await _timed(remote, session))[0])
            seconds, at, seen = await _watched(remote, session, deaf)
        watched.append(seconds)
        assert len(seen) == _WATCHERS
        assert {client[-1][0] for client in seen} == {max(at)}  # everybody saw the end
        late += [came - at[seq] for client in seen for seq, came in client if seq in at]
    late.sort()
    ratio = min(watched) / min(alone)
    p50, p99 = (1000 * late[int(len(late) * part)] for part in (0.5, 0.99))
    record_property("ratio", ratio)
    record_property("p99_ms", p99)
    times = f"{min(alone):.3f} s alone, {min(watched):.3f} s watched, ratio {ratio:.3f}"
    print(f"\n{_WATCHERS} watchers, {deaf} deaf: {times}")
    print(f"a frame's last event came after {p50:.0f} ms (median), {p99:.0f} ms (p99), {late[-1] * 1000:.0f} ms (most)")
    assert ratio <= _MOST


async def _watched(remote: Remote, session: str, deaf: int) -> tuple[float, dict[int, float], list[list[list[float]]]]:
    """Run once with everybody watching; return what `_timed` does, and what the watchers saw."""
    script = str(Path(__file__).with_name("remote_watchers.py"))
    command = [sys.executable, script, *map(str, (remote.port, TOKEN, session, _WATCHERS, deaf))]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(partial(trio.run_process, command, stdout=subprocess.PIPE))
        said = bytearray()
        while b"ready\n" not in said:
            more = await process.stdout.receive_some()
            assert more, "the watchers have ended"
            said += more
        seconds, at = await _timed(remote, session)
        async for data in process.stdout:
            said += data
    return seconds, at, json.loads(said.partition(b"ready\n")[2])


async def _timed(remote: Remote, session: str) -> tuple[float, dict[int, float]]:
    """Run once; return the seconds from its first event to its last, and when each event happened."""
    room = remote.hub.room(session)
    app = await room.opened()
    at: dict[int, float] = {}
    ends: list[float] = []

    def note(stamped: Stamped) -> None:
        at[stamped.seq] = time.monotonic()
        if isinstance(stamped.event, RunBegan | RunEnded):
            ends.append(at[stamped.seq])

    app.bus.subscribe(note)
    try:
        await room.prompt("go")
        await room.quiet()
    finally:
        app.bus.unsubscribe(note)
    return ends[1] - ends[0], at
