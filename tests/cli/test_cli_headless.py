"""`novacode run` as a pipeline runs it: nobody to ask, standard output for the result alone, a code on every path."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.model_server import Answer, server_in_thread
from doubles.replies import anthropic, chat

pytestmark = pytest.mark.timeout(120)


def _flags(url: str, *more: str) -> tuple[str, ...]:
    return ("run", "--base-url", url, "-m", "anthropic/m", *more)


def test_br_149_a_call_that_would_ask_is_denied_at_once(tmp_path: Path) -> None:
    """Nobody to ask: denied with the rule that would have allowed it, nothing executed, and the run goes on."""
    place = Place(tmp_path)
    replies = [anthropic("", [("tu_1", "shell", {"command": "touch made"})]), anthropic("I could not.")]
    with checking(replies) as server:
        ended = place.run(*_flags(server.url, "--output-format", "json"), "go")
        told = server.requests[-1].json["messages"][-1]["content"][0]
    assert (ended.code, (place.work / "made").exists()) == (0, False)
    assert ended.result["calls"]["denied"] == 1
    [denial] = ended.result["permission_denials"]
    assert (denial["tool_name"], denial["tool_use_id"]) == ("shell", "tu_1")
    assert denial["tool_input"] == {"command": "touch made"}
    assert "--allow" in denial["reason"]
    assert "shell(touch made)" in denial["reason"]
    assert told["is_error"] is True


@pytest.mark.parametrize("format_", ["text", "json", "stream-json", "events"])
@pytest.mark.parametrize("denied", [True, False])
def test_br_148_denials_can_be_made_to_fail_the_run(tmp_path: Path, format_: str, *, denied: bool) -> None:
    """With --fail-on-denial; the model went on and came to an end, and the file is not there."""
    place = Place(tmp_path)
    wants = ("write", {"path": "note.txt", "content": "x"}) if denied else ("glob", {"pattern": "*.txt"})
    with checking([anthropic("", [("tu_1", *wants)]), anthropic("I could not.")]) as server:
        ended = place.run(*_flags(server.url, "--fail-on-denial", "--output-format", format_), "go")
    assert (ended.code, (place.work / "note.txt").exists()) == (int(denied), False)
    assert ("--fail-on-denial" in ended.err) is denied
    if format_ in ("json", "stream-json"):
        denials = ended.result["permission_denials"]
        assert (ended.result["subtype"], ended.result["is_error"]) == (
            ("error_denied", True) if denied else ("success", False)
        )
        assert [(one["tool_name"], one["tool_use_id"]) for one in denials] == [("write", "tu_1")] * denied


def test_text_output_is_the_answer_and_nothing_else(tmp_path: Path) -> None:
    """Progress, questions and notices go to stderr."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    replies = [anthropic("Looking.", [("tu_1", "read", {"path": "a.txt"})]), anthropic("It says one.")]
    with checking(replies) as server:
        ended = place.run(*_flags(server.url), "go")
    assert (ended.code, ended.out) == (0, b"It says one.\n")
    assert "read" in ended.err


@pytest.mark.parametrize("format_", ["text", "json", "stream-json", "events"])
def test_a_missing_key_is_41_with_a_result_object(tmp_path: Path, format_: str) -> None:
    """It says what to do, and names the way to try it without a key."""
    place = Place(tmp_path, {"ANTHROPIC_API_KEY": ""})
    ended = place.run("run", "-m", "anthropic/m", "--output-format", format_, "go")
    assert ended.code == 41
    assert "ANTHROPIC_API_KEY" in ended.err
    assert "demo" in ended.err
    if format_ == "text":
        assert ended.out == b""
    else:
        assert (ended.result["subtype"], ended.result["is_error"]) == ("error_auth", True)


def _refusal(status: int, kind: str) -> Answer:
    return Answer.error(status, {"type": "error", "error": {"type": kind, "message": "no"}})


@pytest.mark.parametrize(
    ("answer", "code", "subtype"),
    [
        (_refusal(401, "authentication_error"), 41, "error_auth"),
        (_refusal(404, "not_found_error"), 1, "error_model"),
        (Answer((b"<html>proxy</html>",), 200, (("content-type", "text/html"),)), 1, "error_model"),
    ],
    ids=["key refused", "no such model", "a proxy's page"],
)
def test_br_147_failures_have_codes(tmp_path: Path, answer: Answer, code: int, subtype: str) -> None:
    """An API failure is never printed as if it were the answer."""
    place = Place(tmp_path)
    with server_in_thread(lambda seen: answer) as server:
        text = place.run(*_flags(server.url), "go")
        told = place.run(*_flags(server.url, "--output-format", "json"), "go")
    assert (text.code, text.out, told.code, told.result["subtype"]) == (code, b"", code, subtype)
    assert told.result["error"]["message"]


def test_a_usage_error_is_2_with_a_result_object(tmp_path: Path) -> None:
    """Also where the options could not be parsed at all."""
    ended = Place(tmp_path).run("run", "--output-format", "json", "--max-turns", "none", "go")
    assert (ended.code, ended.result["subtype"]) == (2, "error_usage")
    assert "none" in ended.err


def test_a_limit_is_53_and_says_which(tmp_path: Path) -> None:
    """The model would go on for ever."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    replies = [anthropic("", [(f"tu_{number}", "read", {"path": "a.txt"})]) for number in range(9)]
    with checking(replies) as server:
        ended = place.run(*_flags(server.url, "--output-format", "json", "--max-turns", "2"), "go")
    assert (ended.code, ended.result["subtype"], ended.result["num_turns"]) == (53, "error_max_turns", 2)


@pytest.mark.parametrize("how", ["never closed", "closed", "empty", "extra"])
def test_br_150_a_prompt_argument_does_not_wait_for_stdin(tmp_path: Path, how: str) -> None:
    """The prompt on the command line is the whole prompt, whatever standard input is."""
    place = Place(tmp_path)
    with checking([anthropic("Hello.")]) as server:
        more = {"preexec_fn": lambda: os.close(0)} if how == "closed" else {"stdin": subprocess.PIPE}
        with place.start(*_flags(server.url), "hi", **more) as process:
            if how == "extra":
                process.stdin.write(b"extra")
            if how in ("extra", "empty"):
                process.stdin.close()
            assert process.stdout.read() == b"Hello.\n"
            if process.stdin is not None:
                process.stdin.close()
        sent = server.requests[0].json["messages"][0]["content"]
    assert (process.returncode, [block["text"] for block in sent]) == (0, ["hi"])


def test_a_prompt_comes_from_a_pipe(tmp_path: Path) -> None:
    """Without an argument, and for `-`."""
    place = Place(tmp_path)
    with checking([anthropic("One."), anthropic("Two.")]) as server:
        for arguments in ((), ("-",)):
            process = place.start(*_flags(server.url), *arguments, stdin=subprocess.PIPE)
            process.communicate(b"from a pipe", timeout=60)
        prompts = [request.json["messages"][0]["content"][0]["text"] for request in server.requests]
    assert prompts == ["from a pipe", "from a pipe"]


def test_stream_json_is_one_object_a_line(tmp_path: Path) -> None:
    """`system` first, `result` last, assistant and tool results in between."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    replies = [anthropic("Looking.", [("tu_1", "read", {"path": "a.txt"})]), anthropic("Done.")]
    with checking(replies) as server:
        ended = place.run(*_flags(server.url, "--output-format", "stream-json"), "go")
    assert [json.loads(line)["type"] for line in ended.out.splitlines()] == [
        "system",
        "assistant",
        "user",
        "assistant",
        "result",
    ]


def test_the_other_protocol_runs_the_same_task(tmp_path: Path) -> None:
    """Chat Completions, checked by its own rules, with a follow-up in the same session."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    replies = [chat("Looking.", [("call_1", "read", {"path": "a.txt"})]), chat("It says one."), chat("Still one.")]
    with checking(replies, "openai-chat") as server:
        flags = ("run", "--base-url", f"{server.url}/v1", "-m", "openai/m", "--output-format", "json")
        first = place.run(*flags, "go")
        second = place.run(*flags, "-c", "and now?")
    assert (first.code, first.result["result"]) == (0, "It says one.")
    assert (second.code, second.result["result"]) == (0, "Still one.")
    assert second.result["run_id"] != first.result["run_id"]
