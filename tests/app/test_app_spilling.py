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
