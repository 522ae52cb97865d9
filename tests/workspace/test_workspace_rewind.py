"""Going back: every kind of change, nothing of a person's lost, and nothing touched that no call has changed."""

import os
import random
import shutil

import pytest
import trio
from doubles.history import EVERYTHING, History, git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novacode.workspace.changes import Change, Entry, read_log
from novacode.workspace.contents import Contents
from novacode.workspace.listing import Bounds
from novacode.workspace.rewind import Item, Verdict, gaps, plan
from novacode.workspace.states import ABSENT, Kind, State


@pytest.fixture
def history(tmp_path):
    return History(tmp_path)


def verdicts(items):
    return {item.path.rpartition("/")[2]: item.verdict for item in items}


async def test_every_kind_of_change_is_taken_back(history):
    """Content, mode, links, binary files, renames, kinds that were swapped, empty folders: the tree is identical."""
    work = history.work
    history.write("changed.txt", "old")
    (work / "binary.bin").write_bytes(bytes(range(256)) * 300)
    (work / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    history.write("moved/from.txt", "m")
    history.write("script.sh", "#!")
    (work / "private").write_text("p")
    (work / "private").chmod(0o600)
    (work / "read-only").write_text("r")
    (work / "read-only").chmod(0o444)
    (work / "link").symlink_to("changed.txt")
    (work / "dangling").symlink_to("nowhere")
    (work / "becomes-folder").write_text("f")
    history.write("becomes-file/x/y.txt", "y")
    (work / "empty").mkdir(mode=0o750)
    (work / "strict").mkdir()
    history.write("strict/in.txt", "in")
    (work / "strict").chmod(0o500)
    before = history.tree()

    def act():
        history.write("changed.txt", "new")
        (work / "binary.bin").write_bytes(b"\0new\xff")
        (work / "crlf.txt").write_bytes(b"a\nb\n")
        (work / "moved/from.txt").rename(work / "to.txt")
        (work / "moved").rmdir()
        (work / "script.sh").chmod(0o755)
        (work / "private").unlink()
        (work / "read-only").unlink()
        (work / "link").unlink()
        (work / "link").symlink_to("elsewhere")
        (work / "dangling").unlink()
        (work / "dangling").write_text("now a file")
        (work / "becomes-folder").unlink()
        history.write("becomes-folder/z.txt", "z")
        shutil.rmtree(work / "becomes-file")
        (work / "becomes-file").write_text("f")
        (work / "empty").rmdir()
        (work / "strict").chmod(0o700)
        history.write("strict/in.txt", "changed")
        (work / "strict").chmod(0o555)
        history.write("deep/er/new.txt", "n")

    await history.call("c1", act)
    after = history.tree()
    report = history.rewind("c1")
    assert report.failed == {}
    assert history.tree() == before
    assert history.rewind("rewind-1").failed == {}
    assert history.tree() == after


async def test_br_168_only_paths_that_calls_have_changed_are_touched(history):
    git(history.work, "init", "-q")
    history.write("a.py", "v1")
    history.write("data/big.bin", "big")
    history.write(".gitignore", ".env\n")
    history.write(".env", "KEY=1")
    await history.call("c1", lambda: history.write("a.py", "v2"))
    history.write("notes.txt", "mine")
    others = {path: (history.work / path).stat() for path in ("data/big.bin", ".env", "notes.txt", ".gitignore")}
    assert [item.path for item in history.rewind("c1").done] == [f"{history.work}/a.py"]
    assert (history.work / "a.py").read_text() == "v1"
    assert {path: (history.work / path).stat() for path in others} == others


async def test_br_169_head_branches_stash_and_index_stay(history):
    work = history.work
    git(work, "init", "-q")
    history.write("a.py", "v1")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "c0")

    def act():
        history.write("a.py", "v2")
        git(work, "commit", "-qam", "c2")

    await history.call("c1", act)
    history.write("staged.txt", "by the person")
    git(work, "add", "staged.txt")
    told = [("rev-parse", "HEAD"), ("log", "--format=%s"), ("branch", "-v"), ("diff", "--cached", "--name-only")]
    before = [git(work, *command) for command in told]
    assert history.rewind("c1").failed == {}
    assert (work / "a.py").read_text() == "v1"
    assert [git(work, *command) for command in told] == before
    assert before[1].split() == ["c2", "c0"]


async def test_br_170_names_that_are_no_text_and_trees_without_a_repository_are_restored(history):
    names = [b"new\nline", b"\xff\xfe", b"-rf", b" "]
    for name in names:
        history.write(os.fsdecode(name), "x")
    before = history.tree()
    await history.call("c1", lambda: [os.unlink(os.fsencode(history.work) + b"/" + name) for name in names])
    assert history.tree() == {}
    assert history.rewind("c1").failed == {}
    assert history.tree() == before


async def test_br_170_nothing_is_deleted_where_nothing_could_be_kept(history, monkeypatch):
    """A content that is missing from the store is a failure of that path; the file stays as it is."""
    history.write("a.txt", "v1")
    history.write("b.txt", "v1")
    await history.call("c1", lambda: (history.write("a.txt", "v2"), history.write("b.txt", "w2 longer")))
    real = Contents.get
    monkeypatch.setattr(
        Contents, "get", lambda self, digest: None if real(self, digest) == b"v1" else real(self, digest)
    )
    report = history.rewind("c1")
    assert {path.rpartition("/")[2] for path in report.failed} == {"a.txt", "b.txt"}
    assert history.tree()["a.txt"][1] == b"v2"


async def test_br_170_a_store_that_cannot_be_written_stops_the_rewind_before_it_begins(history, monkeypatch):
    history.write("a.txt", "v1")
    await history.call("c1", lambda: history.write("a.txt", "v2"))

    def full(self, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Contents, "flush", full)
    with pytest.raises(OSError, match="No space"):
        history.rewind("c1")
    assert (history.work / "a.txt").read_text() == "v2"


async def test_br_171_what_a_person_has_changed_since_is_not_overwritten(history):
    history.write("a.py", "v1")
    await history.call("c1", lambda: history.write("a.py", "v2"), [history.work / "a.py"])
    history.write("a.py", "v3")
    (item,) = history.plan("c1")
    assert (item.verdict, item.why) == (Verdict.CONFLICT, "it is not what c1 left")
    history.rewind("c1")
    assert (history.work / "a.py").read_text() == "v3"
    history.rewind("c1", force=True)
    assert (history.work / "a.py").read_text() == "v1"
    history.rewind("rewind-2")
    assert (history.work / "a.py").read_text() == "v3"


async def test_br_171_a_created_file_that_a_person_has_edited_stays(history):
    await history.call("c1", lambda: history.write("new.py", "agent"), [history.work / "new.py"])
    history.write("new.py", "person")
    history.rewind("c1")
    assert (history.work / "new.py").read_text() == "person"


async def test_br_171_one_of_two_files_was_edited(history):
    """The other is restored; the report says which stays and why."""
    history.write("a.py", "v1")
    history.write("b.py", "v1")
    await history.call("c1", lambda: (history.write("a.py", "v2"), history.write("b.py", "v2")))
    history.write("b.py", "person")
    assert verdicts(history.plan("c1")) == {"a.py": Verdict.RESTORE, "b.py": Verdict.CONFLICT}
    history.rewind("c1")
    assert ((history.work / "a.py").read_text(), (history.work / "b.py").read_text()) == ("v1", "person")


async def test_a_persons_change_between_two_calls_is_not_lost_in_between(history):
    """Going back over it would take it away; going back to after it does not."""
    history.write("a.py", "v1")
    await history.call("c1", lambda: history.write("a.py", "v2"))
    history.write("a.py", "v3 by the person")
    await history.call("c2", lambda: history.write("a.py", "v4"))
    (item,) = history.plan("c1")
    assert (item.verdict, item.why) == (Verdict.CONFLICT, "somebody else changed it between c1 and c2")
    history.rewind("c2")
    assert (history.work / "a.py").read_text() == "v3 by the person"


@pytest.mark.parametrize("how", ["delete", "chmod", "link", "folder"])
async def test_br_171_every_way_of_changing_a_file_is_a_change(history, how):
    path = history.work / "a.py"
    history.write("a.py", "v1")
    await history.call("c1", lambda: history.write("a.py", "v2"))
    if how == "chmod":
        path.chmod(0o600)
    else:
        path.unlink()
    if how == "link":
        path.symlink_to("b.py")
    if how == "folder":
        path.mkdir()
    before = history.tree()
    assert verdicts(history.plan("c1")) == {"a.py": Verdict.CONFLICT}
    history.rewind("c1")
    assert history.tree() == before


async def test_br_172_what_calls_have_made_is_removed_with_the_folders_they_made_for_it(history):
    work = history.work
    (work / "old.txt").write_bytes(b"a\r\n")
    before = history.tree()
    await history.call("c1", lambda: history.write("new1.txt", "1"), [work / "new1.txt"])
    await history.call("c2", lambda: history.write("sub/new2.txt", "2"), [work / "sub/new2.txt"])
    await history.call("c3", lambda: (history.write("new3.txt", "x"), (work / "old.txt").write_bytes(b"b\r\n")))
    report = history.rewind("c1")
    assert (report.failed, report.kept_folders) == ({}, ())
    assert history.tree() == before


async def test_a_folder_in_which_a_person_put_something_stays(history):
    await history.call("c1", lambda: history.write("sub/agent.txt", "x"))
    history.write("sub/person.txt", "mine")
    report = history.rewind("c1")
    assert report.kept_folders == (f"{history.work}/sub",)
    assert {path: content for path, (_, content) in history.tree().items()} == {"sub": b"", "sub/person.txt": b"mine"}


async def test_br_172_what_was_not_covered_is_named_and_left(history):
    history.bounds = Bounds(max_file=10)
    history.write("big.bin", "x" * 11)
    await history.call(
        "c1", lambda: (history.write("big.bin", "y" * 11), history.write("made.bin", "z" * 64_000_000 * 2))
    )
    reasons = {item.path.rpartition("/")[2]: (item.verdict, item.why) for item in history.plan("c1")}
    assert reasons == {
        "big.bin": (Verdict.UNKEPT, "what it was is not kept: larger than 1e-05 MB"),
        "made.bin": (Verdict.UNKEPT, "what it is could not be kept: larger than 67.1089 MB"),
    }
    before = history.tree()
    history.rewind("c1", force=True)
    assert history.tree() == before


async def test_nothing_is_written_through_a_link_that_took_a_folders_place(history):
    outside = history.root / "outside"
    outside.mkdir()
    history.write("sub/a.txt", "v1")
    await history.call("c1", lambda: (history.work / "sub/a.txt").unlink())
    (history.work / "sub").rmdir()
    (history.work / "sub").symlink_to(outside)
    report = history.rewind("c1", force=True)
    assert report.failed == {f"{history.work}/sub/a.txt": "a folder on the way to it is a link now"}
    assert list(outside.iterdir()) == []


async def test_a_file_that_changes_between_plan_and_rewind_stays(history, monkeypatch):
    history.write("a.txt", "v1")
    await history.call("c1", lambda: history.write("a.txt", "v2"))
    plan_before = history.plan
    stale = plan_before("c1")
    history.write("a.txt", "person, just now")
    monkeypatch.setattr(history, "plan", lambda since: stale)
    assert history.rewind("c1").failed == {f"{history.work}/a.txt": "it was changed just now"}
    assert (history.work / "a.txt").read_text() == "person, just now"


async def test_a_file_tools_call_that_was_cut_off_is_a_question_and_a_command_a_gap(history):
    """Whoever died in between cannot say what was theirs."""
    history.write("a.txt", "v1")
    await history.files.take("c1", [history.work / "a.txt"])
    history.write("a.txt", "whose?")
    await history.files.take("c2", [EVERYTHING])
    assert verdicts(history.plan("c1")) == {"a.txt": Verdict.CONFLICT}
    assert gaps(read_log(history.log)) == ("c2 was cut off, and what it had changed by then is not known",)


def test_a_plan_is_made_of_the_first_and_the_last_state_alone():
    one, two, three = (State(Kind.FILE, 0o644, f"{n:040x}") for n in (1, 2, 3))
    entries = [
        Entry("c1", changes=(Change("/a", one, two), Change("/b", ABSENT, one)), closed=2),
        Entry("c2", changes=(Change("/a", two, three), Change("/b", one, ABSENT)), closed=4),
    ]
    now = {"/a": three}
    assert plan(entries, lambda path: now.get(path, ABSENT)) == (
        Item("/a", three, one, Verdict.RESTORE, ("c1", "c2")),
        Item("/b", ABSENT, ABSENT, Verdict.SAME, ("c1", "c2")),
    )


# --- random histories -------------------------------------------------------------------------------------------


class Game:
    """A tree, somebody who changes it, calls that change it, and rewinds; `own` is what the person wrote last."""

    def __init__(self, history, files, chance):
        self.history = history
        self.chance = chance
        self.names = [f"d{n % 7}/e{n % 3}/f{n}.txt" for n in range(files)]
        self.number = 0
        for name in self.names:
            history.write(name, f"{name} at first\n")
        self.own = {}
        self.before = {}

    def change(self, tag):
        """Make one random change somewhere; return the path and what it is now, `None` where it is gone."""
        self.number += 1
        path = self.history.work / self.chance.choice(self.names)
        if path.is_symlink() or path.is_file():
            how = self.chance.choice(["write", "binary", "delete", "chmod", "link", "rename"])
        else:
            how = "write"
        try:
            self._do(how, path, f"{tag} {self.number}")
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            return None
        return path

    def _do(self, how, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        if how == "rename":
            target = self.history.work / self.chance.choice(self.names)
            if not target.is_dir() and target.parent.is_dir():
                path.rename(target)
            return
        if how == "chmod" and not path.is_symlink():
            path.chmod(self.chance.choice([0o600, 0o644, 0o755, 0o444]))
            return
        if path.is_symlink() or path.exists():
            path.unlink()
        if how == "link":
            path.symlink_to(text)
        elif how == "binary":
            path.write_bytes(bytes([0, 255, 10]) + text.encode())
        elif how != "delete":
            path.write_text(text)
        if how == "delete" and not any(path.parent.iterdir()):
            path.parent.rmdir()

    def person(self):
        """Write a file that is then the person's own, whatever calls have done to it."""
        path = self.history.work / self.chance.choice(self.names)
        self.number += 1
        try:
            self._do("write", path, f"person {self.number}")
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            return
        self.own[path] = f"person {self.number}"

    async def call(self):
        """A command that changes a few files; what it overwrites of the person's is its own doing."""
        name = f"c{self.number}"
        self.number += 1
        self.before[name] = self.history.tree()
        await self.history.call(name, lambda: [self.change(name) for _ in range(self.chance.randint(1, 5))])
        self.own = {path: text for path, text in self.own.items() if _read(path) == text}

    def rewind(self):
        """Go back somewhere: what the person wrote is there afterwards, and undoing it gives the tree before it."""
        since = self.chance.choice(list(self.before))
        before, items = self.history.tree(), self.history.plan(since)
        report = self.history.rewind(since)
        assert {path: _read(path) for path in self.own} == self.own
        touched = {item.path for item in items if item.verdict is Verdict.RESTORE}
        after = self.history.tree()
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        assert {f"{self.history.work}/{path}" for path in changed} <= touched
        if all(item.verdict in (Verdict.SAME, Verdict.RESTORE) for item in items) and not report.failed:
            then = self.before[since]
            assert {path: after.get(path) for path in touched} == {path: then.get(path) for path in touched}
        self.history.rewind(report.rewind)
        assert self.history.tree() == before
        if self.chance.random() < 0.5:
            self.history.rewind(since)
            self.own = {path: text for path, text in self.own.items() if _read(path) == text}


def _read(path):
    try:
        return None if path.is_symlink() else path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


async def play(root, files, moves, seed):
    game = Game(History(root), files, random.Random(seed))
    await game.call()
    for move in moves:
        if move == "person":
            game.person()
        elif move == "call":
            await game.call()
        else:
            game.rewind()


MOVES = st.lists(st.sampled_from(["person", "call", "rewind"]), min_size=1, max_size=14)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES, seed=st.integers(0, 2**32))
def test_random_histories_lose_nothing_of_the_persons(tmp_path_factory, moves, seed):
    trio.run(play, tmp_path_factory.mktemp("game"), 12, moves, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(8))
def test_random_histories_of_a_tree_of_5000_files(tmp_path, seed):
    chance = random.Random(seed)
    moves = chance.choices(["person", "call", "rewind"], k=30)
    trio.run(play, tmp_path, 5000, moves, seed)


@pytest.mark.parametrize("seed", range(20))
def test_without_a_person_the_first_rewind_gives_the_first_tree(tmp_path, seed):
    """Whatever calls and rewinds there were: content, mode, links and folders are identical to the start."""

    async def main():
        game = Game(History(tmp_path), 10, random.Random(seed))
        for _ in range(6):
            await game.call()
            if game.chance.random() < 0.4:
                game.history.rewind(game.chance.choice(list(game.before)))
        first = next(iter(game.before))
        report = game.history.rewind(first)
        assert report.failed == {}
        assert game.history.tree() == game.before[first]

    trio.run(main)
