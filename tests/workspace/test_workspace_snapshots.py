"""The file history: what is kept before a call, what is recorded after it, what it costs and what it never touches."""

import os
import threading

import pytest
import trio
from doubles.history import EVERYTHING, History, git

from novacode.values.events import FilesChanged, Level
from novacode.workspace.changes import Change, ChangeLog, Entry, read_log
from novacode.workspace.contents import Contents
from novacode.workspace.listing import Bounds, Surveyor
from novacode.workspace.snapshots import SwitchedOff
from novacode.workspace.states import ABSENT, Kind, State, digest_of


@pytest.fixture
def history(tmp_path):
    return History(tmp_path)


async def test_a_call_without_writes_costs_nothing(history):
    """Nothing is read, made or said for a call that is known to change nothing."""
    assert await history.files.take("c", ()) == ()
    assert await history.files.record("c", "shell") is None
    assert not history.store.exists()


async def test_a_file_tools_call_keeps_exactly_its_paths(history):
    """The folders that are made on the way belong to it; what others do meanwhile does not."""
    history.write("old.txt", "old\n")
    changed = await history.call(
        "c1",
        lambda: (history.write("new/deep/a.txt", "a"), history.write("old.txt", "person\n")),
        paths=[history.work / "new/deep/a.txt"],
    )
    assert changed == FilesChanged("c1", "tool", created=("new/", "new/deep/", "new/deep/a.txt"))


async def test_a_command_is_told_by_the_difference_of_the_trees(history):
    history.write("a.txt", "a")
    history.write("gone/b.txt", "b")
    history.write("mode.sh", "x")
    history.write("kind", "x")

    def act():
        history.write("a.txt", "A")
        (history.work / "gone/b.txt").unlink()
        (history.work / "gone").rmdir()
        (history.work / "mode.sh").chmod(0o755)
        (history.work / "kind").unlink()
        (history.work / "kind").symlink_to("a.txt")
        (history.work / "empty").mkdir()

    assert await history.call("c1", act) == FilesChanged(
        "c1", "tool", ("empty/",), ("a.txt", "kind", "mode.sh"), ("gone/", "gone/b.txt")
    )


async def test_a_change_of_the_same_length_within_one_tick_is_seen(history):
    """The status of a file need not change with it: what was read too soon after a change is read again."""
    for number in range(30):
        history.write("a.txt", f"{number:03}")
        changed = await history.call(f"c{number}", lambda number=number: history.write("a.txt", f"{number:02}!"))
        assert changed is not None
        assert changed.modified == ("a.txt",)


@pytest.mark.parametrize(("later", "trusted"), [(0, False), (1_000_000, False), (50_000_000, True)])
async def test_what_was_read_in_the_tick_of_its_change_is_not_trusted(history, later, trusted):
    """Nothing in a status tells a second change in the same tick from the first."""
    history.write("a.txt", "x")
    os.utime(history.work, ns=(1, 1_700_000_000_123_456_789))
    reads = []

    def keep(data):
        reads.append(data)
        return digest_of(data)

    changed_at = (history.work / "a.txt").stat().st_ctime_ns
    surveyor = Surveyor(keep, Bounds(), now=lambda: changed_at + later)
    first = await trio.to_thread.run_sync(surveyor.survey, [history.work])
    assert await trio.to_thread.run_sync(surveyor.survey, [history.work]) == first
    assert len(reads) == (1 if trusted else 2)


async def test_what_a_file_tool_says_it_changed_is_not_blamed_on_the_command_beside_it(history):
    """With `overlap = all` the two run at once."""
    await history.files.take("shell", [EVERYTHING])
    await history.files.take("edit", [history.work / "a.txt"])
    history.write("a.txt", "by edit")
    history.write("b.txt", "by shell")
    edit = await history.files.record("edit", "edit")
    history.files.close("edit")
    assert edit == FilesChanged("edit", "edit", created=("a.txt",))
    assert await history.files.record("shell", "shell") == FilesChanged("shell", "shell", created=("b.txt",))


async def test_a_call_that_was_closed_without_a_record_is_no_call_beside_another(history):
    """Cancelled before it ran, it must not hide what others change."""
    await history.files.take("edit", [history.work / "a.txt"])
    history.files.close("edit")
    assert await history.call("c", lambda: history.write("a.txt", "x")) == FilesChanged("c", "tool", ("a.txt",))


async def test_the_cost_and_what_is_not_covered_are_told_once(history):
    history.bounds = Bounds(max_file=100)
    history.write("small.txt", "x" * 100)
    history.write("big.bin", "x" * 101)
    history.write(".gitignore", "node_modules/\n")
    history.write("node_modules/m.js", "x")
    git(history.work, "init", "-q")
    os.mkfifo(history.work / "pipe")
    notices = await history.files.take("c1", [EVERYTHING])
    assert [(notice.level, notice.text) for notice in notices] == [
        (Level.INFO, "`novacode rewind` keeps 2 files, 0.0 MB before packing"),
        (
            Level.WARNING,
            "not covered by `novacode rewind`: big.bin (larger than 0.0001 MB), pipe (neither file, link nor folder)",
        ),
        (Level.INFO, "not covered by `novacode rewind`: node_modules (ignored by git)"),
    ]
    history.write("big2.bin", "x" * 200)
    assert [notice.text for notice in await history.files.take("c2", [EVERYTHING])] == [
        "not covered by `novacode rewind`: big2.bin (larger than 0.0001 MB)"
    ]


async def test_a_change_of_what_is_not_kept_is_named_as_such(history):
    history.bounds = Bounds(max_file=10)
    history.write("big.bin", "x" * 11)
    changed = await history.call("c", lambda: history.write("big.bin", "y" * 12))
    assert changed == FilesChanged("c", "tool", uncovered=("big.bin",))


async def test_ignored_folders_are_covered_where_that_is_wanted_and_ignored_files_always(history):
    """A single ignored file is often what cannot be made again (`.env`); a folder of them can."""
    git(history.work, "init", "-q")
    history.write(".gitignore", "out/\n.env\n")

    def act():
        history.write(".env", "KEY=1")
        history.write("out/a.o", "x")

    assert await history.call("c", act) == FilesChanged("c", "tool", created=(".env",))
    wanted = History(history.root / "other")
    wanted.bounds = Bounds(ignored=True)
    wanted.write(".gitignore", "out/\n")
    assert await wanted.call("c", lambda: wanted.write("out/a.o", "x")) == FilesChanged(
        "c", "tool", created=("out/", "out/a.o")
    )


async def test_br_169_nothing_of_the_repository_is_touched(history):
    """Index, refs, stash, hooks and objects are byte for byte what they were, and `.git` is never a change."""
    git(history.work, "init", "-q")
    history.write("a.txt", "a")
    git(history.work, "add", "-A")
    before = history.tree(history.work / ".git")
    await history.call("c1", lambda: history.write("a.txt", "b"))
    assert history.tree(history.work / ".git") == before
    changed = await history.call("c2", lambda: git(history.work, "commit", "-q", "-m", "x"))
    assert changed is None


async def test_br_173_nested_repositories_are_files_like_others_and_their_git_is_left_alone(history):
    history.write("vendor/lib/a.txt", "a")
    git(history.work / "vendor/lib", "init", "-q")
    changed = await history.call("c", lambda: history.write("vendor/lib/a.txt", "b"))
    assert changed == FilesChanged("c", "tool", modified=("vendor/lib/a.txt",))


async def test_br_173_what_exceeds_the_bounds_is_left_out_as_a_whole_folder_and_named(history):
    """A folder of very many files does not cost the rest its place, and is not walked to its end."""
    history.bounds = Bounds(max_files=50)
    for number in range(200):
        history.write(f"data/{number}.json", "x")
    history.write("src/a.py", "a")
    notices = await history.files.take("c1", [EVERYTHING])
    assert "not covered by `novacode rewind`: data (it would be more than 50 files)" in [n.text for n in notices]

    def act():
        history.write("data/7.json", "y")
        history.write("src/a.py", "b")

    act()
    assert await history.files.record("c1", "shell") == FilesChanged("c1", "shell", modified=("src/a.py",))


async def test_br_173_a_sparse_giant_is_not_read(history):
    history.write("giant.bin", "")
    os.truncate(history.work / "giant.bin", 6 * 2**30)
    changed = await history.call("c", lambda: history.write("a.txt", "x"))
    assert changed == FilesChanged("c", "tool", created=("a.txt",))


async def test_the_bytes_in_all_are_bounded(history):
    history.bounds = Bounds(max_total=25)
    for name in "abc":
        history.write(name, "x" * 10)
    notices = await history.files.take("c1", [EVERYTHING])
    assert "c (it would be more than 2.5e-05 MB in all)" in notices[1].text


async def test_novacodes_own_folder_and_links_are_not_entered(history):
    """The home may lie in the workspace, and a link may lead anywhere."""
    outside = history.root / "outside"
    outside.mkdir()
    (history.work / "link").symlink_to(outside)
    changed = await history.call("c", lambda: (outside / "x").write_text("x"))
    assert changed is None
    inside = History(history.root / "second", store=history.root / "second/project/.novacode/snapshots")
    assert await inside.call("c1", lambda: inside.write("a", "x")) == FilesChanged("c1", "tool", created=("a",))


async def test_br_170_file_names_are_bytes(history):
    """Names with a line end, or that are no UTF-8, are recorded and told like others."""
    names = [b"new\nline", b"\xff\xfe", b"tab\t", b"-rf", b"\"quote'"]

    def act():
        for name in names:
            with open(os.fsencode(history.work) + b"/" + name, "wb") as file:
                file.write(b"x")

    changed = await history.call("c", act)
    assert sorted(changed.created) == sorted(os.fsdecode(name) for name in names)
    (entry,) = read_log(history.log)
    assert [change.path for change in entry.changes] == sorted(f"{history.work}/{os.fsdecode(name)}" for name in names)


async def test_br_170_it_works_without_git_and_without_an_identity(history, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert await history.call("c", lambda: history.write("a", "x")) == FilesChanged("c", "tool", created=("a",))


async def test_br_170_a_store_that_cannot_be_written_is_told_once_and_the_calls_say_so(history):
    history.store.parent.mkdir(parents=True, exist_ok=True)
    history.store.write_text("a file where the folder should be")
    first = await history.files.take("c1", [EVERYTHING])
    second = await history.files.take("c2", [history.work / "a"])
    problem = f"the file history in {history.store} cannot be written (File exists)"
    assert [notice.text for notice in first] == [f"what calls change cannot be taken back: {problem}"]
    assert second == ()
    assert await history.files.record("c1", "shell") == FilesChanged("c1", "shell", problem=problem)
    assert await history.files.record("c2", "edit") == FilesChanged("c2", "edit", problem=problem)


async def test_br_170_a_full_disk_leaves_the_store_as_it_was_and_later_calls_complete(history, monkeypatch):
    """What could not be kept is read again: no later state may refer to a content that is not there."""
    history.write("a.txt", "first")
    await history.call("c0", lambda: None)
    real = os.write
    budget = [100]

    def full(fd, data):
        if os.path.dirname(os.readlink(f"/proc/self/fd/{fd}")) == str(history.store):
            if budget[0] < len(data):
                done, budget[0] = budget[0], 0
                if not done:
                    raise OSError(28, "No space left on device")
                return real(fd, bytes(data)[:done])
            budget[0] -= len(data)
        return real(fd, data)

    size = (history.store / "content.pack").stat().st_size
    history.write("a.txt", os.urandom(5000).hex())
    monkeypatch.setattr(os, "write", full)
    notices = await history.files.take("c1", [EVERYTHING])
    assert "No space left on device" in notices[0].text
    assert (history.store / "content.pack").stat().st_size == size
    monkeypatch.undo()
    text = (history.work / "a.txt").read_text()
    await history.call("c2", lambda: history.write("a.txt", "last"))
    (change,) = read_log(history.log)[-1].changes
    assert Contents(history.store).get(change.before.content) == text.encode()


async def test_br_173_a_walk_is_cancelled_at_once_and_leaves_no_thread(history):
    for folder in range(200):
        history.write(f"d{folder}/a.txt", f"{folder}" * 1000)
    threads = threading.active_count()
    with trio.move_on_after(0.005) as scope:
        await history.files.take("c", [EVERYTHING])
    history.files.close("c")
    if not scope.cancelled_caught:
        pytest.skip("this machine was faster than the cancellation")
    assert threading.active_count() <= threads + 1  # an idle worker of trio may wait for its next work
    assert await history.call("c2", lambda: history.write("d1/a.txt", "new")) == FilesChanged(
        "c2", "tool", modified=("d1/a.txt",)
    )


async def test_br_173_a_walk_that_takes_too_long_is_given_up_for_the_session(history):
    """The calls run, are said to be not covered, and file tools' calls still are."""
    for folder in range(100):
        history.write(f"d{folder}/a.txt", "x")
    history.patience = 0.0
    notices = await history.files.take("c1", [EVERYTHING])
    assert "going through the files took more than 0 s" in notices[0].text
    problem = "going through the files took more than 0 s"
    assert await history.files.record("c1", "shell") == FilesChanged("c1", "shell", problem=problem)
    assert await history.files.take("c2", [EVERYTHING]) == ()


async def test_switched_off_says_so_of_every_call_that_may_write():
    off = SwitchedOff()
    assert await off.take("c1", [EVERYTHING]) == ()
    assert await off.take("c2", ()) == ()
    assert await off.record("c1", "shell") == FilesChanged("c1", "shell", problem="snapshots were switched off")
    assert await off.record("c2", "read") is None


async def test_a_file_tool_may_change_what_is_outside_and_what_is_large(history):
    outside = history.root / "outside.txt"
    outside.write_text("x" * 30_000_000)
    changed = await history.call("c", lambda: outside.write_text("y"), paths=[outside])
    assert changed == FilesChanged("c", "tool", modified=(str(outside),))
    (entry,) = read_log(history.log)
    assert Contents(history.store).get(entry.changes[0].before.content) == b"x" * 30_000_000


def test_contents_are_kept_once_and_found_by_another_process(tmp_path):
    one, other = Contents(tmp_path), Contents(tmp_path)
    digests = [one.put(b"a"), one.put(b"b" * 1000), one.put(b"a"), one.put(b"")]
    one.flush()
    size = (tmp_path / "content.pack").stat().st_size
    assert other.put(b"b" * 1000) == digests[1]
    other.put(b"c")
    other.flush()
    assert (tmp_path / "content.pack").stat().st_size == size + 1
    fresh = Contents(tmp_path)
    assert [fresh.get(digest) for digest in digests] == [b"a", b"b" * 1000, b"a", b""]
    assert fresh.get(digest_of(b"nowhere")) is None
    assert (tmp_path / "content.pack").stat().st_mode & 0o777 == 0o600


def test_damage_and_torn_rows_lose_what_they_hit_and_no_more(tmp_path):
    contents = Contents(tmp_path)
    first, second = contents.put(b"x" * 1000), contents.put(os.urandom(1000))
    contents.flush()
    with open(tmp_path / "content.index", "ab") as index:
        index.write(b"half a row")
    with open(tmp_path / "content.pack", "r+b") as pack:
        pack.seek(-1, 2)
        pack.write(b"!")
    again = Contents(tmp_path)
    third = again.put(b"third")
    again.flush()
    fresh = Contents(tmp_path)
    assert (fresh.get(first), fresh.get(second), fresh.get(third)) == (b"x" * 1000, None, b"third")


def test_the_log_reads_back_what_was_written_and_tells_of_damage(tmp_path):
    path = tmp_path / "s.jsonl"
    log = ChangeLog(path)
    state = State(Kind.FILE, 0o644, digest_of(b"x"))
    log.taken(Entry("c1", before={"/a": ABSENT}))
    log.changed("c1", [Change("/a", ABSENT, state)])
    with path.open("ab") as file:
        file.write(b'{"taken":"c2","who')
    log.taken(Entry("c3", whole=True, left_out={"/b": "ignored by git"}))
    assert read_log(path) == (
        Entry("c1", before={"/a": ABSENT}, changes=(Change("/a", ABSENT, state),), closed=3),
        Entry("", damage=f"line 4 of {path} cannot be read"),
        Entry("c3", whole=True, left_out={"/b": "ignored by git"}),
    )
    fresh = ChangeLog(path, fresh=True)
    fresh.taken(Entry("c9"))
    assert [entry.call for entry in read_log(path)] == ["c9"]


def test_the_store_is_no_others_business(tmp_path):
    """It holds what the files hold, secrets included."""
    history = History(tmp_path)
    trio.run(history.call, "c", lambda: history.write("a", "x"))
    assert {path.stat().st_mode & 0o077 for path in (history.store, *history.store.iterdir())} == {0}
