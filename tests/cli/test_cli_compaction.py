"""A conversation that outgrows its model, from the command line to a server that checks every request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from doubles.command_line import Place
from doubles.model_server import Answer, Seen, server_in_thread
from doubles.replies import anthropic
from doubles.rules import violations

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
