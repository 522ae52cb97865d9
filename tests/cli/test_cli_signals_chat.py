"""Signals at any moment of a chat with the line editor, in a run and at the prompt: the terminal is left as it was."""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from doubles.command_line import Place
from doubles.model_server import Answer, Seen, server_in_thread
from doubles.os_processes import alive, unique
from doubles.replies import anthropic
from doubles.rules import violations
from person import at_terminal

# The second Ctrl-C ends the chat, unless the run is still stopping: then it ends the wait for that, and the third does.
_WAYS = {(signal.SIGTERM,): 143, (signal.SIGHUP,): 129, (signal.SIGINT,) * 3: 130}
_HOOK = '[[hooks]]\nevent = "PreToolUse"\ncommand = "true"\n'


def _model(token: str):
    """Say something, start a job and a command, and come to an end; each time it is asked by a person."""
    calls = [
        ("tu_1", "shell", {"command": f"sleep {token}", "background": True}),
        ("tu_2", "shell", {"command": "sleep 0.3; echo done"}),
    ]

    def answer(seen: Seen) -> Answer:
        if broken := violations("anthropic", seen.body):
            return Answer.error(
                400, {"type": "error", "error": {"type": "invalid_request_error", "message": str(broken)}}
            )
        last = seen.json["messages"][-1]["content"]
        asked = isinstance(last, str) or any(block.get("type") == "text" for block in last)
        return Answer.sse(*(anthropic("Working.", calls) if asked else anthropic("Done.")))

    return answer


def _signalled(place: Place, flags: Sequence[str], way: Sequence[signal.Signals], gaps: Sequence[float]) -> int:
    """Send the signals of `way`, each so many seconds after what came before; return the exit code."""
    with at_terminal(place, *flags) as person:
        person.says("go")
        for one, gap in zip(way, gaps, strict=False):
            person.watches(gap)
            person.process.send_signal(one)  # nothing happens where it has ended
        return person.leaves()


def _attack(root: Path, number: int, seed: int) -> dict[str, object]:
    """Signal so many chats at any moment, and return what is wrong with how they ended."""
    pytest.importorskip("prompt_toolkit")
    chance, token = random.Random(seed), unique()
    place = Place(root, {"TERM": "xterm", "LC_ALL": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"})
    (root / "home").mkdir()
    (root / "home" / "config.toml").write_text(_HOOK)
    wrong: dict[str, object] = {}
    with server_in_thread(_model(token)) as server:
        flags = ("chat", "--base-url", server.url, "-m", "anthropic/m", "--yolo")
        for way, code in itertools.islice(itertools.cycle(_WAYS.items()), number):
            gaps = (chance.uniform(0, 1.2), chance.uniform(0, 0.5), 1.0)
            ended = (_signalled(place, flags, way, gaps), alive(token))
            if ended != (code, []):
                wrong[f"{way} after {gaps}"] = ended
    return wrong


@pytest.mark.timeout(120)
def test_a_chat_that_is_signalled_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    assert _attack(tmp_path, 3, seed=1) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sixty_chats_that_are_signalled(tmp_path: Path) -> None:
    assert _attack(tmp_path, 60, seed=2) == {}
