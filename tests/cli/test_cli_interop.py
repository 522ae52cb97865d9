"""A whole task through `novacode run` against servers that are not ours, in every protocol they speak."""

from __future__ import annotations

import json
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cache_folder(tmp_path_factory.mktemp("interop"))


def run(place: Place, url: str, protocol: str, *more: str) -> Ended:
    address = url + PATHS.get(protocol, "")
    return place.run("run", "-m", MODELS[protocol], "--base-url", address, "--output-format", "stream-json", *more)


def blocks(ended: Ended) -> list[dict[str, Any]]:
    """What was said, called and answered, in order."""
    lines = [json.loads(line) for line in ended.out.splitlines()]
    return [block for line in lines if line["type"] in {"assistant", "user"} for block in line["message"]["content"]]


@pytest.mark.parametrize(
    ("name", "protocol"), [(name, protocol) for name in ("fakellm", "aimock") for protocol in SPOKEN[name]]
)
def test_the_task_against_servers_that_play(name: str, protocol: str, cache: Path, tmp_path: Path) -> None:
    """A call of a real tool, streamed; its real result sent back; the answer; and a second run in the same session."""
    place = Place(tmp_path)
    (place.work / "README").write_text("hello from README\n")
    with serving_foreign(name, cache, tmp_path, {"command": "cat README"}) as url:
        ended = run(place, url, protocol, QUESTION)
        again = run(place, url, protocol, "-c", "thanks")
    assert (ended.code, ended.result["result"]) == (0, FINAL), ended.err
    assert (ended.result["calls"]["total"], ended.result["calls"]["ok"]) == (1, 1)
    kinds = [block["type"] for block in blocks(ended) if block["type"] != "thinking"]
    assert kinds == ["tool_use", "tool_result", "text"]
    assert (again.code, again.result["result"]) == (0, FINAL), again.err


@pytest.fixture(scope="module")
def llama(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving_foreign("llamacpp", cache, tmp_path_factory.mktemp("llama"), {}) as url:
        yield url


@pytest.mark.parametrize("protocol", SPOKEN["llamacpp"])
def test_a_real_model_calls_a_tool_and_answers(protocol: str, llama: str, tmp_path: Path) -> None:
    """Streamed by llama.cpp; while the model is still being loaded the server says 503, which is waited out.

    What a model of this size says means nothing. That it called, that the call ran, that its result went back and was
    answered with text, is what is true of any model.
    """
    place = Place(tmp_path, patience=300)
    (place.work / "a.txt").write_text("hello from a.txt\n")
    short = ("--max-turns", "2", "--max-output-tokens", "80", "--system-prompt", "Be brief.")
    ended = run(place, llama, protocol, *short, "Read a.txt")
    assert ended.code in {0, 53}, ended.err
    said = blocks(ended)
    assert len(said) > 2, said
    call, result, *rest = said
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "read", {"path": "a.txt"})
    assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", call["id"], False)
    assert "hello from a.txt" in json.dumps(result["content"])
    assert rest
    assert ended.result["usage"]["output_tokens"] > 0
    assert ended.result["calls"]["total"] == sum(block["type"] == "tool_use" for block in blocks(ended))
