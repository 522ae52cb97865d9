"""What a snapshot of the workspace costs beside `git add -A` on the same tree, in one run: at most 1.5 times."""

import os
import random
import statistics
import subprocess
import time

import pytest
from doubles.history import EVERYTHING

from novacode.workspace.snapshots import FileHistory, Keeping

FILES = 5000
TARGET = 1.5


def plant(tree):
    """A tree of 5,000 files, 22 MB, that looks like source code to a compressor."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnop_", k=chance.randint(2, 9))) for _ in range(3000)]
    for number in range(FILES):
        path = tree / f"d{number % 50}" / f"e{number % 7}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(chance.choices(words, k=800))[: chance.randint(800, 8000)])


class Git:
    """`git add -A` with a repository of its own, as if for a snapshot."""

    def __init__(self, folder, tree):
        self.tree = tree
        self.environ = {
            "PATH": os.environ["PATH"],
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(tree),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.run("init", "-q")

    def run(self, *arguments):
        began = time.perf_counter()
        subprocess.run(["git", *arguments], cwd=self.tree, env=self.environ, check=True, capture_output=True)
        return time.perf_counter() - began


async def take(files, name):
    began = time.perf_counter()
    await files.take(name, [EVERYTHING])
    spent = time.perf_counter() - began
    files.close(name)
    return spent


def told(what, ours, theirs):
    """Return the median of the ratios of neighbours: what else the machine does then hits both alike."""
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    print(
        f"{what:22} {statistics.median(ours) * 1e3:7.1f} ms, git add -A {statistics.median(theirs) * 1e3:7.1f} ms:"
        f" {ratio:.2f} times"
    )
    return ratio


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_snapshots_cost_what_git_add_costs(tmp_path):
    tree = tmp_path / "tree"
    plant(tree)
    size = sum(path.stat().st_size for path in tree.rglob("*.py"))
    print(f"\n{FILES} files, {size / 1e6:.0f} MB")
    ours, theirs = [], []
    for number in range(3):
        git = Git(tmp_path / f"git{number}", tree)
        files = FileHistory(Keeping(tmp_path / f"store{number}", "s", (tree,)))
        theirs.append(git.run("add", "-A"))
        ours.append(await take(files, "first"))
    ratios = [told("first", ours, theirs)]
    for what, changed in (("later, nothing changed", 0), ("later, 2 files changed", 2)):
        ours, theirs = [], []
        for number in range(30):
            for place in range(changed):
                (tree / f"d{place}" / f"e{place}" / f"f{place}.py").write_text(f"{number}" * 1000)
            ours.append(await take(files, f"{what} {number}"))
            theirs.append(git.run("add", "-A"))
        ratios.append(told(what, ours, theirs))
    assert max(ratios) <= TARGET
