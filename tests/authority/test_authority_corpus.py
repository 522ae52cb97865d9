"""Shell lines under five policies, and proof that what is called read-only changes nothing."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from corpus_shell import CORPUS, EDITS, MOST, PLAIN, SOME

from novacode.authority import shfmt
from novacode.authority.commands import analyse
from novacode.authority.policy import Allow, Ask, Deny, Mode, Policy, Verdict
from novacode.authority.rules import parse_rule
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

pytestmark = pytest.mark.skipif(shfmt.find() is None, reason="the shell parser (shfmt) is not installed")


def policy(mode: Mode, rules: Sequence[str]) -> Policy:
    parsed = [parse_rule(text.split(" ", 1)[1], text.split(" ", 1)[0], "--test") for text in rules]
    return Policy(mode, tuple(parsed), analyse)


POLICIES = (
    policy(Mode.DEFAULT, PLAIN),
    policy(Mode.DEFAULT, SOME),
    policy(Mode.DEFAULT, MOST),
    policy(Mode.PLAN, SOME),
    policy(Mode.ACCEPT_EDITS, EDITS),
)
LETTER: dict[type[Verdict], str] = {Allow: "a", Ask: "k", Deny: "d"}


def letters(line: str, workspace: Workspace) -> str:
    call = ToolCall(CallId("c"), 0, "shell", {"command": line})
    effects = Effects("", command=line)
    return "".join(LETTER[type(one.judge(call, effects, workspace))] for one in POLICIES)


def make_world(folder: Path) -> Workspace:
    """Make a small repository, and beside it a folder that is not the workspace and that links lead to."""
    root = folder / "root"
    (root / "src").mkdir(parents=True)
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "secret.txt").write_text("secret\n")
    files = {
        "README": "foo\nbar\n", "in.txt": "b:1\na:2\n", "src/a.py": "foo = 1\n", "src/b.py": "", "src/.env": "K=1\n",
        "data.json": '{"a": [{"b": 1}]}\n', ".env": "K=1\n", "Makefile": "test:\n\ttrue\n", "list": "", "a.js": "",
    }  # fmt: skip
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "out").symlink_to(folder / "elsewhere")
    (root / "outfile").symlink_to(folder / "elsewhere" / "secret.txt")
    return Workspace.at(root)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_world(tmp_path_factory.mktemp("corpus"))


def test_the_corpus_is_large_and_without_repetitions() -> None:
    """A line stands once, or its second verdict would hide behind the first."""
    assert len({line for line, _ in CORPUS}) == len(CORPUS) >= 400


@pytest.mark.parametrize("verdicts", sorted({verdicts for _, verdicts in CORPUS}))
def test_every_line_comes_to_what_it_must_under_five_policies(verdicts: str, world: Workspace) -> None:
    """br 042 to 047 and every disguise we know of: nothing is allowed that must not be, nor asked without need."""
    lines = [line for line, expected in CORPUS if expected == verdicts]
    assert {line: letters(line, world) for line in lines} == dict.fromkeys(lines, verdicts)


GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}  # fmt: skip


def fingerprint(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of everything below `folder`."""
    found: dict[str, tuple[int, bytes]] = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = (path.lstat().st_mode, content)
    return found


@functools.cache
def read_only_lines() -> list[str]:
    return [line for line, _ in CORPUS if analyse(line).read_only]


def test_what_is_called_read_only_changes_nothing(tmp_path: Path) -> None:
    """Each such line is really run, in a repository of its own, with a home of its own."""
    workspace = make_world(tmp_path)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **GIT_ENVIRONMENT}
    (tmp_path / "home").mkdir()
    run = functools.partial(subprocess.run, cwd=workspace.root, env=environment, capture_output=True, timeout=20)
    setup = "git init -q && git add README src in.txt && git commit -qm one && git tag v1 && git status"
    run(["bash", "-c", setup], check=True)
    before = fingerprint(tmp_path)
    inside = [line for line in read_only_lines() if not any(sign in line for sign in ("/etc", "..", "~", " /"))]
    for line in inside:
        run(["bash", "-c", line], check=False, stdin=subprocess.DEVNULL)
        assert fingerprint(tmp_path) == before, line
    assert len(inside) >= 150
