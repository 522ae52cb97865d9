"""Going on with a session from the command line: the latest, one by the beginning of its id, a copy, none at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.replies import anthropic

pytestmark = pytest.mark.timeout(120)


def _sessions(place: Place) -> list[Path]:
    return sorted((place.root / "home" / "sessions").glob("*/*.jsonl"))


def test_each_way_to_go_on_sends_what_was_said_before(tmp_path: Path) -> None:
    """-c and -r go on in the same file; with --fork-session the file stays as it is; --no-session leaves none."""
    place = Place(tmp_path)
    with checking([anthropic(f"Answer {number}.") for number in range(1, 7)]) as server:
        flags = ("run", "--base-url", server.url, "-m", "anthropic/m", "--output-format", "json")

        def said() -> list[str]:
            messages = server.requests[-1].json["messages"]
            return [block["text"] for message in messages for block in message["content"]]

        first = place.run(*flags, "one")
        [path] = _sessions(place)
        assert place.run(*flags, "-c", "two").result["session_id"] == first.result["session_id"]
        assert said() == ["one", "Answer 1.", "two"]
        assert place.run(*flags, "-r", path.stem[:14], "three").code == 0
        assert said() == ["one", "Answer 1.", "two", "Answer 2.", "three"]
        before = path.read_bytes()
        forked = place.run(*flags, "-c", "--fork-session", "four")
        assert said()[-1] == "four"
        assert len(said()) == 7
        assert path.read_bytes() == before
        assert forked.result["session_id"] != first.result["session_id"]
        assert len(_sessions(place)) == 2
        assert place.run(*flags, "--no-session", "five").code == 0
        assert said() == ["five"]
        assert len(_sessions(place)) == 2
        refused = place.run(*flags, "-r", "s-1999", "six")
    assert (refused.code, refused.result["subtype"]) == (42, "error_session")
    assert "novacode sessions list" in refused.err


@pytest.mark.parametrize("flags", [("-c",), ("-c", "--fork-session")])
def test_where_there_is_nothing_to_go_on_with_a_new_session_is_begun_and_told(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """On stderr, and only there; the second time there is one, and nothing to tell."""
    place = Place(tmp_path)
    with checking([anthropic("One."), anthropic("Two.")]) as server:
        fixed = ("run", "--base-url", server.url, "-m", "anthropic/m", "--output-format", "json")
        first = place.run(*fixed, *flags, "go")
        second = place.run(*fixed, *flags, "go")
    assert (first.code, first.result["result"], first.out.count(b"\n")) == (0, "One.", 1)
    assert "none to go on with: this is a new one" in first.err
    assert (second.code, "none to go on with" in second.err) == (0, False)
    assert len(server.requests[-1].json["messages"]) == 3


@pytest.mark.parametrize("flags", [("-c", "--no-session"), ("-r", "s-1", "--ephemeral"), ("--fork-session",)])
def test_what_does_not_go_together_is_refused(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """`-c --no-session` wrote to the session it was to keep nothing in."""
    refused = Place(tmp_path).run("run", "-m", "demo", "--output-format", "json", *flags, "go")
    assert (refused.code, refused.result["subtype"]) == (2, "error_usage")
    assert "session" in refused.err


def test_run_ids_are_never_used_twice(tmp_path: Path) -> None:
    """Also after a resume."""
    place = Place(tmp_path)
    with checking([anthropic("One."), anthropic("Two.")]) as server:
        flags = ("run", "--base-url", server.url, "-m", "anthropic/m", "--output-format", "json")
        ids = [place.run(*flags, *more, "go").result["run_id"] for more in ((), ("-c",))]
    assert len(set(ids)) == 2
    [path] = _sessions(place)
    numbers = [json.loads(line)["seq"] for line in path.read_bytes().splitlines()[1:]]
    assert numbers == sorted(set(numbers))
