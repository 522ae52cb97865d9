"""AGENTS.md: which files are read, in which order, and how much of them."""

import os

import pytest

from novacode.app.instructions import Instructions, load_instructions


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "a" / "b").mkdir(parents=True)
    return root


def test_from_the_root_down_to_the_working_folder(repository, tmp_path):
    (tmp_path / "AGENTS.md").write_text("above the repository")
    (repository / "AGENTS.md").write_text("root rules\n")
    (repository / "a" / "b" / "AGENTS.md").write_text("\n deep rules")
    root, deep = repository / "AGENTS.md", repository / "a" / "b" / "AGENTS.md"
    assert load_instructions(repository / "a" / "b") == Instructions(
        f"# Instructions of {root}\n\nroot rules\n\n# Instructions of {deep}\n\ndeep rules\n", (root, deep)
    )


def test_without_a_repository_only_that_of_the_folder(tmp_path):
    (tmp_path / "AGENTS.md").write_text("parent")
    (tmp_path / "x").mkdir()
    assert load_instructions(tmp_path / "x") == Instructions()


def test_the_nearest_file_gets_the_room(repository):
    (repository / "AGENTS.md").write_text("far " * 100)
    (repository / "a" / "AGENTS.md").write_text("near" * 10)
    loaded = load_instructions(repository / "a", limit=100)
    assert "near" * 10 in loaded.text
    assert "bytes left out" in loaded.text
    assert len(loaded.text) < 400
    assert loaded.notices == (
        f"{repository / 'AGENTS.md'} is 400 bytes long; 60 of the 100 there are room for were left",
    )


def test_what_leads_out_of_the_repository_is_not_read(repository, tmp_path):
    (tmp_path / "secret").write_text("key")
    (repository / "AGENTS.md").symlink_to(tmp_path / "secret")
    loaded = load_instructions(repository)
    assert loaded.text == ""
    assert "outside of" in loaded.notices[0]


def test_a_pipe_does_not_block(repository):
    os.mkfifo(repository / "AGENTS.md")
    assert load_instructions(repository).notices == (
        f"{repository / 'AGENTS.md'} is not a regular file and is left out",
    )


def test_bytes_that_are_no_text_are_replaced(repository):
    (repository / "AGENTS.md").write_bytes(b"\xef\xbb\xbfok \xff")
    assert load_instructions(repository).text.endswith("\n\nok \ufffd\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_an_unreadable_file_is_a_notice(repository):
    (repository / "AGENTS.md").write_text("x")
    (repository / "AGENTS.md").chmod(0)
    assert "cannot be read" in load_instructions(repository).notices[0]
