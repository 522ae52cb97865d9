"""`novacode doctor`: what is missing is named with what to do, and only what a run needs counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doubles.command_line import Place
from person import at_terminal

from novacode.authority import shfmt
from novacode.cli.checkup import Check, State, checkup
from novacode.workspace import sandbox_probe

pytestmark = pytest.mark.timeout(60)


async def _found(environ: dict[str, str], terminals: tuple[bool, bool, bool] = (True, True, True)) -> dict[str, Check]:
    return {check.name: check for check in await checkup(environ, terminals)}


def test_a_healthy_machine(tmp_path: Path) -> None:
    """Code 0, one JSON object, the real check of stopping included; keys by name only."""
    ended = Place(tmp_path, {"ANTHROPIC_API_KEY": "t0psecret"}).run("doctor", "--json")
    told = json.loads(ended.out)
    states = {check["name"]: check["state"] for check in told["checks"]}
    assert (ended.code, told["ok"]) == (0, True)
    assert {states[name] for name in ("python", "trio", "httpx", "shfmt", "home", "settings", "keys")} == {"ok"}
    assert states["stopping"] == "ok"
    assert b"ANTHROPIC_API_KEY" in ended.out
    assert b"t0psecret" not in ended.out


def test_at_a_terminal_it_is_lines_for_people(tmp_path: Path) -> None:
    """And the terminal is found."""
    with at_terminal(Place(tmp_path, {"TERM": "xterm"}), "doctor") as person:
        person.sees("terminal: TERM=xterm\r\n")
        assert person.leaves() == 0


def test_settings_that_stop_every_run_are_wrong(tmp_path: Path) -> None:
    """Code 1, and what to do."""
    place = Place(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("retries = 'many'\n")
    ended = place.run("doctor")
    assert ended.code == 1
    assert b"FAIL  settings: " in ended.out
    assert b"`retries` is 'many'" in ended.out


async def test_what_is_missing_comes_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program, no key, no parser, nobody to ask: all of it told in one go."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(shfmt, "find", lambda: None)
    monkeypatch.setattr(sandbox_probe, "find_bwrap", lambda *_: None)
    found = await _found({"HOME": str(tmp_path)}, (False, False, False))
    assert {name: found[name].state for name in ("git", "rg", "sandbox", "shfmt", "keys", "terminal")} == {
        "git": State.NOTE,
        "rg": State.NOTE,
        "sandbox": State.NOTE,
        "shfmt": State.WRONG,
        "keys": State.NOTE,
        "terminal": State.NOTE,
    }
    assert all(found[name].advice for name in ("git", "rg", "sandbox", "shfmt", "keys", "terminal"))
    assert found["stopping"].state is State.WRONG  # there is not even a shell


async def test_a_program_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken one is told apart from none."""
    (tmp_path / "git").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    found = await _found({"HOME": str(tmp_path)})
    assert (found["git"].state, found["git"].found) == (State.NOTE, f"{tmp_path / 'git'} ended with 3")


async def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """Runs still work; it is a note."""
    (tmp_path / "file").write_text("")
    found = await _found({"NOVACODE_HOME": str(tmp_path / "file" / "home")})
    assert found["home"].state is State.NOTE
    assert "NOVACODE_HOME" in found["home"].advice
