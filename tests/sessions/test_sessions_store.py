"""Folders, ids and locks of the session store."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from session_events import call, open_turn, stamped, text_run

from novacode.errors import SessionError
from novacode.sessions.fold import load
from novacode.sessions.journal import MemoryJournal
from novacode.sessions.record import read_lines
from novacode.sessions.store import Store, project_key, session_id
from novacode.values import serial
from novacode.values.events import ApprovalAsked, ApprovalClosed, RunEnded, RunStatus
from novacode.values.ids import ApprovalId, CallId, SessionId
from novacode.values.request import Usage
from novacode.values.results import Outcome

NOW = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC


class Chance:
    """Bytes that count up, so that ids are known."""

    def __init__(self):
        self.asked = 0

    def __call__(self, count):
        self.asked += 1
        return self.asked.to_bytes(count, "big")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "home", lambda: NOW, Chance())


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def write(session, events, **how):
    for one in stamped(events, **how):
        session.journal.append(one)
    session.close()


def test_an_id_says_when_and_keeps_apart():
    assert session_id(NOW, b"\x01\xab\xff") == "s-20260921-141320-01abff"


def test_a_new_session_is_a_file_below_its_project(store, work, tmp_path):
    session = store.create(work)
    assert session.id == "s-20260921-141320-000001"
    assert session.path == tmp_path / "home" / "sessions" / project_key(work) / f"{session.id}.jsonl"
    assert session.notices == ()
    session.close()
    assert sorted(path.suffix for path in session.path.parent.iterdir()) == [".jsonl"]


def test_a_fixed_id_begins_anew_each_time(store, work):
    write(store.replace("s-fixed", work), text_run(1))
    session = store.replace("s-fixed", work)
    assert store.find("s-fixed").read_bytes().count(b"\n") == 1
    beside = store.replace("s-fixed", work)
    assert (beside.id, beside.path) == ("s-fixed", None)
    assert beside.notices == ("this session is not kept: another process is writing s-fixed here",)
    write(session, text_run(2))
    again = store.open("s-fixed")
    assert [item.text for item in again.loaded.history.items[:1]] == ["prompt 2"]
    again.close()


def test_projects_of_one_name_are_told_apart(tmp_path):
    one, two = tmp_path / "a" / "app", tmp_path / "b" / "app"
    keys = {project_key(one), project_key(two), project_key(Path("/"))}
    assert len(keys) == 3
    assert project_key(tmp_path / "x" / ".." / "a" / "app") == project_key(one)


def test_a_session_is_gone_on_with(store, work):
    write(store.create(work), text_run(1))
    session = store.open(store.latest(work))
    assert (len(session.loaded.history.items), session.loaded.runs, session.loaded.last_seq) == (2, 1, 5)
    write(session, text_run(2), first=6, run="s-x-r2")
    again = store.open("s-20260921")
    assert len(again.loaded.history.items) == 4
    again.close()


def test_after_a_crash_the_history_is_paired(store, work):
    write(store.create(work), open_turn())
    session = store.open(store.latest(work))
    assert len(session.loaded.history.items[-1].results) == 3
    assert session.notices == ("2 calls had no result when NovaCode ended: c2, c3",)
    session.close()


def test_latest_is_the_one_written_last_and_of_this_folder(store, work, tmp_path):
    first, second = store.create(work), store.create(work)
    elsewhere = store.create(tmp_path)
    for session, age in ((first, 30), (second, 60), (elsewhere, 1)):
        session.close()
        os.utime(session.path, (NOW - age, NOW - age))
    assert store.latest(work) == first.id
    assert store.latest(tmp_path / "never") is None


def test_br_129_a_second_writer_in_this_process_is_refused_with_the_pid(store, work):
    session = store.create(work)
    with pytest.raises(SessionError, match=rf"in use by the process {os.getpid()}"):
        store.open(session.id)
    session.close()
    store.open(session.id).close()


HOLDER = """
import sys
from pathlib import Path
from novacode.sessions.store import Store
session = Store(Path(sys.argv[1]), lambda: 0.0).open(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


def test_br_129_a_killed_holder_leaves_nothing_to_clean_up(store, work, tmp_path):
    session = store.create(work)
    session.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "home"), session.id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SessionError, match=rf"in use by the process {holder.pid}"):
            store.open(session.id)
        holder.kill()
        holder.wait()
    store.open(session.id).close()


@pytest.mark.parametrize("wanted", ["", "../../etc/passwd", "s-none", "-rf", "a" * 500])
def test_ids_that_name_no_session_are_refused(store, work, wanted):
    store.create(work).close()
    with pytest.raises(SessionError, match="novacode sessions list"):
        store.open(wanted)


def test_an_ambiguous_beginning_is_refused(store, work):
    store.create(work).close()
    store.create(work).close()
    with pytest.raises(SessionError, match="could be any of s-20260921-141320-000001, s-20260921-141320-000002"):
        store.open("s-")


def test_of_sessions_with_one_id_the_one_of_this_folder_is_meant(store, work, tmp_path):
    """Scripted runs have a fixed id in every folder; `-c` after two of them could not tell which was meant."""
    other = tmp_path / "other"
    other.mkdir()
    made = {folder: store.replace(SessionId("s-fixed"), folder) for folder in (work, other)}
    for session in made.values():
        session.close()
    assert {folder: store.find("s-fixed", folder) for folder in made} == {folder: made[folder].path for folder in made}
    assert store.find("s-fi", work) == made[work].path
    opened = store.open("s-fixed", other)
    opened.close()
    assert opened.path == made[other].path
    with pytest.raises(SessionError, match="'s-fixed' means 2 sessions, none of them of this folder"):
        store.find("s-fixed", tmp_path)


def test_a_home_that_cannot_be_written_is_no_failure(tmp_path, work):
    (tmp_path / "home").write_text("a file where the folder should be")
    session = Store(tmp_path / "home", lambda: NOW, Chance()).create(work)
    assert isinstance(session.journal, MemoryJournal)
    assert session.path is None
    assert "this session is not kept" in session.notices[0]
    session.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_session_that_cannot_be_written_is_read(store, work):
    session = store.create(work)
    write(session, text_run(1))
    session.path.chmod(0o400)
    again = store.open(session.id)
    assert (len(again.loaded.history.items), again.path) == (2, None)
    assert "what follows is not kept" in again.notices[0]


def test_a_fork_starts_equal_and_leaves_the_original_alone(store, work):
    original = store.create(work)
    write(original, text_run(1))
    before = original.path.read_bytes()
    fork = store.fork(original.id, work)
    assert fork.id != original.id
    write(fork, text_run(2), first=6, run="s-x-r2")
    assert original.path.read_bytes() == before
    again = store.open(fork.id)
    assert (len(again.loaded.history.items), again.loaded.header.session_id) == (4, fork.id)
    again.close()


def test_br_127_the_list_shows_title_and_true_last_time(store, work):
    session = store.create(work)
    write(session, text_run(1))
    session.path.write_bytes(session.path.read_bytes() + b'{"torn')
    os.utime(session.path, (1.0, 1.0))
    (summary,) = store.list(work)
    assert (summary.id, summary.title, summary.created, summary.last) == (session.id, "prompt 1", NOW, 2e9 + 5)
    assert summary.cwd == str(work)


def test_listing_passes_over_what_is_no_session(store, work):
    session = store.create(work)
    session.close()
    (session.path.parent / "other.jsonl").write_text('{"format":"other"}\n')
    (session.path.parent / "gone.jsonl").symlink_to("nowhere")
    assert [one.id for one in store.list()] == [session.id]


def test_the_list_does_not_grow_with_the_files(store, work):
    session = store.create(work)
    session.close()
    with session.path.open("ab") as file:
        file.truncate(2_000_000_000)  # sparse: reading it would take seconds and gigabytes
    (summary,) = store.list(work)
    assert summary.size == 2_000_000_000


def test_opening_after_a_crash_writes_the_repair_down_once(store, work):
    write(store.create(work), open_turn())
    path = store.find(store.latest(work))
    crashed = path.read_bytes()
    viewed = load(path)
    assert path.read_bytes() == crashed, "looking writes nothing"
    session = store.open(store.latest(work))
    session.close()
    repaired = path.read_bytes()
    assert repaired.startswith(crashed)
    assert session.loaded.history == viewed.history
    again = store.open(store.latest(work))
    again.close()
    assert path.read_bytes() == repaired, "opening a second time adds nothing"
    assert (again.notices, again.loaded.interrupted, again.loaded.history) == ((), False, viewed.history)
    assert again.loaded.last_seq == session.loaded.last_seq


def test_the_repair_is_events_of_the_run_that_was_cut_off(store, work):
    asked = ApprovalAsked(ApprovalId("s-x-r1-a1"), call("c3", 3), "a question nobody answered")
    write(store.create(work), [*open_turn(), asked])
    store.open(store.latest(work)).close()
    with store.find(store.latest(work)).open("rb") as file:
        added = [serial.load_stamped(record.data) for record in list(read_lines(file))[11:]]
    assert [one.seq for one in added] == [11, 12, 13, 14, 15, 16]
    assert {(one.run_id, one.at) for one in added} == {("s-x-r1", 2e9 + 10)}
    lost, skipped, closed, committed, notice, ended = (one.event for one in added)
    assert [(one.result.call_id, one.result.outcome, one.result.text.split(":")[0]) for one in (lost, skipped)] == [
        ("c2", Outcome.LOST, "Started, outcome unknown"),
        ("c3", Outcome.SKIPPED, "Never started"),
    ]
    assert closed == ApprovalClosed(
        ApprovalId("s-x-r1-a1"), CallId("c3"), "shell", "abandoned", "the end of the process"
    )
    assert [one.outcome for one in committed.exchange.results] == [Outcome.OK, Outcome.LOST, Outcome.SKIPPED]
    assert "c2, c3" in notice.text
    assert ended == RunEnded(
        RunStatus.FAILED,
        "crashed",
        "I look.",
        turns=1,
        usage=Usage(0, 0, 0, 0, 0),
        calls={"total": 3, "ok": 1, "lost": 1, "skipped": 1},
    )


@pytest.mark.parametrize("kept", range(6))
def test_a_repair_that_is_cut_off_is_finished_by_the_next(store, work, kept):
    write(store.create(work), open_turn())
    path = store.find(store.latest(work))
    crashed = path.read_bytes()
    store.open(store.latest(work)).close()
    whole = path.read_bytes()[len(crashed) :].splitlines(keepends=True)
    path.write_bytes(crashed + b"".join(whole[:kept]))
    wanted = load(path).history
    store.open(store.latest(work)).close()
    loaded = load(path)
    assert (loaded.history, loaded.interrupted, loaded.notices) == (wanted, False, ())
    records = path.read_bytes()
    assert (records.count(b'"type":"turn_committed"'), records.count(b'"type":"run_ended"')) == (1, 1)
    assert records.count(b'"type":"call_settled"') == 3


def test_a_fork_of_a_crashed_session_is_repaired_and_the_original_is_not(store, work):
    write(store.create(work), open_turn())
    source = store.find(store.latest(work))
    before = source.read_bytes()
    fork = store.fork(source.stem, work)
    fork.close()
    assert source.read_bytes() == before
    assert (load(fork.path).interrupted, len(load(fork.path).history.items[-1].results)) == (False, 3)


def test_a_repair_that_finds_no_room_leaves_the_session_readable(store, work, monkeypatch):
    write(store.create(work), open_turn())
    before = store.find(store.latest(work)).read_bytes()

    def full(fd, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        session = store.open(store.latest(work))
    assert isinstance(session.journal, MemoryJournal)
    assert "No space left on device" in session.notices[-1]
    assert len(session.loaded.history.items[-1].results) == 3
    assert store.find(store.latest(work)).read_bytes() == before


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel lists no locks here")
def test_br_129_the_holder_is_named_through_another_name_of_the_file(store, work):
    session = store.create(work)
    os.link(session.path, session.path.with_name("s-other.jsonl"))
    with pytest.raises(SessionError, match=rf"in use by the process {os.getpid()}"):
        store.open("s-other")
    session.close()
