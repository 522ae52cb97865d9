"""`novacode sessions`: looking at sessions, judging them, mending and copying them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from novacode.cli.sessions_cmd import command
from novacode.errors import InputError, SessionError
from novacode.sessions.fold import load
from novacode.sessions.record import Header, encode
from novacode.values.events import (
    CallMoved,
    CallReady,
    CallSettled,
    PartDone,
    Phase,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    TurnBegan,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.ids import CallId, RunId, SessionId
from novacode.values.parts import Assistant, Text, Thinking, ToolCall, User
from novacode.values.results import Outcome, ToolResult

CALL = ToolCall(CallId("c1"), 1, "shell", {"command": "ls <a>"})
RESULT = ToolResult(
    CALL.id, "shell", Outcome.ERROR, True, (Text("\n".join(f"line {n}" for n in range(20))),), exit_code=2
)
SAID = Assistant((Thinking("hm"), Text("I look at `a`\x1b[31m."), CALL), "demo")
RUN = [
    RunBegan(User.said("what is <here>?"), "demo"),
    TurnBegan(1),
    PartDone(0, Text("I look.")),
    CallReady(1, CALL),
    CallMoved(CALL.id, "shell", Phase.RUNNING),
    CallSettled(RESULT),
    TurnCommitted(Exchange(SAID, (RESULT,))),
    RunEnded(RunStatus.COMPLETED, "completed"),
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("NOVACODE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def put(home: Path, name: str, events=RUN, project: str = "w", cwd: str = "/w") -> Path:
    path = home / "sessions" / project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    stamps = [Stamped(seq, RunId(f"{name}-r1"), 1.9e9 + seq, event) for seq, event in enumerate(events, start=1)]
    path.write_bytes(encode(Header(SessionId(name), cwd, 1.9e9)) + b"".join(map(encode, stamps)))
    return path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    assert (result.return_value or 0) == code, result.output
    return result


def test_the_list_shows_the_latest_first(home):
    put(home, "s-1")
    later = put(home, "s-2", [*RUN, RunBegan(User.said("again"))], "v", "/v")
    rows = run("list").stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["s-2", "s-1"]
    assert "what is <here>?" in rows[0]
    [first, _] = json.loads(run("list", "--json").stdout)
    assert (first["id"], first["path"], first["cwd"], first["last"]) == ("s-2", str(later), "/v", 1.9e9 + 9)
    assert len(run("list", "-n", "1").stdout.splitlines()) == 1
    assert run("list", "-C", str(home.parent)).stdout == ""


def test_a_session_is_shown_for_reading(home):
    put(home, "s-1")
    text = run("show", "s-1").stdout
    assert text.splitlines()[:8] == [
        "s-1 in /w",
        "1 run, demo",
        "",
        "> what is <here>?",
        "",
        "~ hm",
        "I look at `a`\\x1b[31m.",
        '* shell {"command": "ls <a>"}',
    ]
    assert "  = error, exit code 2" in text
    assert "(8 more lines; --full shows them)" in text
    assert "line 19" in run("show", "s-1", "--full").stdout


def test_markdown_keeps_what_was_said_apart(home):
    put(home, "s-1")
    text = run("export", "s-1").stdout
    assert "## You\n\nwhat is <here>?" in text
    assert "> hm" in text
    assert '**shell** (error, exit code 2)\n\n```json\n{"command": "ls <a>"}\n```' in text


def test_html_shows_text_as_text(home, tmp_path):
    put(home, "s-1")
    run("export", "s-1", "--format", "html", "-o", str(tmp_path / "p.html"))
    page = (tmp_path / "p.html").read_text()
    assert "what is &lt;here&gt;?" in page
    assert "<here>" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize("form", ["anthropic", "openai"])
def test_exported_messages_pair(home, tmp_path, form):
    put(home, "s-1")
    target = tmp_path / "m.json"
    run("export", "s-1", "--format", form, "-o", str(target))
    messages = json.loads(target.read_text())["messages"]
    assert "cache_control" not in target.read_text()
    assert messages[0]["role"] == "user"
    assert "whole (3 records, 1 calls)" in run("check", str(target)).stdout


def test_check_judges_many_and_its_code_says_the_worst(home, tmp_path):
    good = put(home, "s-1")
    put(home, "s-2", RUN[:5])
    foreign = tmp_path / "t.json"
    foreign.write_text(json.dumps([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "ls"}}]}]))
    assert run("check", "s-1").stdout == f"{good}: whole (8 records, 1 calls)\n"
    text = run("check", "s-1", "s-2", str(foreign), code=1).stdout
    assert "run s-2-r1 has no end, and 1 calls without a committed result: c1" in text
    assert f"{foreign}: at the end: there is no result for ls 1" in text
    reports = [json.loads(line) for line in run("check", "--json", "s-1", "s-2", code=1).stdout.splitlines()]
    assert [report["ok"] for report in reports] == [True, False]


def test_check_of_what_is_no_transcript_is_said(home, tmp_path):
    (tmp_path / "notes").write_text("hello")
    result = run("check", str(tmp_path / "notes"), code=42)
    assert "holds no messages" in result.stderr
    with pytest.raises(InputError, match="is not a file"):
        run("check", "nowhere/at.all")


def test_repair_of_a_session_is_in_place_and_once(home):
    path = put(home, "s-1", RUN[:5])
    with path.open("ab") as file:
        file.write(b'{"seq":6,"torn')
    first = run("repair", "s-1").stdout
    assert "cut off by a crash" in first
    assert "1 call had no result when NovaCode ended: c1" in first
    assert first.endswith("whole (9 records, 1 calls)\n")
    once = path.read_bytes()
    assert run("repair", "s-1").stdout == f"{path}: whole (9 records, 1 calls)\n"
    assert path.read_bytes() == once
    run("check", "s-1")


def test_repair_says_what_it_could_not_mend(home):
    path = put(home, "s-1")
    path.write_bytes(path.read_bytes().replace(b"I look.", b"I lock."))
    text = run("repair", "s-1", code=1).stdout
    assert "line 4: was changed after it was written: its checksum is wrong" in text


def test_repair_of_a_transcript_is_a_copy_beside_it(home, tmp_path):
    source = tmp_path / "t.json"
    source.write_text(json.dumps([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "ls"}}]}]))
    before = source.read_bytes()
    text = run("repair", str(source)).stdout
    assert source.read_bytes() == before
    mended = tmp_path / "t.mended.json"
    assert f"{mended}: a mended copy" in text
    run("check", str(mended))
    run("repair", str(source))
    assert (tmp_path / "t.mended-2.json").exists()
    assert "nothing to repair" in run("repair", str(mended)).stdout
    with pytest.raises(InputError, match="cannot be written"):
        run("repair", str(source), "-o", str(mended))


def test_a_fork_is_a_session_of_its_own(home, tmp_path):
    original = put(home, "s-1", cwd=str(tmp_path))
    before = original.read_bytes()
    made = run("fork", "s-1").stdout.strip()
    assert original.read_bytes() == before
    [copy] = (home / "sessions").glob(f"*/{made}.jsonl")
    assert load(copy).history == load(original).history
    assert load(copy).header.cwd == str(tmp_path)


def test_a_time_line_is_drawn_and_written(home, tmp_path):
    put(home, "s-1")
    text = run("timeline", "s-1").stdout
    assert "s-1-r1: what is <here>?" in text
    assert "shell c1" in text
    run("timeline", "s-1", "--run", "1", "--html", str(tmp_path / "t.html"))
    assert "<svg" in (tmp_path / "t.html").read_text()
    with pytest.raises(InputError, match="--run is 2; the session has 1 run"):
        run("timeline", "s-1", "--run", "2")


def test_beginnings_of_ids_are_understood(home):
    put(home, "s-2026-a")
    put(home, "s-2026-b")
    assert "what is" in run("show", "s-2026-b").stdout
    with pytest.raises(SessionError, match="could be any of s-2026-a, s-2026-b"):
        run("show", "s-2026")


@pytest.mark.parametrize("looking", [("show",), ("export",), ("check",), ("timeline",)])
def test_looking_writes_nothing(home, looking):
    path = put(home, "s-1", RUN[:5])
    before = (path.read_bytes(), sorted(os.listdir(path.parent)))
    run(*looking, "s-1", code=1 if looking == ("check",) else 0)
    assert (path.read_bytes(), sorted(os.listdir(path.parent))) == before
