"""Coming back: what was missed, once and in order, whatever happened meanwhile; and what becomes of who is too slow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from remote.remote_world import ASK_TWICE, SAY, Browser, Remote, reply, serving

from novacode.remote.client import Client
from novacode.remote.connections import Connections
from novacode.remote.missed import Missed, last_seq
from novacode.remote.watcher import Batch, Watcher
from novacode.sessions.record import Header, encode
from novacode.values.events import Level, Notice, Stamped
from novacode.values.ids import RunId, SessionId

_TALK = "".join(f'{{ text = "word {number} ", fragments = 2 }}, ' for number in range(50))
_LONG = f"[[turn]]\nsteps = [ {_TALK} ]\n"


async def test_a_client_that_comes_back_gets_what_it_missed_once_and_in_order(tmp_path: Path) -> None:
    """From the last event it saw on, over as many connections as it takes, it has the same as one that stayed."""
    async with serving(tmp_path, _LONG + ASK_TWICE) as remote:
        session = remote.hub.create().session
        async with remote.browser(session) as stayed:
            await stayed.ask("prompt", text="talk")
            await stayed.until_event("run_ended")
            await stayed.quiet()
            kept = await _kept(remote, session)
        for cut in (0, 1, len(kept) // 2, len(kept) - 1, len(kept)):
            last = kept[cut - 1]["seq"] if cut else 0
            async with remote.browser(session, lastSeq=last, server=remote.hub.instance) as back:
                assert back.events == kept[cut:]
                assert [one["reset"] for one in back.got if one["type"] == "sync"] == [False]


async def test_in_the_middle_of_an_approval_it_is_still_there(tmp_path: Path) -> None:
    """The open questions come again, and of the turn under way the fragments, too."""
    async with serving(tmp_path, ASK_TWICE) as remote:
        session = remote.hub.create().session
        async with remote.browser(session) as stayed:
            await stayed.ask("prompt", text="ask")
            await stayed.question(2)
            async with remote.browser(session) as back:
                assert len(await back.question(2)) == 2
                assert back.events[: len(stayed.events)] == stayed.events
                assert "call_delta" in {event["type"] for event in back.events}


async def test_numbers_of_another_server_mean_nothing(tmp_path: Path) -> None:
    """A `lastSeq` that was seen under another server, or is too high, gives everything again."""
    async with serving(tmp_path, SAY) as remote:
        started = await remote.run("go")
        session = started["session"]
        async with remote.browser(session) as first:
            await first.quiet()
        kept = await _kept(remote, session)
        for hello in ({"lastSeq": 2, "server": "another"}, {"lastSeq": 10_000, "server": remote.hub.instance}):
            async with remote.browser(session, **hello) as back:
                assert [one["reset"] for one in back.got if one["type"] == "sync"] == [True]
                assert back.events == kept


async def test_a_client_that_reads_nothing_changes_nothing_for_others(tmp_path: Path) -> None:
    """The run goes on, others see all of it, what waits is bounded; and it is told that it lags, and catches up."""
    output = {"command": "seq 30000"}
    script = "".join(reply(("shell", output)) for _ in range(6)) + reply(text="done")
    async with serving(tmp_path, script, {"permissions.mode": "bypass"}) as remote:
        session = remote.hub.create().session
        room = remote.hub.room(session)
        async with remote.browser(session) as reading:
            deaf = Watcher("deaf", most=20_000)
            room.watch(deaf)
            await reading.ask("prompt", text="go")
            await reading.until_event("run_ended")
            assert deaf.missed > 0
            assert sum(len(batch.text) for batch in deaf._queue) <= 20_000
            assert not deaf.broken
        assert [event["seq"] for event in reading.events] == list(range(1, reading.events[-1]["seq"] + 1))


async def test_who_lags_is_told_and_resynchronises(tmp_path: Path) -> None:
    """`lagging` says how many events were dropped; then comes what is on record of them, and what is open."""
    async with serving(tmp_path, _LONG) as remote, trio.open_nursery() as nursery:
        session = remote.hub.create().session
        room = remote.hub.room(session)
        client = Client(remote.hub, "slow")
        client.watcher._most = 4000
        gate, synced, over, got = trio.Event(), trio.Event(), trio.Event(), Browser(None)  # type: ignore[arg-type]

        async def send(batch: Batch) -> None:
            got.take(batch.text)
            if synced.is_set():
                await gate.wait()
            if got.got[-1]["type"] == "approvals":
                (over if synced.is_set() else synced).set()

        client.watch(room, None)
        nursery.start_soon(client.send_all, send)
        await synced.wait()
        await room.prompt("go")
        await room.quiet()
        assert client.watcher.missed > 0
        gate.set()
        with trio.fail_after(20):
            while got.got[-3]["type"] != "synced":
                over = trio.Event()
                await over.wait()
        types = [message["type"] for message in got.got]
        at = types.index("lagging")
        assert got.got[at]["missed"] > 0
        assert types[at + 1] == "sync"
        assert types[-3:] == ["synced", "state", "approvals"]
        kept = {event["seq"] for event in await _kept(remote, session)}
        assert kept <= {event["seq"] for event in got.events}
        client.leave()


async def test_switching_between_sessions(tmp_path: Path) -> None:
    """Each sync is of one session, and what happens in the other is not sent any more."""
    async with serving(tmp_path, SAY * 4) as remote:
        one, two = (await remote.run("one"))["session"], (await remote.run("two"))["session"]
        async with remote.browser(one) as browser:
            await browser.quiet()
            await browser.say("open", session=two)
            await browser.until(lambda message: message["type"] == "synced" and message["session"] == two)
            seen = len(browser.got)
            async with remote.browser(one) as other:
                await other.ask("prompt", text="more")
                await other.quiet()
            await browser.ask("ping")
            assert {message.get("session", two) for message in browser.got[seen:]} == {two}
            listed = await browser.ask("sessions")
            assert {item["session"] for item in listed["items"]} == {one, two}


@given(
    sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=80),
    after=st.integers(0, 90),
    torn=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_what_is_read_from_the_journal_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], after: int, torn: bool
) -> None:
    """Piece by piece it is all events after the one named, also with a torn line and a damaged one."""
    path = tmp_path_factory.mktemp("journal") / "s.jsonl"
    events = [Stamped(seq, RunId("s-r1"), 1.0, Notice(Level.INFO, "é" * size)) for seq, size in enumerate(sizes, 1)]
    lines = [encode(Header(SessionId("s"), "/", 1.0)), *map(encode, events)]
    path.write_bytes(b"".join(lines) + (lines[-1][:-3] if torn else b""))
    missed = Missed(path)
    found, at = missed.read(after, None)
    while at is not None:
        more, at = missed.read(after, None, at)
        found += more
    assert [seq for seq, _ in found] == [seq for seq in range(1, len(sizes) + 1) if seq > after]
    assert all(b'"crc"' not in text for _, text in found)
    assert last_seq(path) == len(sizes)


async def test_the_bug_of_one_connection_ends_no_other(autojump_clock: trio.testing.MockClock) -> None:
    """It is told, and the next one is served."""
    bugs: list[Exception] = []
    connections = Connections(bugs.append)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    served: list[Any] = []

    async def serve(line: Any) -> None:
        served.append(line)
        if len(served) == 1:
            raise ValueError("a bug")
        await line.send_all(b"good")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, lambda stream: connections.handle(stream, serve), listeners)
        port = listeners[0].socket.getsockname()[1]
        first = await trio.open_tcp_stream("127.0.0.1", port)
        second = await trio.open_tcp_stream("127.0.0.1", port)
        assert await second.receive_some() == b"good"
        nursery.cancel_scope.cancel()
    for stream in (first, second):
        await trio.aclose_forcefully(stream)
    assert [str(bug) for bug in bugs] == ["a bug"]


def test_a_watcher_keeps_what_is_no_event() -> None:
    """Events are dropped where too much waits, questions are not; where even they are too much, nobody is there."""
    watcher = Watcher("slow", most=100)
    for seq in range(1, 20):
        watcher.put(Batch("x" * 10, seq, seq, 1))
    watcher.put(Batch("a question"))
    assert (watcher.missed, watcher.take(), watcher.take(), watcher.broken) == (19, Batch("a question"), None, False)
    watcher.put(Batch("y" * 200))
    assert watcher.broken


async def _kept(remote: Remote, session: str) -> list[dict[str, Any]]:
    """Return what is on record, over HTTP."""
    async with remote.http() as http:
        lines = (await http.get(f"/api/v1/sessions/{session}/transcript")).text.splitlines()

    return [json.loads(line) for line in lines]
