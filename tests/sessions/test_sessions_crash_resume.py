"""Killed at any write, and gone on with from the command line, against servers that refuse what the real ones do."""

from __future__ import annotations

from pathlib import Path

import pytest
from crashing import Zygote
from doubles.command_line import Place, checking
from doubles.spoken import PROTOCOLS, Asks, Say, body

from novacode.sessions.check import check_session

MODELS = {
    "anthropic": "anthropic/m",
    "openai-chat": "deepseek/m",
    "openai-responses": "openai-responses/m",
    "gemini": "gemini/m",
}
HOWS = ("before", "middle", "no line end", "after")


def gone_on_with(place: Place, path: Path, protocol: str) -> list[str]:
    """Go on with the session at `path` for a turn with a call and another; return what is wrong."""
    replies = [
        body(protocol, (Say("Looking."), Asks("c1", "read", {"path": "a.txt"})), "tool_use"),
        body(protocol, (Say(f"Seen by {protocol}."),), "end"),
    ]
    with checking(replies, protocol) as server:
        flags = ("-m", MODELS[protocol], "--base-url", server.url, "--output-format", "json")
        ended = place.run("run", *flags, "-r", path.stem, "and now?")
    wrong = [str(problem) for problem in check_session(path).problems]
    if (ended.code, ended.result["result"]) != (0, f"Seen by {protocol}."):
        wrong.append(f"{protocol}: {ended.code} {ended.result} {ended.err}")
    return wrong


def attacked(zygote: Zygote, root: Path, at: int, how: str) -> list[str]:
    """Kill a run at one write, and go on with what is left of it in each protocol; return what is wrong."""
    place = Place(root, {"OPENAI_API_KEY": "k", "DEEPSEEK_API_KEY": "k", "GEMINI_API_KEY": "k"})
    (place.work / "a.txt").write_text("one\n")
    zygote.crash(root / "home", at, how)
    [path] = (root / "home").glob("sessions/*/*.jsonl")
    # Another one goes first each time: the one that does is the one to repair the session.
    first = at % len(PROTOCOLS)
    order = (*PROTOCOLS[first:], *PROTOCOLS[:first])
    return [wrong for protocol in order for wrong in gone_on_with(place, path, protocol)]


def writes_of(zygote: Zygote, root: Path) -> int:
    (root / "whole").mkdir()
    return int(zygote.crash(root / "whole", 0)["writes"])


def attack(root: Path, step: int, offset: int) -> dict[str, list[str]]:
    failed = {}
    with Zygote() as zygote:
        for number, at in enumerate(range(offset, writes_of(zygote, root) + 1, step)):
            how = HOWS[number % len(HOWS)]
            (root / f"{at}" / "home").mkdir(parents=True)
            if wrong := attacked(zygote, root / f"{at}", at, how):
                failed[f"write {at}, {how}"] = wrong
    return failed


@pytest.mark.timeout(120)
def test_a_killed_run_is_gone_on_with_in_every_protocol(tmp_path: Path) -> None:
    """One point, in the middle of a turn that comes after the conversation was shortened."""
    assert attack(tmp_path, 1_000, 60) == {}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_runs_killed_all_along_are_gone_on_with_in_every_protocol(tmp_path: Path) -> None:
    """Every fifth write: before, in the middle of and after turns, questions and compactions."""
    assert attack(tmp_path, 5, 2) == {}
