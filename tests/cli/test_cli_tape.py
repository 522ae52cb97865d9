"""`novacode run --record` and `--replay`, as users run them, and `novacode tape`."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import attrs
import pytest
from doubles.command_line import Ended, Place, checking
from doubles.replies import anthropic

pytestmark = pytest.mark.timeout(120)

OUTPUT = ("--output-format", "stream-json")


def place(root: Path) -> Place:
    root.mkdir(exist_ok=True)
    made = Place(root, {"ANTHROPIC_API_KEY": ""})
    (made.work / "a.txt").write_text("one\n")
    return made


def record(there: Place, replies: Any, *more: str) -> tuple[Ended, Path]:
    """Run against a server that gives `replies`, and return how that went and the tape."""
    tape = there.root / "a.tape"
    with checking(replies) as server:
        flags = ("-m", "anthropic/m", "--base-url", server.url, "--record", str(tape), "--yolo", *OUTPUT)
        there.environ["ANTHROPIC_API_KEY"] = "a-key-of-my-own"
        ended = there.run("run", *flags, *more, "go")
        there.environ["ANTHROPIC_API_KEY"] = ""
    assert ended.code == 0, ended.err
    return ended, tape


def replay(here: Place, tape: Path, *more: str) -> Ended:
    return here.run("run", "--replay", str(tape), "--yolo", *OUTPUT, *(more or ("go",)))


def answers(ended: Ended) -> list[Any]:
    """What was said, called and answered, without what names the session."""
    lines = [json.loads(line) for line in ended.out.splitlines()]
    return [line["message"] for line in lines if line["type"] in ("assistant", "user")]


def lines_of(tape: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tape.read_text().splitlines()]


@attrs.frozen
class Recorded:
    """A run that wrote a file, in a folder whose name the model knows and uses."""

    there: Place
    ended: Ended
    tape: Path


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    there = place(tmp_path / "there")
    read = ("tu_1", "read", {"path": str(there.work / "a.txt")})
    look = ("tu_2", "shell", {"command": f"ls {there.work}"})
    write = ("tu_3", "write", {"path": f"{there.work}/b.txt", "content": "two\n"})
    replies = [anthropic("Looking.", [read, look]), anthropic("", [write]), anthropic("Done: one and two.")]
    return Recorded(there, *record(there, replies))


def test_a_replay_needs_no_server_no_key_and_no_folder(recorded: Recorded, tmp_path: Path) -> None:
    """The same answers as recorded, the same bytes in every folder, and nothing is written."""
    one, two = place(tmp_path / "one"), place(tmp_path / "two")
    shutil.rmtree(recorded.there.work)
    (two.work / "a.txt").unlink()
    first, second = replay(one, recorded.tape), replay(two, recorded.tape)
    assert (first.code, first.out) == (0, second.out), first.err
    assert answers(first) == answers(recorded.ended)
    assert sorted(path.name for path in one.work.iterdir()) == ["a.txt"]
    assert not list(two.work.iterdir())
    assert not recorded.there.work.exists()


def test_with_real_tools_the_calls_are_made_where_the_replay_is(recorded: Recorded, tmp_path: Path) -> None:
    """The model says the folder it was recorded in, and means this one."""
    here = place(tmp_path / "here")
    (recorded.there.work / "b.txt").unlink()
    ended = replay(here, recorded.tape, "--replay-tools", "real", "go")
    assert ended.code == 0, ended.err
    assert (here.work / "b.txt").read_text() == "two\n"
    assert not (recorded.there.work / "b.txt").exists()
    [calls] = [line for line in answers(ended) if line["content"][0].get("text") == "Looking."]
    assert [block["input"] for block in calls["content"][1:]] == [
        {"path": f"{here.work}/a.txt"},
        {"command": f"ls {here.work}"},
    ]


def test_real_tools_that_find_something_else_end_the_replay(recorded: Recorded, tmp_path: Path) -> None:
    here = place(tmp_path / "here")
    (here.work / "a.txt").write_text("another\n")
    ended = replay(here, recorded.tape, "--replay-tools", "real", "go")
    assert (ended.code, ended.result["subtype"], ended.result["terminal_reason"]) == (
        55,
        "error_replay",
        "replay_mismatch",
    )
    told = r'$.messages[2].content[0].content[0].text: expected "     1\tone\n[lines'
    assert told in ended.result["error"]["message"]
    assert told in ended.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("stop",), '$.messages[0].content[0].text: expected "go", found "stop"'),
        (("-m", "anthropic/n", "go"), '$.model: expected "m", found "n"'),
        (("-m", "openai/m", "go"), 'path: expected "/v1/messages", found "/'),
        (("--system-prompt", "Be brief.", "go"), '$.system[0].text: expected "You are'),
        (("--max-output-tokens", "9", "go"), "$.max_tokens: expected"),
    ],
)
def test_a_request_that_is_not_on_the_tape_is_told_and_refused(
    recorded: Recorded, tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    ended = replay(place(tmp_path / "here"), recorded.tape, *more)
    assert ended.code == 55, ended.err
    assert told in ended.err
    assert told in ended.result["error"]["message"]


def test_requests_that_were_not_made_are_told(recorded: Recorded, tmp_path: Path) -> None:
    """The run ends earlier than it did: with a tape of another run behind it."""
    here, longer = place(tmp_path / "here"), tmp_path / "longer.tape"
    assert here.run("tape", "merge", str(recorded.tape), str(recorded.tape), "-o", str(longer)).code == 0
    ended = replay(here, longer)
    assert ended.code == 0
    assert f"3 requests on the tape {longer} were not made: 4 (line " in ended.err


def test_of_keys_there_is_nothing_on_the_tape(tmp_path: Path) -> None:
    """Neither ours, nor one a tool has come across, nor one that the model was told."""
    there = place(tmp_path / "there")
    shape = "sk-ant-" + "api03-Abc123def456Ghi789"
    (there.work / "a.txt").write_text(f"KEY={shape}\n")
    there.environ["MY_API_KEY"] = "a-value-nobody-would-guess"
    show = {"command": "cat a.txt"}
    first, tape = record(
        there,
        [anthropic(f"I see {shape} and a-value-nobody-would-guess.", [("tu_1", "shell", show)]), anthropic("So.")],
    )
    text = tape.read_text()
    assert shape in json.dumps(answers(first))
    for secret in (shape, "a-key-of-my-own", "a-value-nobody-would-guess"):
        assert secret not in text
    assert "[Anthropic key removed]" in text
    assert there.run("tape", "check", str(tape)).code == 0
    assert replay(place(tmp_path / "here"), tape).code == 0


def test_what_hooks_said_is_said_again_where_there_are_none(tmp_path: Path) -> None:
    """A guard that refuses, one that rewrites, context for the prompt: nothing of it is run in a replay."""
    there, here = place(tmp_path / "there"), place(tmp_path / "here")
    guard = """case $(cat) in
      *secret*) echo "not that one" >&2; exit 2;;
      *) echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo rewritten"}}}';;
    esac"""
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": guard}]}],
        "PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo noted >&2; exit 2"}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo a hint; touch ran"}]}],
    }
    (there.root / "home").mkdir()
    (there.root / "home/hooks.json").write_text(json.dumps({"hooks": hooks}))
    calls = [("tu_1", "shell", {"command": "cat secret"}), ("tu_2", "shell", {"command": "echo original"})]
    first, tape = record(there, [anthropic("", calls), anthropic("Done.")])
    assert {line["event"] for line in lines_of(tape)[1:] if line["type"] == "hook"} == set(hooks)
    ended = replay(here, tape)
    assert ended.code == 0, ended.err
    assert answers(ended) == answers(first)
    assert "rewritten" in ended.out.decode()
    assert not (here.work / "ran").exists()


def test_a_run_that_was_stopped_is_stopped_again(tmp_path: Path) -> None:
    there, here, tape = place(tmp_path / "there"), place(tmp_path / "here"), tmp_path / "a.tape"
    call = ("tu_1", "shell", {"command": "touch begun; sleep 60"})
    with checking([anthropic("Wait.", [call])]) as server:
        there.environ["ANTHROPIC_API_KEY"] = "k"
        flags = ("-m", "anthropic/m", "--base-url", server.url, "--record", str(tape), "--yolo", *OUTPUT)
        process = there.start("run", *flags, "go")
        there.until((there.work / "begun").exists)
        os.kill(process.pid, signal.SIGINT)
        first = there.wait(process)
    ended = replay(here, tape)
    assert (first.code, ended.code) == (130, 130)
    assert answers(ended) == answers(first)
    assert not (here.work / "begun").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--record", "x.tape", "--replay", "TAPE"), 2, "--record and --replay exclude each other"),
        (("--replay-tools", "real"), 2, "give the tape with --replay TAPE"),
        (("--replay", "TAPE", "--simulate"), 2, "--simulate and --replay exclude each other"),
        (("--replay", "TAPE", "-w"), 2, "a replay touches nothing"),
        (("--replay", "TAPE", "-m", "demo"), 2, "the tape was recorded with anthropic/m"),
        (("--replay", "missing.tape"), 42, "missing.tape cannot be read: No such file"),
        (("--replay", "a.txt"), 42, "is not a tape"),
        (("-m", "demo", "--record", "a.txt"), 42, "is not a tape, so it is not overwritten"),
        (("-m", "demo", "--record", "no/such.tape"), 42, "cannot be written: No such file"),
    ],
)
def test_what_does_not_go_together_is_told_before_anything_happens(
    recorded: Recorded, arguments: tuple[str, ...], code: int, told: str
) -> None:
    given = [str(recorded.tape) if argument == "TAPE" else argument for argument in arguments]
    ended = recorded.there.run("run", *given, "--output-format", "json", "--", "go")
    assert (ended.code, ended.result["is_error"]) == (code, True)
    assert told in ended.err
    assert (recorded.there.work / "a.txt").read_text() == "one\n"


# --- novacode tape --------------------------------------------------------------------------------------------------


def test_a_tape_is_shown_cut_and_put_together_again(recorded: Recorded, tmp_path: Path) -> None:
    here = place(tmp_path / "here")
    shown = here.run("tape", "show", str(recorded.tape)).out.decode()
    for text in ("request 1  (line 2)  POST /v1/messages", "asked   go", "said    Looking.", 'call    read {"path":'):
        assert text in shown
    assert "tool    write tu_3 done in" in shown
    objects = [json.loads(line) for line in here.run("tape", "show", "--json", str(recorded.tape)).out.splitlines()]
    assert [(one["request"], one["status"], one["how"]) for one in objects] == [(n, 200, "end") for n in (1, 2, 3)]

    pieces = [tmp_path / "1.tape", tmp_path / "2.tape"]
    for piece, wanted in zip(pieces, ("1", "2-3"), strict=True):
        assert here.run("tape", "trim", str(recorded.tape), wanted, "-o", str(piece)).code == 0
    joined = here.run("tape", "merge", *map(str, pieces)).out
    assert [json.loads(line) for line in joined.splitlines()] == lines_of(recorded.tape)
    assert here.run("tape", "trim", str(recorded.tape), "4-").code == 2
    assert here.run("tape", "trim", str(recorded.tape), "2-1").code == 2


def test_tapes_of_two_models_are_not_put_together(recorded: Recorded, tmp_path: Path) -> None:
    other = tmp_path / "other.tape"
    other.write_text(recorded.tape.read_text().replace('"name":"m"', '"name":"n"', 1))
    ended = recorded.there.run("tape", "merge", str(recorded.tape), str(other))
    assert (ended.code, "its name is 'n', not 'm'" in ended.err) == (2, True)


def test_check_finds_what_is_wrong(recorded: Recorded, tmp_path: Path) -> None:
    """A whole tape, one with a key in it, one that was killed, one with a line out of place, and no tape at all."""
    run, text = recorded.there.run, recorded.tape.read_text()
    assert run("tape", "check", str(recorded.tape)).out.decode().endswith("3 requests, nothing wrong\n")
    bad = tmp_path / "bad.tape"
    lines = text.splitlines(keepends=True)
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    for wrong, told in (
        (text.replace("one", key), "there is what looks like a AWS key"),
        (text[:-3], "the last line is not whole"),
        ("".join(lines[:-1]), "the answer to request 3 has no end"),
        ("".join([lines[0], lines[2], lines[1], *lines[3:]]), "line 2: there is no request 1 before this response"),
    ):
        bad.write_text(wrong)
        ended = run("tape", "check", str(bad))
        assert (ended.code, told in ended.out.decode()) == (1, True), (told, ended.out)
        assert key.encode() not in ended.out
    assert run("tape", "check", str(recorded.there.work / "a.txt")).code == 42
