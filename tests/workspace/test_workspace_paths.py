"""Paths are judged by where they lead, not by what they look like."""

import os
from pathlib import Path

import pytest

from novacode.workspace.paths import Workspace


@pytest.fixture
def there(tmp_path):
    """A workspace and a folder beside it, reached by `out` in the workspace."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a")
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (root / "out").symlink_to(outside)
    return Workspace.at(root), outside.resolve()


def inside(workspace: Workspace, path: str) -> bool:
    return workspace.contains(workspace.resolve(path))


@pytest.mark.parametrize(
    "path",
    [
        "out/secret.txt",
        "out/new.txt",
        "out/../outside/secret.txt",
        "out/../out/secret.txt",
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "src/none/../../../outside/secret.txt",
        "/etc/passwd",
        "..",
        "out",
        "~",
        "~root/x",
    ],
)
def test_br_048_what_leads_out_is_outside(there, path):
    workspace, _ = there
    assert not inside(workspace, path)


@pytest.mark.parametrize("path", ["src/a.py", "./src/../src/a.py", "new/deep/file", "", ".", "src//a.py", "..."])
def test_br_048_what_stays_in_is_inside(there, path):
    workspace, _ = there
    assert inside(workspace, path)


def test_a_parent_step_after_a_link_starts_where_the_link_leads(there):
    workspace, outside = there
    assert workspace.resolve("out/..") == outside.parent


def test_br_048_a_link_that_stays_inside_works(there):
    workspace, _ = there
    (workspace.root / "again").symlink_to(workspace.root / "src")
    assert workspace.resolve("again/a.py") == workspace.root / "src" / "a.py"
    assert inside(workspace, "again/a.py")


def test_br_048_the_root_may_be_reached_through_a_link(there, tmp_path):
    workspace, _ = there
    (tmp_path / "door").symlink_to(workspace.root)
    through = Workspace.at(tmp_path / "door")
    assert through == workspace
    assert inside(through, "src/a.py")
    assert inside(through, str(tmp_path / "door" / "src" / "a.py"))
    assert not inside(through, "out/secret.txt")


def test_a_link_made_later_is_judged_when_it_is_used(there):
    workspace, outside = there
    assert inside(workspace, "late/secret.txt")
    (workspace.root / "late").symlink_to(outside)
    assert not inside(workspace, "late/secret.txt")


def test_a_dangling_link_is_where_it_points(there, tmp_path):
    workspace, _ = there
    (workspace.root / "dangling").symlink_to(tmp_path / "nowhere")
    assert not inside(workspace, "dangling")


def test_a_loop_does_not_hide_a_link_behind_it(there):
    """`realpath` alone gives up at the loop and calls `loop/../out/secret.txt` a path inside."""
    workspace, outside = there
    (workspace.root / "loop").symlink_to("pool")
    (workspace.root / "pool").symlink_to("loop")
    assert workspace.resolve("loop/../out/secret.txt") == outside / "secret.txt"
    with pytest.raises(OSError, match="symbolic links"):
        workspace.resolve("loop/x").read_text()


def test_a_home_of_nobody_is_a_plain_name_without_parent_steps(there):
    workspace, _ = there
    (workspace.root / "~nobody-of-this-name").mkdir()
    assert workspace.resolve("~nobody-of-this-name/x") == workspace.root / "~nobody-of-this-name" / "x"
    assert not inside(workspace, "~nobody-of-this-name/../../outside/secret.txt")


@pytest.mark.parametrize("path", ["a\0b", "~\0", "src/\ud800", "out/../../x\0/y"])
def test_names_no_file_can_have_fail_when_they_are_opened(there, path):
    workspace, _ = there
    resolved = workspace.resolve(path)
    assert ".." not in resolved.parts
    with pytest.raises(ValueError):
        resolved.read_bytes()


def test_parent_steps_out_of_the_workspace_count_with_a_nul_byte_too(there):
    workspace, _ = there
    assert not inside(workspace, "../outside/x\0y")


def test_a_neighbour_whose_name_begins_alike_is_outside(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root-two").mkdir()
    assert not inside(Workspace.at(tmp_path / "root"), "../root-two/x")


def test_further_folders_count_as_inside(there):
    workspace, outside = there
    wider = Workspace.at(workspace.root, [outside])
    assert inside(wider, "out/secret.txt")
    assert not inside(wider, "/etc/passwd")


def test_a_very_long_name_does_not_raise(there):
    workspace, _ = there
    assert inside(workspace, "x" * 5000)


def test_display_is_relative_where_it_can_be(there):
    workspace, outside = there
    assert workspace.display(workspace.root / "src" / "a.py") == os.path.join("src", "a.py")
    assert workspace.display(workspace.root) == "."
    assert workspace.display(outside / "secret.txt") == str(outside / "secret.txt")


def test_the_home_folder_is_meant_by_a_tilde(there, monkeypatch, tmp_path):
    workspace, _ = there
    monkeypatch.setenv("HOME", str(tmp_path / "outside"))
    assert workspace.resolve("~/secret.txt") == Path(tmp_path).resolve() / "outside" / "secret.txt"
