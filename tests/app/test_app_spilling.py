"""Where long output goes, and what is left of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from novacode.app.spilling import SpillPlace
from novacode.sessions.store import Store, memory_session, project_key
from novacode.values.ids import SessionId


def leave(place: SpillPlace) -> list[str]:
    """Use `place` as a run does, and return what was there before."""
    with place.used() as folder:
        before = sorted(os.listdir(folder)) if folder.exists() else []
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(before)}.txt").write_text("long")
    return before


def test_a_session_that_goes_on_finds_what_it_left(tmp_path: Path) -> None:
    store = Store(tmp_path / "home", lambda: 0.0)
    session = store.create(tmp_path)
    place = SpillPlace.of(session, tmp_path / "home", tmp_path, passing=False, fixed_id=False)
    session.close()
    again = store.open(session.id)
    elsewhere = SpillPlace.of(again, tmp_path / "home", tmp_path / "home", passing=False, fixed_id=True)
    again.close()
    assert place.folder == tmp_path / "home" / "spill" / project_key(tmp_path) / session.id
    assert place == elsewhere
    assert [leave(place), leave(place)] == [[], ["0.txt"]]


def test_an_id_that_is_used_again_begins_with_nothing(tmp_path: Path) -> None:
    """A second run of one script named its file `….txt-2`, so that two runs were not the same bytes."""
    found = []
    for _ in range(2):
        session = Store(tmp_path / "home", lambda: 0.0).replace(SessionId("s-fixed"), tmp_path)
        found.append(leave(SpillPlace.of(session, tmp_path / "home", tmp_path, passing=False, fixed_id=True)))
        session.close()
    assert found == [[], []]


def test_of_a_session_that_is_not_kept_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = memory_session(SessionId("s-unkept"))
    place = SpillPlace.of(session, tmp_path / "home", tmp_path, passing=True, fixed_id=False)
    assert place.folder.is_relative_to(tmp_path / f"novacode-{os.getuid()}")
    leave(place)
    assert not place.folder.exists()


def test_two_folders_share_nothing(tmp_path: Path) -> None:
    """Scripted runs have one id everywhere; each would remove what the other is writing."""
    session = memory_session(SessionId("s-fixed"))
    places = {SpillPlace.of(session, tmp_path, tmp_path / name, passing=False, fixed_id=True).folder for name in "ab"}
    assert len(places) == 2


def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a session that is not kept, where `tmp_path` is the one for temporary things."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = memory_session(SessionId("s-unkept"))
    return SpillPlace.of(session, tmp_path / "home", tmp_path, passing=True, fixed_id=False).folder


def test_nobody_else_reads_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before anything is in it, and not where an earlier version has left it open."""
    ours = tmp_path / f"novacode-{os.getuid()}"
    for _ in range(2):
        assert temporary(tmp_path, monkeypatch).is_relative_to(ours)
        assert ours.stat().st_mode & 0o777 == 0o700
        ours.chmod(0o755)


@pytest.mark.parametrize("planted", ["link", "folder of another", "file"])
def test_what_somebody_else_has_put_there_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """A name everybody can guess, in a folder where everybody may write."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    usual = tmp_path / f"novacode-{os.getuid()}"
    if planted == "link":
        usual.symlink_to(theirs)
    elif planted == "file":
        usual.write_text("")
    else:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        (tmp_path / f"novacode-{me + 1}").mkdir()
    place = temporary(tmp_path, monkeypatch)
    assert place.parent.parent.name.startswith(f"novacode-{os.getuid()}-")
    assert place.parent.parent.stat().st_mode & 0o777 == 0o700
    assert list(theirs.iterdir()) == []


def test_two_that_are_not_kept_do_not_remove_what_the_other_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = temporary(tmp_path, monkeypatch)
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    assert temporary(tmp_path, monkeypatch) != first
