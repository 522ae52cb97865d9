"""`--worktree` from the command line: the run works there, the person is told where, and no empty one is left."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest
from doubles.command_line import Ended, Place, checking
from doubles.os_processes import alive, unique
from doubles.replies import anthropic

from novacode.app.rule_store import RuleStore

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path, {"GIT_CONFIG_GLOBAL": str(tmp_path / "none"), "GIT_CONFIG_NOSYSTEM": "1"})
    (made.work / "a.txt").write_text("one\n")
    (made.work / "sub").mkdir()
    (made.work / "sub" / "b.txt").write_text("two\n")
    for arguments in ("init -q", "add .", "-c user.name=n -c user.email=e@x commit -qm first"):
        subprocess.run(["git", *arguments.split()], cwd=made.work, check=True)
    return made


def _git(place: Place, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=place.work, capture_output=True, text=True, check=True
    ).stdout.strip()


def _flags(url: str, *more: str) -> tuple[str, ...]:
    return ("run", "--base-url", url, "-m", "anthropic/m", *more)


def _folder(ended: Ended) -> Path:
    found = re.search(r"working in (.*), on the new branch", ended.err)
    assert found is not None, ended.err
    return Path(found[1])


def test_a_run_works_in_its_worktree(place: Place) -> None:
    """The project is as it was, the work is where it is said to be, and a project's own rules hold there."""
    RuleStore(place.root / "home", place.work / "sub").add("shell(touch:*)")
    replies = [anthropic("", [("tu_1", "shell", {"command": "touch made"})]), anthropic("Done.")]
    with checking(replies) as server:
        ended = place.run(*_flags(server.url, "-w", "try", "-C", "sub", "go"))
        system = str(server.requests[0].json["system"])
    folder = _folder(ended)
    assert (ended.code, ended.out, (folder / "sub" / "made").is_file()) == (0, b"Done.\n", True)
    assert f"Working folder: {folder / 'sub'}" in system
    assert f"the work is in {folder}, on the branch novacode/try" in ended.err
    assert (_git(place, "status", "--porcelain"), sorted(path.name for path in place.work.iterdir())) == (
        "",
        [".git", "a.txt", "sub"],
    )


def test_a_worktree_in_which_nothing_changed_is_removed(place: Place) -> None:
    """`-w` takes no prompt for a name that cannot be one, and finds a name itself."""
    with checking([anthropic("Nothing to do.")]) as server:
        ended = place.run(*_flags(server.url, "-w", "is there anything to do?"))
    assert (ended.code, ended.out) == (0, b"Nothing to do.\n")
    assert "nothing was changed in the worktree, so it is removed" in ended.err
    assert not _folder(ended).exists()
    assert _git(place, "branch", "--list", "novacode/*") == ""


@pytest.mark.parametrize("words", [("-w", "--", "hi"), ("hi", "-w"), ("--worktree=", "hi")], ids=" ".join)
def test_a_prompt_of_one_word_in_a_worktree_of_any_name(place: Place, words: tuple[str, ...]) -> None:
    with checking([anthropic("Hello.")]) as server:
        ended = place.run(*_flags(server.url, *words))
        said = str(server.requests[0].json["messages"])
    assert (ended.code, ended.out, "'text': 'hi'" in said) == (0, b"Hello.\n", True)
    assert re.fullmatch(r"w-[0-9a-f]{8}", _folder(ended).name)


def test_a_word_behind_the_option_is_the_name_and_never_the_prompt(place: Place) -> None:
    """It is told, with how to write it otherwise; piped in, there is a prompt for that name."""
    refused = place.run("run", "-m", "demo", "--output-format", "json", "-w", "hi")
    assert (refused.code, refused.result["subtype"]) == (42, "error_input")
    assert "'hi' is the name of the worktree; for a prompt without a name write -w -- PROMPT" in refused.err
    assert _git(place, "branch", "--list", "novacode/*") == ""
    (place.root / "prompt").write_text("say hello")
    with checking([anthropic("Hello.")]) as server, (place.root / "prompt").open("rb") as prompt:
        ended = place.run(*_flags(server.url, "-w", "hi"), stdin=prompt)
    assert (ended.code, _folder(ended).name) == (0, "hi")


def test_a_run_that_is_stopped_leaves_its_work(place: Place) -> None:
    """And is told where that is."""
    token = unique()
    calls = [("tu_1", "shell", {"command": f"touch made; sleep {token}"})]
    with checking([anthropic("", calls)]) as server:
        process = place.start(*_flags(server.url, "-w", "try", "--yolo", "go"))
        # The shell's own line holds the words too, before it has made the file.
        place.until(lambda: any(line.startswith("sleep") for line in alive(token)))
        process.send_signal(signal.SIGTERM)
        ended = place.wait(process)
    assert (ended.code, alive(token), (_folder(ended) / "made").is_file()) == (143, [], True)
    assert "the work is in" in ended.err


def test_a_run_that_cannot_begin_leaves_no_worktree(place: Place) -> None:
    """No key, say."""
    place.environ["ANTHROPIC_API_KEY"] = ""
    ended = place.run("run", "-m", "anthropic/m", "-w", "try", "go")
    assert (ended.code, _folder(ended).exists()) == (41, False)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-w", "try", "-c"), "there is no session to go on with"),
        (("-w", "try", "--simulate"), "nothing real is changed"),
        (("-w", "a/b"), "'a/b' cannot name a worktree"),
        (("-w", "try", "-C", "/"), "needs a git repository, and / is in no working tree"),
    ],
)
def test_what_does_not_go_with_a_worktree(place: Place, flags: tuple[str, ...], said: str) -> None:
    """Said before anything is made, with the code of a wrong command line and a result object."""
    ended = place.run("run", "-m", "demo", "--output-format", "json", *flags, "go")
    assert (ended.code, ended.result["subtype"]) == (2, "error_usage")
    assert said in ended.err
    assert _git(place, "branch", "--list", "novacode/*") == ""
