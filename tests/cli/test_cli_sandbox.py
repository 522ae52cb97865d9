"""`--sandbox` from the outside: what is confined and what is not, what is said, and that it is never pretended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.command_line import Ended, Place

from novacode.workspace.sandbox_probe import find_bwrap

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux" or find_bwrap(os.environ) is None, reason="needs bubblewrap"),
]


def _script(place: Place, *commands: str, **more: object) -> str:
    calls = [{"call": "shell", "arguments": {"command": command, **more}} for command in commands]
    turns = [f"[[turn]]\nsteps = [ {_toml(call)} ]\n" for call in calls]
    path = place.root / "script.toml"
    path.write_text("\n".join((*turns, '[[turn]]\nsteps = [ { text = "Done." } ]\n')))
    return f"script:{path}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)


def _run(place: Place, script: str, *more: str) -> Ended:
    return place.run("run", "-m", script, "--yolo", "--output-format", "stream-json", *more, "go")


def _lines(ended: Ended) -> list[dict[str, object]]:
    return [json.loads(line) for line in ended.out.splitlines()]


def _results(ended: Ended) -> list[str]:
    return [
        block["content"] for line in _lines(ended) if line["type"] == "user" for block in line["message"]["content"]
    ]  # type: ignore[index]


@pytest.fixture
def place() -> Iterator[Place]:
    """Not below `/tmp`, which is another one inside."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="novacode-test-") as folder:
        yield Place(Path(folder).resolve())


def test_commands_are_confined_and_it_is_said(place: Place) -> None:
    """On stderr and in the first line; a result that the sandbox has spoilt says so to the model."""
    beside = place.root / "beside"
    ended = _run(place, _script(place, f"echo in > here.txt; echo out > {beside}"), "--sandbox")
    assert ended.code == 0
    first = _lines(ended)[0]["sandbox"]
    assert {**first, "program": ""} == {  # type: ignore[dict-item]
        "program": "",
        "writable": [str(place.work)],
        "guarded": [],
        "network": False,
    }
    assert f"commands write only in {place.work} and a /tmp of their own; no network" in ended.err
    assert (place.work / "here.txt").exists()
    assert not beside.exists()
    [result] = _results(ended)
    assert "it ran in a sandbox" in result


def test_without_it_nothing_is_said(place: Place) -> None:
    ended = _run(place, _script(place, "true"))
    assert ended.code == 0
    assert "sandbox" not in ended.out.decode() + ended.err


def test_the_setting_does_the_same_and_the_flag_overrules_it(place: Place) -> None:
    (place.root / "home").mkdir()
    (place.root / "home" / "config.toml").write_text("sandbox = true\nsandbox_network = true\n")
    script = _script(place, f"echo out > {place.root}/beside")
    confined = _run(place, script)
    assert _lines(confined)[0]["sandbox"]["network"] is True  # type: ignore[index]
    assert not (place.root / "beside").exists()
    free = _run(place, script, "--no-sandbox")
    assert "sandbox" not in _lines(free)[0]
    assert (place.root / "beside").exists()


def test_a_project_cannot_turn_it_off(place: Place) -> None:
    """Not before its folder is trusted."""
    (place.root / "home").mkdir()
    (place.root / "home" / "config.toml").write_text("sandbox = true\n")
    (place.work / ".novacode").mkdir()
    (place.work / ".novacode" / "config.toml").write_text("sandbox = false\nsandbox_network = true\n")
    ended = _run(place, _script(place, f"echo out > {place.root}/beside; echo > .novacode/config.local.toml"))
    assert _lines(ended)[0]["sandbox"]["network"] is False  # type: ignore[index]
    assert not (place.root / "beside").exists()
    assert [path.name for path in (place.work / ".novacode").iterdir()] == ["config.toml"]


_MAKING = "mkdir .novacode; echo 'sandbox = false' > .novacode/config.toml; git add -A; ls -A | tr '\\n' ' '"


def test_settings_cannot_be_put_where_a_trusted_folder_has_none(place: Place) -> None:
    """Nor is anything left of what is in the way."""
    (place.root / "home").mkdir()
    (place.root / "home" / "trusted.toml").write_text(f'folders = ["{place.work}"]\n')
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    ended = _run(place, _script(place, _MAKING, "git status --short"), "--sandbox")
    assert ended.code == 0
    assert _results(ended)[1] == "(no output)"
    assert [path.name for path in place.work.iterdir()] == [".git"]


def test_settings_cannot_be_put_in_the_way_of_those_further_up(place: Place) -> None:
    """The nearest count, and what a project denies would not be denied any more."""
    (place.work / ".novacode").mkdir()
    (place.work / ".novacode" / "config.toml").write_text("permissions.deny = ['shell(rm:*)']\n")
    below = place.work / "below"
    below.mkdir()
    ended = _run(place, _script(place, "mkdir .novacode"), "--sandbox", "-C", "below")
    assert "File exists" in _results(ended)[0]
    assert list(below.iterdir()) == []
    ended = _run(place, _script(place, "mkdir .novacode"), "--sandbox", "-C", "..")
    assert _results(ended) == ["(no output)"], "where they would count for nothing they may be made"


def test_a_background_job_is_confined_as_well(place: Place) -> None:
    script = _script(place, f"echo out > {place.root}/beside; echo tried", background=True)
    ended = _run(place, script, "--sandbox")
    assert "tried" in _results(ended)[0]
    assert not (place.root / "beside").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_worktree_can_be_committed_in_and_its_repository_is_not_reached_otherwise(place: Place) -> None:
    place.environ |= {"GIT_CONFIG_GLOBAL": str(place.root / "none"), "GIT_CONFIG_NOSYSTEM": "1"}
    environ = os.environ | place.environ
    for arguments in ("init -q", "-c user.name=n -c user.email=e@x commit -qm first --allow-empty"):
        subprocess.run(["git", *arguments.split()], cwd=place.work, check=True, env=environ)
    commit = "echo 1 > f && git add f && git -c user.name=n -c user.email=e@x commit -qm second && echo committed"
    hook = f"echo x > {place.work}/.git/hooks/post-checkout || echo x > {place.work}/beside || echo refused"
    ended = _run(place, _script(place, commit, hook), "--sandbox", "-w", "try")
    assert ended.code == 0, ended.err
    first, second = _results(ended)
    assert first == "committed"
    assert second.endswith("refused")
    log = subprocess.run(
        ["git", "log", "--format=%s", "novacode/try"], cwd=place.work, capture_output=True, text=True, check=True
    )
    assert log.stdout.split() == ["second", "first"]


def test_a_hook_runs_outside(place: Place) -> None:
    """It is the person's own, and its log may be anywhere."""
    (place.root / "home").mkdir()
    log = place.root / "log"
    (place.root / "home" / "config.toml").write_text(
        f"""[[hooks]]\nevent = "PreToolUse"\ncommand = "echo hook >> {log}"\n"""
    )
    ended = _run(place, _script(place, f"echo command >> {log}"), "--sandbox")
    assert ended.code == 0
    assert log.read_text() == "hook\n"


def test_a_simulation_runs_nothing_and_claims_none(place: Place) -> None:
    ended = _run(place, _script(place, "true"), "--sandbox", "--simulate")
    assert ended.code == 0
    assert "sandbox" not in _lines(ended)[0]


def test_its_tmp_is_removed_at_the_end(place: Place) -> None:
    before = set(Path("/tmp").glob("novacode-sandbox-*"))
    ended = _run(place, _script(place, "echo x > /tmp/kept", "cat /tmp/kept"), "--sandbox")
    assert _results(ended)[1] == "x"
    private = set(Path("/tmp").glob("novacode-sandbox-*")) - before
    assert not any((folder / "kept").exists() for folder in private)


def test_asked_for_and_not_to_be_had_is_an_error(place: Place) -> None:
    """Exit code 52, with what to do; nothing is run without it, and no session is left behind."""
    tools = place.root / "bin"
    tools.mkdir()
    (tools / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tools / "bwrap").chmod(0o755)
    place.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
    ended = place.run("run", "-m", _script(place, "touch made"), "--yolo", "--sandbox", "--output-format", "json", "go")
    assert ended.code == 52
    assert ended.result["is_error"] is True
    assert "No permissions to create new namespace" in ended.err
    assert "run without --sandbox" in ended.err
    assert not (place.work / "made").exists()
    assert not list((place.root / "home").rglob("*.jsonl"))


def test_the_whole_file_system_is_no_workspace(place: Place) -> None:
    ended = place.run("run", "-m", _script(place, "true"), "--sandbox", "-C", "/", "go")
    assert ended.code == 52
    assert "leaves nothing to protect" in ended.err
