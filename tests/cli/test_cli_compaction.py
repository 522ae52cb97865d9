"""A conversation that outgrows its model, from the command line to a server that checks every request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.model_server import Answer, Seen, Server, server_in_thread
from doubles.os_processes import alive, end_all, unique
from doubles.replies import anthropic, chat
from doubles.rules import violations
from person import at_terminal

from novacode.sessions.fold import load

pytestmark = pytest.mark.timeout(120)

_CAN_READ = 12_000
_TURNS = 14


def _model(asked: list[str]) -> Callable[[Seen], Answer]:
    """Return a model that calls `shell` turn after turn; `asked` gets what each request was."""

    def answer(seen: Seen) -> Answer:
        tokens = len(seen.body) // 4
        problem = violations("anthropic", seen.body)
        if problem:
            asked.append(f"wrong: {problem}")
            return _refused(str(problem))
        if tokens > _CAN_READ:
            asked.append("too long")
            return _refused(f"prompt is too long: {tokens} tokens > {_CAN_READ} maximum")
        if "<record>" in str(seen.json["messages"][-1]["content"]):
            asked.append("summary")
            assert "tools" not in seen.json
            return Answer.sse(*_counted(anthropic("The task is to print. It was printed."), tokens))
        asked.append("turn")
        number = asked.count("turn")
        if number > _TURNS:
            return Answer.sse(*_counted(anthropic("Printed."), tokens))
        calls = [(f"tu_{number}", "shell", {"command": f"printf '%03000d\\n' {number}"})]
        return Answer.sse(*_counted(anthropic("y" * 2_000, calls), tokens))

    return answer


def _refused(message: str) -> Answer:
    return Answer.error(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def _counted(frames: list[bytes], tokens: int) -> list[bytes]:
    return [frame.replace(b'"input_tokens": 10', b'"input_tokens": %d' % tokens) for frame in frames]


@pytest.mark.parametrize("window", [_CAN_READ, None], ids=["window known", "window not known"])
def test_a_long_run_is_shortened_and_can_be_gone_on_with(window: int | None, tmp_path: Path) -> None:
    """Every request is one the service accepts, or refuses for its length alone; the session keeps everything."""
    asked: list[str] = []
    place = Place(tmp_path, {"NOVACODE_CONTEXT_WINDOW": str(window)} if window else {})
    with server_in_thread(_model(asked)) as server:
        flags = ("run", "--base-url", server.url, "-m", "anthropic/m", "--yolo", "--output-format", "json")
        first = place.run(*flags, "print a lot")
        second = place.run(*flags, "-c", "and once more")
        last = server.requests[-1].json["messages"]
    assert (first.code, first.result["result"], first.result["calls"]["ok"]) == (0, "Printed.", _TURNS), first.err
    assert (second.code, second.result["result"]) == (0, "Printed."), second.err
    assert "summary" in asked
    assert ("too long" in asked) is (window is None)
    assert not [one for one in asked if one.startswith("wrong")]
    assert "was shortened from about" in first.err
    assert last[0]["content"][0]["text"] == "print a lot"
    assert "The task is to print." in str(last[0]["content"])
    [path] = (tmp_path / "home").glob("sessions/*/*.jsonl")
    whole = [exchange for exchange in load(path, whole=True).history.exchanges if exchange.results]
    assert [exchange.results[0].text[2_990:].strip().lstrip("0") for exchange in whole] == [
        str(number) for number in range(1, _TURNS + 1)
    ]
    shown = place.run("sessions", "show", path.stem)
    assert shown.out.count(b"y" * 200) >= _TURNS


def test_a_prompt_that_is_too_large_by_itself_ends_with_its_own_reason(tmp_path: Path) -> None:
    """Code 1, one object, and what to do."""
    asked: list[str] = []
    place = Place(tmp_path)
    (tmp_path / "prompt").write_bytes(b"word " * 20_000)
    with server_in_thread(_model(asked)) as server, (tmp_path / "prompt").open("rb") as prompt:
        flags = ("run", "--base-url", server.url, "-m", "anthropic/m", "--output-format", "json")
        ended = place.run(*flags, stdin=prompt)
    assert (ended.code, ended.result["subtype"], ended.result["terminal_reason"]) == (
        1,
        "error_model",
        "prompt_too_large",
    )
    assert "Give it less" in ended.result["error"]["message"]
    assert json.loads(ended.out)["num_turns"] == 1
    assert asked == ["too long"]


def _killed_in_a_call(place: Place) -> Path:
    """Leave a session behind whose process was killed while a tool ran, with enough in it to be worth shortening."""
    token = unique()
    calls = [("tu_1", "shell", {"command": f"sleep {token}"}), ("tu_2", "shell", {"command": "echo never"})]
    long = [("tu_0", "shell", {"command": "seq 6000"})]
    with checking([anthropic("Counting.", long), anthropic("Working.", calls)]) as server:
        process = place.start(
            "run", "--base-url", server.url, "-m", "anthropic/m", "--yolo", "--overlap", "none", "count"
        )
        place.until(lambda: bool(alive(f"sleep {token}")))
        process.kill()
        place.wait(process)
    end_all(token)
    [path] = (place.root / "home").glob("sessions/*/*.jsonl")
    return path


def _said(server: Server) -> str:
    return str(server.requests[-1].json["messages"])


def test_br_003_a_killed_session_is_compacted_first_and_then_gone_on_with(tmp_path: Path) -> None:
    """The session of a process that was killed: `/compact` is the first thing that is asked, then come two providers.

    Each request is one the service takes, and the last of all says what was said, and not what came of it in full.
    """
    place = Place(tmp_path, {"OPENAI_API_KEY": "k", "TERM": "dumb"})
    path = _killed_in_a_call(place)
    with (
        checking([anthropic("It counted to six thousand."), anthropic("Going on.")]) as server,
        at_terminal(place, "chat", "--base-url", server.url, "-m", "anthropic/m", "-c") as person,
    ):
        person.says("/compact how far it counted")
        person.sees("was shortened from about")
        summary = _said(server)
        person.says("go on")
        person.sees("Going on.")
        gone_on = _said(server)
        person.says("/quit")
        assert person.leaves() == 0
    assert "seq 6000" in summary
    assert "Started, outcome unknown" in gone_on
    assert "Never started" in gone_on
    assert "for this in it: how far it counted" in summary
    assert "It counted to six thousand." in gone_on
    assert "5999" not in gone_on
    with checking([chat("Me too.")], "openai-chat") as other:
        flags = ("run", "--base-url", other.url, "-m", "openai/m", "--output-format", "json", "-c")
        switched = place.run(*flags, "and you?")
    assert (switched.code, switched.result["result"]) == (0, "Me too.")
    assert place.run("sessions", "check", path.stem).code == 0
    assert "5999" in str(load(path, whole=True).history.items)


def test_a_chat_that_is_short_says_so_and_asks_nobody(tmp_path: Path) -> None:
    place = Place(tmp_path, {"TERM": "dumb"})
    with (
        checking([anthropic("Hello.")]) as server,
        at_terminal(place, "chat", "--base-url", server.url, "-m", "anthropic/m") as person,
    ):
        person.says("hi")
        person.sees("Hello.")
        person.says("/compact")
        person.sees("it stays as it is")
        person.says("/quit")
        assert person.leaves() == 0
        assert len(server.requests) == 1
