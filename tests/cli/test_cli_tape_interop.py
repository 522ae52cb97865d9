"""Tapes of servers that are not ours, played without them; and every edit of a request refused where it was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.command_line import Ended, Place
from doubles.foreign_servers import FINAL, QUESTION, SPOKEN, cache_folder, serving_foreign

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODELS = {
    "anthropic": "anthropic/some-model",
    "openai-chat": "openai/some-model",
    "openai-responses": "openai-responses/some-model",
    "gemini": "gemini/some-model",
    "ollama": "ollama-native/some-model",
}
PATHS = {"openai-chat": "/v1", "openai-responses": "/v1"}
OUTPUT = ("--output-format", "stream-json")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cache_folder(tmp_path_factory.mktemp("interop"))


def place(root: Path) -> Place:
    root.mkdir()
    made = Place(root, patience=300.0)  # a real model on a busy machine takes its time
    (made.work / "README").write_text("hello from README\n")
    return made


def record(there: Place, url: str, protocol: str, task: str, *more: str) -> tuple[Ended, Path]:
    tape = there.root / "a.tape"
    flags = ("-m", MODELS[protocol], "--base-url", url + PATHS.get(protocol, ""), "--record", str(tape))
    return there.run("run", *flags, *OUTPUT, *more, task), tape


def replay(here: Place, tape: Path, task: str, *more: str) -> Ended:
    return here.run("run", "--replay", str(tape), *OUTPUT, *more, task)


def messages(ended: Ended) -> list[Any]:
    lines = [json.loads(line) for line in ended.out.splitlines()]
    return [line["message"] for line in lines if line["type"] in ("assistant", "user")]


@pytest.mark.parametrize("protocol", SPOKEN["aimock"])
def test_a_tape_of_aimock_is_played_without_it(protocol: str, cache: Path, tmp_path: Path) -> None:
    """In every protocol it speaks; with everything from the tape, and with real tools."""
    there, here = place(tmp_path / "there"), place(tmp_path / "here")
    with serving_foreign("aimock", cache, tmp_path, {"command": "cat README"}) as url:
        first, tape = record(there, url, protocol, QUESTION)
    assert (first.code, first.result["result"]) == (0, FINAL), first.err
    for mode in ("tape", "real"):
        again = replay(here, tape, QUESTION, "--replay-tools", mode)
        assert (again.code, again.result["result"]) == (0, FINAL), again.err
        assert messages(again) == messages(first)
    assert there.run("tape", "check", str(tape)).code == 0


def test_a_tape_of_a_real_model_is_played_without_it(cache: Path, tmp_path: Path) -> None:
    there, here = place(tmp_path / "there"), place(tmp_path / "here")
    (there.work / "a.txt").write_text("hello from a.txt\n")
    with serving_foreign("llamacpp", cache, tmp_path, {}) as url:
        first, tape = record(there, url, "openai-chat", "Read a.txt", "--max-turns", "4")
    assert first.code in {0, 53}, first.err
    assert first.result["calls"]["ok"] >= 1
    again = replay(here, tape, "Read a.txt", "--max-turns", "4")
    assert (again.code, messages(again)) == (first.code, messages(first)), again.err


@pytest.fixture(scope="module")
def taped(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("taped")
    with serving_foreign("aimock", cache, root, {"command": "cat README"}) as url:
        first, tape = record(place(root / "there"), url, "anthropic", QUESTION)
    assert first.code == 0, first.err
    return tape


Edit = Callable[[dict[str, Any]], object]

EDITS: list[tuple[int, Edit, str]] = [
    (1, lambda line: line.update(method="PUT"), 'at method: expected "PUT", found "POST"'),
    (1, lambda line: line.update(path="/v2/messages"), 'at path: expected "/v2/messages", found "/v1/messages"'),
    (1, lambda line: line["body"].update(model="other"), 'at $.model: expected "other", found "some-model"'),
    (1, lambda line: line["body"].update(temperature=0.5), "at $.temperature: expected 0.5, found nothing"),
    (1, lambda line: line["body"].pop("stream"), "at $.stream: expected nothing, found true"),
    (1, lambda line: line["body"]["tools"].pop(), "at $.tools["),
    (
        1,
        lambda line: line["body"]["tools"][0].update(description="Reads."),
        'at $.tools[0].description: expected "Reads.", found "Read a file.',
    ),
    (
        1,
        lambda line: line["body"]["messages"][0]["content"][0].update(text=QUESTION.replace("README", "LICENCE")),
        'at $.messages[0].content[0].text: expected "what does the LICENCE say", found "what does the README say"',
    ),
    (
        2,
        lambda line: line["body"]["messages"][1]["content"][0]["input"].update(command="cat LICENCE"),
        'at $.messages[1].content[0].input.command: expected "cat LICENCE", found "cat README"',
    ),
    (2, lambda line: line["body"]["messages"].pop(), "at $.messages[2]: expected nothing, found {"),
]


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_an_edited_request_is_refused_with_the_first_difference(number: int, taped: Path, tmp_path: Path) -> None:
    """Ten of them: in the line and in the body, in the first request and in the second, changed, added, taken away."""
    request, edit, told = EDITS[number]
    lines = [json.loads(line) for line in taped.read_text().splitlines()]
    [line] = [line for line in lines if (line.get("type"), line.get("request")) == ("request", request)]
    edit(line)
    edited = tmp_path / "edited.tape"
    edited.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = replay(place(tmp_path / "here"), edited, QUESTION)
    assert ended.code == 55, ended.err
    assert f"request {request} is not on the tape" in ended.result["error"]["message"]
    assert told in ended.result["error"]["message"]
