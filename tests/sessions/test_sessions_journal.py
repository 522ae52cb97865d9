"""The journal: every record whole and on its own line, whatever the file or the disk does."""

import errno
import os
import subprocess
import sys
import threading
import time

import pytest
import trio
from session_events import stamped, text_run

from novacode.errors import SessionError
from novacode.grace import Grace
from novacode.sessions import journal as journal_module
from novacode.sessions.fold import load
from novacode.sessions.journal import Journal, MemoryJournal
from novacode.sessions.record import Header, encode
from novacode.values.events import TextDelta
from novacode.values.ids import SessionId

HEADER = Header(SessionId("s-x"), "/w", 1.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.jsonl"


def append_all(path, events, **how):
    journal = Journal(path, HEADER)
    for one in stamped(events, **how):
        journal.append(one)
    journal.close()
    return journal


def test_what_is_appended_is_in_the_file_at_once(path):
    journal = Journal(path, HEADER)
    (first, *_) = stamped(text_run(1))
    journal.append(first)
    assert path.read_bytes() == encode(HEADER) + encode(first)
    journal.close()


def test_deltas_are_not_written(path):
    append_all(path, [TextDelta(0, "x")])
    assert path.read_bytes() == encode(HEADER)


def test_the_file_is_for_its_owner_alone(path):
    append_all(path, [])
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "torn", [b'{"type":"user","text":"hal', b'{"seq":1,"run_id":"s-x-r1","at":2.0,"ty', b"\xff\xfe"]
)
def test_br_128_a_torn_record_is_cut_off_before_the_next(path, torn):
    append_all(path, text_run(1))
    for round_ in (2, 3):
        path.write_bytes(path.read_bytes() + torn)
        journal = append_all(path, text_run(round_), first=10 * round_, run=f"s-x-r{round_}")
        assert journal.mended == f"its last record was cut off by a crash; {len(torn)} bytes were removed"
    loaded = load(path)
    assert [item.text for item in loaded.history.items[::2]] == ["prompt 1", "prompt 2", "prompt 3"]
    assert loaded.notices == ()


def test_br_128_a_whole_record_without_line_end_is_kept(path):
    append_all(path, text_run(1))
    path.write_bytes(path.read_bytes()[:-1])
    journal = append_all(path, text_run(2), first=6, run="s-x-r2")
    assert journal.mended == "its last record had no line end; it has one now"
    loaded = load(path)
    assert (len(loaded.history.items), loaded.notices, loaded.interrupted) == (4, (), False)


def test_a_tail_longer_than_a_block_is_found(path):
    append_all(path, text_run(1))
    good = path.read_bytes()
    path.write_bytes(good + b'{"x":"' + b"y" * 200_000)
    append_all(path, [])
    assert path.read_bytes() == good


def test_a_crash_while_the_header_was_written_leaves_a_new_file(path):
    path.write_bytes(encode(HEADER)[:10])
    append_all(path, [])
    assert path.read_bytes() == encode(HEADER)


def test_a_file_of_another_kind_is_not_touched(path):
    path.write_bytes(b"my notes, without a line end")
    with pytest.raises(SessionError, match="Nothing was changed"):
        Journal(path, HEADER)
    assert path.read_bytes() == b"my notes, without a line end"


def test_short_writes_are_finished(path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:7])))
    append_all(path, text_run(1))
    assert len(load(path).history.items) == 2


def test_a_full_disk_is_told_once_and_leaves_whole_records(path, monkeypatch):
    journal = Journal(path, HEADER)
    first, second, third, *_ = stamped(text_run(1))
    journal.append(first)
    real, calls = os.write, []

    def nearly_full(fd, data):
        calls.append(len(data))
        if len(calls) == 1:
            return real(fd, bytes(data[:5]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(SessionError, match=r"No space left on device.*up to event 1"):
        journal.append(second)
    journal.append(third)
    assert isinstance(journal.failed, SessionError)
    assert path.read_bytes() == encode(HEADER) + encode(first)
    journal.close()


async def test_flush_reaches_the_disk_also_when_cancelled(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = Journal(path, HEADER)
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await journal.flush() is True
    assert len(synced) == 1
    assert await journal.flush() is True
    assert len(synced) == 1, "nothing new was written, so nothing is to be brought to the disk"
    journal.close()


async def test_a_disk_that_fails_is_said(path, monkeypatch):
    def fail(fd):
        raise OSError(errno.EIO, "Input/output error")

    journal = Journal(path, HEADER)
    monkeypatch.setattr(os, "fsync", fail)
    assert await journal.flush() is False
    assert "Input/output error" in str(journal.failed)
    journal.close()


def test_one_writer_at_a_time_also_through_a_link(path, tmp_path):
    journal = Journal(path, HEADER)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    hard = tmp_path / "hard.jsonl"
    os.link(path, hard)
    for other in (path, link, hard):
        with pytest.raises(BlockingIOError):
            Journal(other, HEADER)
    journal.close()
    Journal(link, HEADER).close()


async def test_memory_has_the_same_interface():
    journal = MemoryJournal()
    for one in stamped([*text_run(1), TextDelta(0, "x")]):
        journal.append(one)
    assert (len(journal.records), await journal.flush(), journal.failed) == (5, True, None)
    journal.close()


WRITER = """
import sys
from pathlib import Path
from novacode.sessions.journal import Journal
from novacode.sessions.record import Header
from novacode.values.events import RunBegan, Stamped
from novacode.values.parts import User
journal = Journal(Path(sys.argv[1]), Header("s-x", "/w", 1.0))
seq = 0
print("ready", flush=True)
while True:
    seq += 1
    journal.append(Stamped(seq, f"s-x-r{seq}", float(seq), RunBegan(User.said("z" * 5000))))
"""


@pytest.mark.slow
def test_br_128_killed_in_the_middle_again_and_again(path):
    """A writer that is killed with SIGKILL at some instant, four times: all whole records are there each time."""
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(0.05)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        before = load(path)
        Journal(path, HEADER).close()
        after = load(path)
        assert after.history == before.history
        assert after.notices == ()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_vanishes_is_told_at_the_next_record(path, how):
    journal = Journal(path, HEADER)
    first, second, *_ = stamped(text_run(1))
    journal.append(first)
    if how == "removed":
        path.unlink()
    else:
        other = path.with_name("other")
        other.write_bytes(b"")
        other.rename(path)
    with pytest.raises(SessionError, match="removed or replaced"):
        journal.append(second)
    journal.close()


async def test_a_disk_that_does_not_answer_is_asked_again(path, monkeypatch):
    answers = threading.Event()
    asked = []

    def slow(fd):
        asked.append(fd)
        if len(asked) == 1:
            answers.wait(10)

    monkeypatch.setattr(os, "fsync", slow)
    monkeypatch.setattr(journal_module, "DEFAULT", Grace(journal=0.05))
    journal = Journal(path, HEADER)
    assert await journal.flush() is False
    assert await journal.flush() is True
    assert len(asked) == 2
    answers.set()
    journal.close()
