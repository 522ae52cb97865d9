"""Faults that users of other agents reported, about calls without results and about session files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio
import trio.testing
from doubles.command_line import Place, checking
from doubles.fake_model import Break, call, end, say
from doubles.os_processes import alive, end_all, unique
from doubles.replies import anthropic, chat
from doubles.rules import violations
from doubles.world import World
from session_events import stamped, text_run

from novacode.authority.approvals import Answer, Receipt
from novacode.protocols.summary import codec_for
from novacode.sessions.fold import load
from novacode.sessions.listing import list_sessions
from novacode.sessions.record import Header, encode
from novacode.values.events import ApprovalAsked, ApprovalClosed, RunBegan, TurnCommitted
from novacode.values.history import Exchange
from novacode.values.ids import CallId, SessionId
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import ModelRequest, StopReason
from novacode.values.results import Outcome, ToolResult

PROTOCOLS = ("anthropic", "openai-chat", "openai-responses", "gemini")


def refused(history):
    return [
        broken
        for name in PROTOCOLS
        for broken in violations(name, codec_for(name).encode(ModelRequest("m", "", history)).body)
    ]


async def test_br_002_what_follows_a_lost_stream_is_a_new_message(autojump_clock):
    """The connection drops behind a call: its result stands in between, and nothing is glued to its message."""
    world = World([[say("Looking."), call("tu_1", "work"), Break()], [say("Continuing."), end()]])
    await world.agent.run("look")
    _, first, second = world.talk.history.items
    assert [type(part).__name__ for part in first.message.parts] == ["Text", "ToolCall"]
    assert [result.call_id for result in first.results] == ["tu_1"]
    assert second.message.text == "Continuing."
    assert refused(world.talk.history) == []


async def test_br_007_a_question_that_is_left_open_dies_with_its_run(autojump_clock):
    """The run is stopped while it asks; the new text follows a result that says not run, and the old answer is late."""
    world = World([[call("tu_1", "asks"), end(StopReason.TOOL_USE)], [say("Listing."), end()]])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "deploy")
        await trio.testing.wait_all_tasks_blocked()
        world.agent.cancel("the person")
    [asked] = world.of(ApprovalAsked)
    [closed] = world.of(ApprovalClosed)
    assert (closed.approval_id, closed.decision) == (asked.approval_id, "abandoned")
    ended = await world.agent.run("forget it, list files instead")
    late = world.agent.answer("s-r1", asked.approval_id, Answer(allowed=True, by="a late click"))
    assert (ended.text, late) == ("Listing.", Receipt.STALE_RUN)
    _, exchange, said, _ = world.talk.history.items
    assert [(result.call_id, result.outcome, result.began) for result in exchange.results] == [
        (CallId("tu_1"), Outcome.CANCELLED, False)
    ]
    assert said == User.said("forget it, list files instead")
    assert "begin tu_1" not in world.log
    assert refused(world.talk.history) == []


@pytest.mark.timeout(120)
def test_br_003_a_session_whose_process_was_killed_goes_on_with_any_provider(tmp_path):
    """SIGKILL while a tool runs; the same provider, and then another, take what is sent after that."""
    place, token = Place(tmp_path, {"OPENAI_API_KEY": "k"}), unique()
    calls = [("tu_1", "shell", {"command": f"sleep {token}"}), ("tu_2", "shell", {"command": "echo never"})]
    flags = ("--yolo", "--output-format", "json", "--overlap", "none")
    with checking([anthropic("Working.", calls), anthropic("Going on.")]) as server:
        process = place.start("run", "--base-url", server.url, "-m", "anthropic/m", *flags, "go")
        place.until(lambda: bool(alive(token)))
        process.kill()
        place.wait(process)
        end_all(token)  # nobody was left to reap it
        again = place.run("run", "--base-url", server.url, "-m", "anthropic/m", *flags, "-c", "go on")
        blocks = server.requests[-1].json["messages"][2]["content"]
    assert (again.code, again.result["result"]) == (0, "Going on.")
    told = {block["tool_use_id"]: block["content"][0]["text"] for block in blocks if block["type"] == "tool_result"}
    assert told["tu_1"].startswith("Started, outcome unknown")
    assert told["tu_2"].startswith("Never started")
    with checking([chat("Me too.")], "openai-chat") as other:
        switched = place.run("run", "--base-url", other.url, "-m", "openai/m", *flags, "-c", "and you?")
    assert (switched.code, switched.result["result"]) == (0, "Me too.")


def big_session(path):
    """60 MB in 20,000 records, one of them of 12 MB, many of no meaning for history."""
    huge = ToolCall(CallId("huge"), 1, "shell", {})
    result = ToolResult(huge.id, "shell", Outcome.OK, True, (Text("0123456789ab" * 1_000_000),))
    with path.open("wb") as file:
        file.write(encode(Header(SessionId("s-x"), "/w", 1.0)))
        events = [RunBegan(User.said("go")), TurnCommitted(Exchange(Assistant((huge,)), (result,)))]
        for number in range(4000):
            events += text_run(number)
        for one in stamped(events):
            file.write(encode(one))
            if one.seq % 400 == 0:
                file.write(b'{"type":"of_another_kind","filling":"%b"}\n' % (b"x" * 900_000))


MEASURE = """
import sys, time
from pathlib import Path
from novacode.sessions.fold import load
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
began, before = time.perf_counter(), peak()
loaded = load(Path(sys.argv[1]))
seconds, memory = time.perf_counter() - began, peak() - before
kept = sum(len(str(item)) for item in loaded.history.items)
print(seconds, memory, kept)
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_br_131_a_large_session_is_read_in_bounded_time_and_memory(tmp_path):
    """Under 3 s; memory a few times the largest record and the history, not the file."""
    path = tmp_path / "s.jsonl"
    big_session(path)
    assert path.stat().st_size > 55_000_000
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    seconds, memory, kept = map(float, done.stdout.split())
    print(f"{seconds:.2f} s, {memory / 1e6:.0f} MB above the base, {kept / 1e6:.0f} MB of history")
    assert seconds < 3
    assert memory < 6 * kept


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_br_131_a_list_reads_heads_and_tails_only(tmp_path):
    """200 sessions of 60 MB each, as sparse files."""
    folder = tmp_path / "sessions" / "w"
    folder.mkdir(parents=True)
    head = encode(Header(SessionId("s-x"), "/w", 1.0)) + b"".join(map(encode, stamped(text_run(1))))
    for number in range(200):
        path = folder / f"s-{number}.jsonl"
        path.write_bytes(head)
        os.truncate(path, 60_000_000)
    began = time.perf_counter()
    assert len(list_sessions(tmp_path / "sessions")) == 200
    assert time.perf_counter() - began < 1


WATCH = """
import os, sys
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes, os.PathLike)) and os.fsdecode(args[0]).endswith(".jsonl"):
        os.write(2, b"opened " + os.fsencode(args[0]) + b"\\n")
sys.addaudithook(watch)
from novacode.__main__ import main
main()
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("flags", [(), ("-c",)])
def test_br_132_old_sessions_of_other_folders_are_not_opened(tmp_path, flags):
    """A run in a new folder, and one that looks for the latest session of it, open their own file and no other."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    for number in range(50):
        old = home / "sessions" / f"old-{number}" / f"s-{number}.jsonl"
        old.parent.mkdir(parents=True)
        old.write_bytes(encode(Header(SessionId(f"s-{number}"), "/w", 1.0)))
        os.truncate(old, 20_000_000)
    done = subprocess.run(
        [sys.executable, "-c", WATCH, "run", "-m", "demo", *flags, "hi"],
        cwd=work,
        env={**os.environ, "NOVACODE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    opened = [Path(line.removeprefix("opened ")) for line in done.stderr.splitlines() if line.startswith("opened ")]
    assert opened, "the run has a session of its own"
    assert {path.parent.name for path in opened}.isdisjoint({f"old-{number}" for number in range(50)})


@pytest.mark.parametrize("text", ["a\u2028b\u2029c\x85d\x0be", "x\u2028" * 500])
def test_br_130_the_same_text_comes_back_through_a_file(tmp_path, text):
    path = tmp_path / "s.jsonl"
    done = ToolCall(CallId("c"), 1, "shell", {"text": text})
    result = ToolResult(done.id, "shell", Outcome.OK, True, (Text(text),))
    events = [RunBegan(User.said(text)), TurnCommitted(Exchange(Assistant((done,)), (result,)))]
    path.write_bytes(encode(Header(SessionId("s-x"), "/w", 1.0)) + b"".join(map(encode, stamped(events))))
    assert load(path).history.items == (User.said(text), Exchange(Assistant((done,)), (result,)))
