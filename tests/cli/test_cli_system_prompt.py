"""What the model is told before the prompt, as a server gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doubles.command_line import Place, checking
from doubles.replies import anthropic, chat

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (made.work / ".git").mkdir()
    (made.work / "sub").mkdir()
    (made.work / "AGENTS.md").write_text("Use tabs.\n")
    (made.work / "sub" / "AGENTS.md").write_text("Use spaces here.\n")
    (tmp_path / "AGENTS.md").write_text("Not of this repository.\n")
    return made


def _system(message: Any) -> str:
    return message if isinstance(message, str) else "".join(block["text"] for block in message)


def test_instructions_and_appended_text_reach_the_model(place: Place) -> None:
    """NovaCode's own text, the folder, AGENTS.md from the root down, and what was appended, in this order."""
    with checking([anthropic("Yes.")]) as server:
        flags = ("-C", "sub", "--append-system-prompt", "Speak Latin.")
        place.run("run", "--base-url", server.url, "-m", "anthropic/m", *flags, "go")
        system = _system(server.requests[0].json["system"])
    wanted = (
        "You are NovaCode",
        f"Working folder: {place.work / 'sub'}",
        "Use tabs.",
        "Use spaces here.",
        "Speak Latin.",
    )
    places = [system.find(words) for words in wanted]
    assert -1 not in places
    assert places == sorted(places)
    assert "Not of this repository" not in system


def test_a_system_prompt_of_ones_own_takes_the_place_of_novacodes(place: Place) -> None:
    """The folder and AGENTS.md stay: they are not about who NovaCode is."""
    with checking([anthropic("Yes.")]) as server:
        flags = ("--system-prompt", "You are a poet.")
        place.run("run", "--base-url", server.url, "-m", "anthropic/m", *flags, "go")
        system = _system(server.requests[0].json["system"])
    assert system.startswith("You are a poet.")
    assert "You are NovaCode" not in system
    assert "Use tabs." in system


def test_the_same_over_another_protocol_and_from_settings(place: Place) -> None:
    """There it is a message of its own role."""
    (place.root / "home").mkdir()
    (place.root / "home" / "config.toml").write_text('append_system_prompt = "Speak Latin."\n')
    place.environ["OPENAI_API_KEY"] = "k"
    with checking([chat("Yes.")], "openai-chat") as server:
        place.run("run", "--base-url", server.url, "-m", "openai/m", "go")
        first = server.requests[0].json["messages"][0]
    assert first["role"] in ("system", "developer")
    text = _system(first["content"])
    assert "Use tabs." in text
    assert text.rstrip().endswith("Speak Latin.")
