"""Proof by running: no line of the corpus that is allowed as read-only changes anything."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import trio
from corpus_shell import CORPUS
from test_authority_corpus import GIT_ENVIRONMENT, LETTER, POLICIES, make_world

from novacode.authority import shfmt
from novacode.authority.policy import Allow
from novacode.errors import SettingsError
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace
from novacode.workspace.sandbox import Sandbox
from novacode.workspace.sandbox_places import Ground
from novacode.workspace.sandbox_probe import find_bwrap, probe

pytestmark = [
    pytest.mark.skipif(shfmt.find() is None, reason="the shell parser (shfmt) is not installed"),
    pytest.mark.skipif(find_bwrap(os.environ) is None, reason="needs bubblewrap"),
    pytest.mark.timeout(300),
]

Print = dict[str, tuple[int, int, bytes]]


@attrs.frozen
class Scratch:
    """A small repository, and a home, a `/tmp` and another folder beside it. All of them can be written."""

    folder: Path
    workspace: Workspace
    sandbox: Sandbox

    def run(self, line: str) -> None:
        """Run `line` as the shell tool would. How it ends is its own business."""
        argv = self.sandbox.argv(["bash", "-c", line], self.workspace.root, os.environ)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), **GIT_ENVIRONMENT}
        subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)

    def print(self) -> Print:
        """Return mode, number of names, and content or aim of everything in the folder: what a change would change."""
        found: Print = {}
        for place, folders, names in os.walk(self.folder):
            for name in (*folders, *names):
                path = Path(place, name)
                known = path.lstat()
                content = b""
                if stat.S_ISLNK(known.st_mode):
                    content = os.fsencode(path.readlink())
                elif stat.S_ISREG(known.st_mode):
                    content = path.read_bytes()
                found[str(path)] = (known.st_mode, known.st_nlink, content)
        return found


@pytest.fixture(scope="module")
def scratch() -> Iterator[Scratch]:
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="novacode-test-") as made:
        folder = Path(made).resolve()
        workspace = make_world(folder)
        for name in ("home", "tmp"):
            (folder / name).mkdir()
        sandbox = Sandbox(find_bwrap(os.environ) or "", "", Ground((folder,)), folder / "tmp")
        try:
            trio.run(probe, sandbox)
        except SettingsError as error:
            pytest.skip(str(error))
        ready = Scratch(folder, workspace, sandbox)
        ready.run("git init -q && git add README src in.txt && git commit -qm one && git tag v1 && git status")
        assert (workspace.root / ".git" / "refs" / "tags" / "v1").exists()
        yield ready


def read_only_lines(workspace: Workspace) -> list[str]:
    """Return what the default mode allows where there is no rule: nothing but what is known to read only."""
    return [line for line, _ in CORPUS if isinstance(_verdict(line, workspace), Allow)]


def _verdict(line: str, workspace: Workspace) -> object:
    call = ToolCall(CallId("c"), 0, "shell", {"command": line})
    return POLICIES[0].judge(call, Effects("", command=line), workspace)


def test_every_line_that_is_allowed_as_read_only_changes_nothing(scratch: Scratch) -> None:
    """Content, modes and links of the repository, of what is beside it, of the home folder and of `/tmp`."""
    lines = read_only_lines(scratch.workspace)
    changing = []
    before = scratch.print()
    for line in lines:
        scratch.run(line)
        after = scratch.print()
        if after != before:
            changing.append((line, sorted(before.items() ^ after.items())[:3]))
            before = after
    assert changing == []
    assert len(lines) == sum(verdicts.startswith(LETTER[Allow]) for _, verdicts in CORPUS) >= 240


@pytest.mark.parametrize(
    "line",
    [
        "echo x >> README",
        "chmod u+x README",
        "ln README other",
        "touch ~/x",
        "touch /tmp/x",
        "ln -sf in.txt out",
        "mkdir -p src/new",
        "echo x > outfile",
    ],
)
def test_a_change_would_be_seen(scratch: Scratch, line: str) -> None:
    """The proof above could fail."""
    before = scratch.print()
    scratch.run(line)
    assert scratch.print() != before
