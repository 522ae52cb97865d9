"""An "always" holds in the folder where it was given, the next time too, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from novacode.app.rule_store import RuleStore, personal_file
from novacode.app.settings import Places, load_settings
from novacode.errors import SettingsError


def _rules(home: Path, cwd: Path) -> list[str]:
    return [rule.text for rule in load_settings(Places(home, cwd), {}).rules]


def test_a_kept_rule_holds_next_time_here_and_not_elsewhere(tmp_path: Path) -> None:
    """The folder need not be trusted: the person gave this by hand."""
    here, there, home = tmp_path / "here", tmp_path / "there", tmp_path / "home"
    here.mkdir()
    there.mkdir()
    store = RuleStore(home, here)
    kept = ["shell(make test)", 'shell(echo "a\\b\x7fü")']
    for rule in kept:
        assert store.add(rule) == str(personal_file(home, here))
    store.add(kept[0])
    assert (_rules(home, here), _rules(home, there)) == (kept, [])


def test_a_damaged_file_is_told_and_left_alone(tmp_path: Path) -> None:
    """What is there is the person's; it is not written over because it cannot be read."""
    store = RuleStore(tmp_path, tmp_path)
    store.path.parent.mkdir(parents=True)
    store.path.write_text("[permissions\n")
    with pytest.raises(SettingsError, match="damaged"):
        store.add("shell(ls)")
    assert store.path.read_text() == "[permissions\n"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file where the folder should be: root can write anywhere, so permissions would prove nothing."""
    (tmp_path / "projects").write_text("")
    with pytest.raises(SettingsError, match="cannot be written"):
        RuleStore(tmp_path, tmp_path).add("shell(ls)")
