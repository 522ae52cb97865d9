"""Worktrees made by a real git: what is in them, what is said where there cannot be one, and what stays behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from novacode.errors import UsageError
from novacode.workspace.processes import RealProcesses
from novacode.workspace.worktrees import Worktree, add_worktree, is_worktree_name, remove_unchanged


def git(folder: Path, *arguments: str) -> str:
    names = (
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@x",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "protocol.file.allow=always",
    )
    done = subprocess.run(["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def _own_settings(tmp_path, monkeypatch):
    """No settings of whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "sub" / "b.txt").write_text("two\n")
    (folder / ".gitignore").write_text("*.pyc\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / "worktrees" / "project"


async def add(cwd: Path, home: Path, name: str = "try", environ=None) -> Worktree:
    return await add_worktree(RealProcesses(), cwd, home, name, environ or {})


async def test_a_worktree_is_the_last_commit_on_a_branch_of_its_own(project, home):
    made = await add(project, home)
    base = git(project, "rev-parse", "HEAD")
    assert made == Worktree(home / "try", "novacode/try", base, project, home / "try")
    assert (made.path / "a.txt").read_text() == "one\n"
    assert git(made.path, "branch", "--show-current") == "novacode/try"
    assert git(project, "status", "--porcelain") == ""


async def test_it_works_in_the_same_folder_of_it(project, home):
    assert (await add(project / "sub", home)).cwd == home / "try" / "sub"


async def test_what_is_not_committed_is_told_and_left(project, home):
    (project / "a.txt").write_text("changed\n")
    (project / "new.txt").write_text("new\n")
    made = await add(project, home)
    assert made.notices == ("2 uncommitted changes are not in the worktree",)
    assert (made.path / "a.txt").read_text() == "one\n"
    assert (project / "a.txt").read_text() == "changed\n"


async def test_an_unchanged_worktree_is_removed_with_its_branch(project, home):
    made = await add(project, home)
    (made.path / "junk.pyc").write_text("ignored")
    assert await remove_unchanged(RealProcesses(), made)
    assert not made.path.exists()
    assert git(project, "branch", "--list", "novacode/*") == ""
    assert len(git(project, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    "change", ["edit", "new file", "new file in a new folder", "commit", "deletion", "other branch"]
)
async def test_a_changed_worktree_stays(project, home, change):
    made = await add(project, home)
    match change:
        case "edit":
            (made.path / "a.txt").write_text("changed\n")
        case "new file":
            (made.path / "new.txt").write_text("")
        case "new file in a new folder":
            (made.path / "deep").mkdir()
            (made.path / "deep" / "new.txt").write_text("")
        case "commit":
            git(made.path, "commit", "-q", "--allow-empty", "-m", "second")
        case "deletion":
            (made.path / "a.txt").unlink()
        case "other branch":
            git(made.path, "commit", "-q", "--allow-empty", "-m", "second")
            git(made.path, "checkout", "-q", "-b", "elsewhere", made.base)
    assert not await remove_unchanged(RealProcesses(), made)
    assert made.path.is_dir()
    assert git(project, "branch", "--list", "novacode/try").lstrip("+ ") == "novacode/try"


async def test_a_worktree_that_is_gone_already_is_not_an_error(project, home):
    made = await add(project, home)
    git(project, "worktree", "remove", "--force", str(made.path))
    assert not await remove_unchanged(RealProcesses(), made)


async def refused(cwd, home, **more) -> str:
    with pytest.raises(UsageError) as caught:
        await add(cwd, home, **more)
    return str(caught.value)


async def test_no_repository(tmp_path, home):
    assert f"{tmp_path} is in no working tree" in await refused(tmp_path, home)
    assert not home.exists()


async def test_no_working_tree(project, home):
    assert "is in no working tree" in await refused(project / ".git", home)


async def test_no_commit(tmp_path, home):
    git(tmp_path, "init", "-q")
    assert "a repository without a commit" in await refused(tmp_path, home)


async def test_a_name_that_is_taken(project, home):
    made = await add(project, home)
    assert f"the worktree {made.path} is there already" in await refused(project, home)
    git(project, "worktree", "remove", str(made.path))
    assert "the branch novacode/try is there already" in await refused(project, home)


async def test_a_branch_that_leaves_no_room_for_others(project, home):
    git(project, "branch", "novacode")
    assert "git worktree add failed" in await refused(project, home)
    assert not (home / "try").exists()


async def test_a_folder_that_is_in_no_commit(project, home):
    (project / "fresh").mkdir()
    assert "is in no commit of its repository" in await refused(project / "fresh", home)
    assert not (home / "try").exists()
    assert git(project, "branch", "--list", "novacode/*") == ""


async def test_a_submodule_with_changes(tmp_path, project, home):
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "submodule", "--quiet", "add", str(inner), "mod ule")
    git(project, "commit", "-qm", "with a submodule")
    made = await add(project, home)
    assert made.notices == (
        "submodules are not checked out in the worktree: `git submodule update --init` there does it",
    )
    (project / "mod ule" / "new.txt").write_text("")
    assert "submodules with changes (mod ule)" in await refused(project, home, name="again")
    git(project / "mod ule", "add", ".")
    git(project / "mod ule", "commit", "-qm", "only here")
    assert "submodules with changes (mod ule)" in await refused(project, home, name="again")
    assert not (home / "again").exists()


async def test_variables_that_would_lead_git_elsewhere(project, home):
    assert "GIT_DIR would lead git out" in await refused(project, home, environ={"GIT_DIR": "/elsewhere"})


async def test_no_git(project, home, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "--worktree needs git: 'git' could not be started" in await refused(project, home)


@pytest.mark.parametrize("name", ["a", "fix-1", "v1.2_x", "A" * 64])
def test_names(name):
    assert is_worktree_name(name)


@pytest.mark.parametrize(
    "name", ["", "-x", ".x", "a..b", "a.lock", "a.", "a/b", "a b", "a~1", "@{", "ä", "A" * 65, "a\n"]
)
def test_what_is_no_name(name):
    assert not is_worktree_name(name)


async def test_a_bad_name_is_refused_before_anything_is_done(project, home):
    assert "'a/b' cannot name a worktree" in await refused(project, home, name="a/b")


async def test_git_is_not_sent_into_a_repository_that_a_command_has_made(project, home, tmp_path):
    """In the place of a submodule that is not checked out: its settings would start a program of the command's."""
    git(project, "update-index", "--add", "--cacheinfo", f"160000,{git(project, 'rev-parse', 'HEAD')},module")
    git(project, "commit", "-qm", "with a submodule")
    made = await add(project, home)
    evil = made.path / "module"
    git(evil, "init", "-q")
    git(evil, "commit", "-q", "--allow-empty", "-m", "x")
    started = tmp_path / "started"
    git(evil, "config", "core.fsmonitor", f"touch {started}; false")
    assert not await remove_unchanged(RealProcesses(), made)
    assert not started.exists()
    assert made.path.is_dir()
    git(made.path, "status", "--ignore-submodules=none")
    assert started.exists(), "the test shows nothing"
