"""File history that is too old or too much goes, oldest first; what is kept can be put back as before."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from novacode.tools.base import EVERYTHING
from novacode.values.ids import CallId
from novacode.workspace.changes import read_log
from novacode.workspace.contents import COMMIT, INDEX, PACK, Contents
from novacode.workspace.pruning import Keep, Pruned, prune, prune_when_due
from novacode.workspace.snapshots import FileHistory, Keeping, log_path

DAY = 86_400
NOW = 1_000 * DAY


def quietly() -> None:
    """Nothing ends it."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def noise(seed: int, size: int = 800_000) -> bytes:
    """Bytes that do not pack."""
    return random.Random(seed).randbytes(size)


def session(store: Path, work: Path, name: str, days_ago: int, content: bytes) -> None:
    """A session that replaces `content` by a word in a folder with another file nobody changes."""
    store.mkdir(exist_ok=True)
    (store / "pruned").touch()  # today: so that it does not happen by itself
    (work / "changed").write_bytes(content)
    (work / "beside").write_bytes(noise(days_ago + 100))

    async def main() -> None:
        history = FileHistory(Keeping(store, name, (work,)))
        await history.take(CallId(f"{name}-c1"), (EVERYTHING,))
        (work / "changed").write_text("word")
        await history.record(CallId(f"{name}-c1"), "tool")

    trio.run(main)
    os.utime(log_path(store, name), (NOW - days_ago * DAY,) * 2)


def can_be_put_back(store: Path, name: str) -> list[bytes | None]:
    contents = Contents(store)
    changes = [change for entry in read_log(log_path(store, name)) for change in entry.changes or ()]
    return [contents.get(change.before.content) for change in changes]


def test_what_is_too_old_goes_and_what_is_kept_can_be_put_back(store: Path, work: Path) -> None:
    """And so does what no call has changed, of all of them."""
    for number, days in enumerate((50, 31, 29, 1)):
        session(store, work, f"s{number}", days, noise(number))
    before = (store / PACK).stat().st_size
    done = prune(store, Keep(30, 0), NOW, quietly)
    assert done is not None
    assert sorted(done.sessions) == ["s0", "s1"]
    assert sorted(path.name for path in store.glob("*.jsonl")) == ["s2.jsonl", "s3.jsonl"]
    assert (store / PACK).stat().st_size == 2 * 800_000
    assert before - done.bytes < 2 * 800_000
    assert [can_be_put_back(store, name) for name in ("s2", "s3")] == [[noise(2)], [noise(3)]]
    assert "the file history of 2 sessions was removed" in str(done)


def test_of_too_much_the_oldest_goes(store: Path, work: Path) -> None:
    """And never the last one, however large it is."""
    for number, days in enumerate((5, 4, 3)):
        session(store, work, f"s{number}", days, noise(number, 1_500_000))
    assert prune(store, Keep(0, 4), NOW, quietly).sessions == ("s0",)
    assert prune(store, Keep(0, 1), NOW, quietly).sessions == ("s1",)
    assert can_be_put_back(store, "s2") == [noise(2, 1_500_000)]


def test_without_bounds_only_what_nobody_needs_goes(store: Path, work: Path) -> None:
    session(store, work, "s0", 900, noise(0))
    session(store, work, "s1", 1, noise(1))
    done = prune(store, Keep(0, 0), NOW, quietly)
    assert done.sessions == ()
    assert [can_be_put_back(store, name) for name in ("s0", "s1")] == [[noise(0)], [noise(1)]]
    assert prune(store, Keep(0, 0), NOW, quietly) == Pruned()


def test_a_store_that_somebody_works_with_is_left_alone(store: Path, work: Path) -> None:
    """From when they have looked into it, for as long as they are there."""
    session(store, work, "s0", 50, noise(0))
    here = Contents(store)
    assert here.get("00" * 20) is None
    before = (store / PACK).read_bytes()
    assert prune(store, Keep(), NOW, quietly) is None
    assert (store / PACK).read_bytes() == before
    del here
    assert prune(store, Keep(), NOW, quietly).sessions == ("s0",)


def test_what_is_written_afterwards_is_found(store: Path, work: Path) -> None:
    """By who comes new, and by who had only made the object before."""
    waiting = Contents(store)
    session(store, work, "s0", 1, noise(0))
    session(store, work, "s1", 50, noise(1))
    prune(store, Keep(), NOW, quietly)
    digest = waiting.put(noise(7))
    waiting.flush()
    assert Contents(store).get(digest) == noise(7)
    assert can_be_put_back(store, "s0") == [noise(0)]


def stopped_at(monkeypatch: pytest.MonkeyPatch, number: int, work: Callable[[], object]) -> bool:
    """Do `work`, and end it at the change of a name after the first `number`; return whether it came so far."""
    left = [number]
    real = {name: getattr(Path, name) for name in ("replace", "unlink", "touch")}

    def dying(name: str) -> Callable[..., object]:
        def act(path: Path, *given: object, **more: object) -> object:
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            return real[name](path, *given, **more)

        return act

    with monkeypatch.context() as patch:
        for name in real:
            patch.setattr(Path, name, dying(name))
        try:
            work()
        except KeyboardInterrupt:
            return True
    return False


def test_killed_anywhere_nothing_of_what_is_kept_is_lost(
    store: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes next finishes the exchange of the files, or finds them as they were."""
    session(store, work, "s0", 50, noise(0))
    session(store, work, "s1", 1, noise(1))
    saved = {path.name: (path.read_bytes(), path.stat().st_mtime) for path in store.iterdir()}
    number = 0
    while stopped_at(monkeypatch, number, lambda: prune(store, Keep(), NOW, quietly)):
        assert can_be_put_back(store, "s1") == [noise(1)], f"after {number} changes"
        assert not (store / COMMIT).exists()
        for path in store.iterdir():
            path.unlink()
        for name, (data, at) in saved.items():
            (store / name).write_bytes(data)
            os.utime(store / name, (at, at))
        number += 1
    assert number >= 5
    assert can_be_put_back(store, "s1") == [noise(1)]


def test_ended_half_way_everything_is_as_it_was(store: Path, work: Path) -> None:
    session(store, work, "s0", 50, noise(0))
    session(store, work, "s1", 1, noise(1))
    before = {name: (store / name).read_bytes() for name in (PACK, INDEX, "s0.jsonl")}

    def stop() -> None:
        raise trio.TooSlowError

    with pytest.raises(trio.TooSlowError):
        prune(store, Keep(), NOW, stop)
    assert {name: (store / name).read_bytes() for name in before} == before
    assert can_be_put_back(store, "s1") == [noise(1)]


async def test_it_is_done_once_a_day_before_the_first_snapshot_and_told(store: Path, tmp_path: Path) -> None:
    """With the first call of a session; and not again for the next session of the same day."""
    store.mkdir()
    (tmp_path / "work").mkdir()
    for name in ("old", "older"):
        log_path(store, name).write_text('{"format":"novacode-file-history","version":1}\n')
        os.utime(log_path(store, name), (NOW - 40_000 * DAY if name == "older" else 0,) * 2)
    told = []
    for name in ("s1", "s2"):
        history = FileHistory(Keeping(store, name, (tmp_path / "work",)))
        told += [await history.take(CallId(f"{name}-{call}"), (EVERYTHING,)) for call in ("c1", "c2")]
        log_path(store, "again").write_text("")
        os.utime(log_path(store, "again"), (0, 0))
    said = [any("history of 2 sessions was removed" in notice.text for notice in notices) for notices in told]
    assert said == [True, False, False, False]
    assert log_path(store, "again").exists()


async def test_a_store_that_cannot_be_pruned_costs_no_snapshot(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk says no, or it takes too long: what calls change is kept all the same."""

    def fail(folder: Path, keep: Keep) -> None:
        raise OSError(5, "Input/output error")

    def last(folder: Path, keep: Keep) -> None:
        while True:
            trio.from_thread.check_cancelled()

    (tmp_path / "work").mkdir()
    for number, prunes in enumerate((fail, last)):
        monkeypatch.setattr("novacode.workspace.snapshots.prune_when_due", prunes)
        (tmp_path / "work" / "a.txt").write_text("one")
        history = FileHistory(Keeping(store, f"s{number}", (tmp_path / "work",), patience=0.2 if number else 30.0))
        await history.take(CallId("c1"), (EVERYTHING,))
        (tmp_path / "work" / "a.txt").write_text("two")
        changed = await history.record(CallId("c1"), "tool")
        assert changed is not None
        assert (changed.problem, [Path(name).name for name in changed.modified]) == ("", ["a.txt"])


def test_where_there_is_no_store_nothing_is_made(store: Path) -> None:
    assert prune_when_due(store, Keep()) is None
    assert not store.exists()
