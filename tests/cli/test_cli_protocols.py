"""`novacode run` in every protocol: the same task, a session that changes its provider, and honest failures."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from doubles.command_line import Place, checking
from doubles.model_server import Answer, server_in_thread
from doubles.spoken import PROTOCOLS, Asks, Piece, Say, Think, body

pytestmark = pytest.mark.timeout(120)

MODELS = {
    "anthropic": "anthropic/m",
    "openai-chat": "deepseek/m",
    "openai-responses": "openai-responses/m",
    "gemini": "gemini/m",
}


def reply(protocol: str, *pieces: Piece, stop: str = "end") -> list[Any]:
    return body(protocol, pieces, stop)


def flags(protocol: str, url: str, *more: str) -> tuple[str, ...]:
    return ("run", "-m", MODELS[protocol], "--base-url", url, "--output-format", "json", *more)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_task_in_every_protocol(tmp_path: Path, protocol: str) -> None:
    """Two calls at once, one of them denied, then the answer; with the usage of both requests."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    calls = (Asks("c1", "read", {"path": "a.txt"}), Asks("c2", "shell", {"command": "touch made"}))
    replies = [
        reply(protocol, Think("hm"), Say("Looking."), *calls, stop="tool_use"),
        reply(protocol, Say("It says one.")),
    ]
    with checking(replies, protocol) as server:
        ended = place.run(*flags(protocol, server.url), "go")
        results = server.requests[-1].body
    assert (ended.code, ended.result["result"], ended.result["subtype"]) == (0, "It says one.", "success")
    assert {name: n for name, n in ended.result["calls"].items() if n} == {"total": 2, "ok": 1, "denied": 1}
    assert (ended.result["usage"]["input_tokens"], ended.result["usage"]["output_tokens"]) == (20, 40)
    assert not (place.work / "made").exists()
    assert b"one" in results
    assert b"Permission denied" in results


def test_a_session_changes_its_provider(tmp_path: Path) -> None:
    """Each goes on with what the ones before have said and done, and nobody gets reasoning that is not its own."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    for number, protocol in enumerate((*PROTOCOLS, PROTOCOLS[0])):
        call = Asks("read:0", "read", {"path": "a.txt"})
        replies = [
            reply(protocol, Think(f"thought {number}."), call, stop="tool_use"),
            reply(protocol, Say(f"Answer {number}.")),
        ]
        with checking(replies, protocol) as server:
            # Every server has an address of its own: not even the first provider's seals may come back to its protocol.
            ended = place.run(*flags(protocol, server.url, *(["-c"] if number else [])), f"prompt {number}")
            bodies = [request.body for request in server.requests]
        assert (ended.code, ended.result["result"]) == (0, f"Answer {number}."), ended.err
        for before in range(number):
            assert f"Answer {before}.".encode() in bodies[0]
            assert f"thought {before}.".encode() not in bodies[0]


ERRORS: dict[str, Any] = {
    "anthropic": lambda kind, text: {"type": "error", "error": {"type": kind, "message": text}},
    "openai-chat": lambda kind, text: {"error": {"message": text, "type": "invalid_request_error", "code": kind}},
    "openai-responses": lambda kind, text: {"error": {"message": text, "type": "invalid_request_error", "code": kind}},
    "gemini": lambda kind, text: {"error": {"code": 400, "message": text, "status": kind}},
}
WORDS = {
    "anthropic": ("authentication_error", "not_found_error"),
    "openai-chat": ("invalid_api_key", "model_not_found"),
    "openai-responses": ("invalid_api_key", "model_not_found"),
    "gemini": ("UNAUTHENTICATED", "NOT_FOUND"),
}


KEY, MODEL = (401, 41, "error_auth"), (404, 1, "error_model")


@pytest.mark.parametrize(
    ("protocol", "case"),
    [*((protocol, KEY) for protocol in PROTOCOLS), ("openai-responses", MODEL), ("gemini", MODEL)],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else value,
)
def test_br_147_a_wrong_key_and_an_unknown_model(tmp_path: Path, protocol: str, case: tuple[int, int, str]) -> None:
    """One line with the provider's own words and what to do, the documented code, one request, and a result object."""
    place, (status, code, subtype) = Place(tmp_path), case
    word = WORDS[protocol][case is MODEL]
    answer = Answer.error(status, ERRORS[protocol](word, "no such thing"))
    with server_in_thread(lambda seen: answer) as server:
        ended = place.run(*flags(protocol, server.url), "go")
    assert (ended.code, ended.result["subtype"], len(server.requests)) == (code, subtype, 1)
    error = ended.result["error"]
    assert (error["message"], error["status"]) == ("no such thing", status)
    [line] = [line for line in ended.err.splitlines() if "the model failed" in line]
    assert f"no such thing. {error['advice']}" in line
    assert "novacode models" in error["advice"]


def test_nobody_is_there(tmp_path: Path) -> None:
    place = Place(tmp_path, {"NOVACODE_RETRIES": "0"})
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        ended = place.run(*flags("gemini", f"http://{host}"), "go")
    assert (ended.code, ended.result["error"]["kind"]) == (75, "network")
    assert f"{host} cannot be reached: Connection refused" in ended.err


def test_a_proxys_page_is_one_line_and_not_asked_for_twice(tmp_path: Path) -> None:
    place = Place(tmp_path)
    page = Answer((b"<html><title>Sign in</title></html>",), 200, (("content-type", "text/html"),))
    with server_in_thread(lambda seen: page) as server:
        ended = place.run(*flags("gemini", server.url), "go")
    assert (ended.code, ended.result["subtype"], ended.result["error"]["kind"]) == (1, "error_model", "protocol")
    assert "the answer is a web page" in ended.err
    assert len(server.requests) == 1


def test_br_147_retries_that_do_not_help_end_with_75(tmp_path: Path) -> None:
    """The provider asks for longer than anybody waits: told with the figure, at once."""
    place = Place(tmp_path)
    busy = Answer.error(429, ERRORS["anthropic"]("rate_limit_error", "slow down"), ("retry-after", "3600"))
    with server_in_thread(lambda seen: busy) as server:
        ended = place.run(*flags("anthropic", server.url), "go")
    assert (ended.code, len(server.requests)) == (75, 1)
    assert ended.result["error"]["retry_after"] == 3600
    assert "slow down (it asks to wait 3600 s; the longest wait is 120 s)" in ended.err


def test_a_budget_ends_the_run_between_turns(tmp_path: Path) -> None:
    """The cost is of the priced model that was named; the call of the last turn keeps its result."""
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    replies = [reply("anthropic", Asks(f"c{n}", "read", {"path": "a.txt"}), stop="tool_use") for n in range(9)]
    with checking(replies) as server:
        arguments = ("run", "-m", "anthropic/claude-sonnet-4-5", "--base-url", server.url, "--output-format", "json")
        ended = place.run(*arguments, "--max-budget-usd", "0.0005", "go")
        asked = len(server.requests)
    turn = (10 * 3 + 20 * 15) / 1e6  # dollars a million tokens: 3 in, 15 out
    assert (ended.code, ended.result["subtype"], ended.result["terminal_reason"]) == (
        53,
        "error_limit",
        "max_budget_usd",
    )
    assert (asked, ended.result["num_turns"], ended.result["calls"]["ok"]) == (2, 2, 2)
    assert ended.result["total_cost_usd"] == pytest.approx(2 * turn)
    assert "0.0005" in ended.err


def test_a_budget_that_cannot_be_held_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with checking([reply("anthropic", Say("Done."))]) as server:
        ended = place.run(*flags("anthropic", server.url, "--max-budget-usd", "1"), "go")
    assert (ended.code, ended.result["total_cost_usd"]) == (0, None)
    assert "the price of anthropic/m is not known, so --max-budget-usd cannot be held" in ended.err


def test_a_token_limit_goes_to_the_model_and_ends_the_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("one\n")
    replies = [reply("anthropic", Asks(f"c{n}", "read", {"path": "a.txt"}), stop="tool_use") for n in range(9)]
    with checking(replies) as server:
        ended = place.run(*flags("anthropic", server.url, "--max-output-tokens", "50"), "go")
        allowed = [request.json["max_tokens"] for request in server.requests]
    assert (ended.code, ended.result["terminal_reason"], allowed) == (53, "max_output_tokens", [50, 30, 10])
    assert ended.result["usage"]["output_tokens"] == 60
