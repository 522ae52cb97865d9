"""A damaged file: cut anywhere it is whole again after repair; a changed bit is named by its line."""

from __future__ import annotations

import random
import zlib

import pytest
from session_events import call, open_turn, result, stamped, text_run

from novacode.errors import SessionError
from novacode.sessions.check import Problem, check_session, is_session
from novacode.sessions.fold import load
from novacode.sessions.record import Header, encode
from novacode.sessions.store import Store
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallMoved,
    CallReady,
    CallSettled,
    Compacted,
    Phase,
    RunBegan,
    RunEnded,
    RunStatus,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.ids import ApprovalId, CallId, SessionId
from novacode.values.parts import Assistant, Text, User

HEADER = Header(SessionId("s-x"), "/w", 1.0)


def sealed(line):
    """Put the checksum on a line that no encoder of ours would write."""
    body = line.rstrip(b"\n")[:-1]
    return b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def whole_session():
    """Four runs: text, calls with an approval, text with a compaction, and one that a crash has cut off."""
    one, two = call("k1", 1), call("k2", 2)
    middle = [
        RunBegan(User.said("go"), "demo"),
        CallReady(1, one),
        CallReady(2, two),
        ApprovalAsked(ApprovalId("s-x-r2-a1"), two, "it writes"),
        CallMoved(one.id, "shell", Phase.RUNNING),
        ApprovalClosed(ApprovalId("s-x-r2-a1"), two.id, "shell", "allow", "a person"),
        CallMoved(two.id, "shell", Phase.RUNNING),
        CallSettled(result(two)),
        CallSettled(result(one)),
        TurnCommitted(Exchange(Assistant((Text("I look."), one, two), "demo"), (result(one), result(two)))),
        RunEnded(RunStatus.COMPLETED, "completed"),
    ]
    began, *rest = text_run(3)
    shortened = [began, Compacted(1, "What was done.", 9, {CallId("k1"): 500}, 9, 5), *rest]
    lines, seq = [encode(HEADER)], 1
    for number, events in enumerate((text_run(1), middle, shortened, open_turn()), start=1):
        lines += [encode(stamp) for stamp in stamped(events, first=seq, run=f"s-x-r{number}")]
        seq += len(events)
    return b"".join(lines)


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "sessions" / "w"
    folder.mkdir(parents=True)
    return folder / "s-x.jsonl"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, lambda: 1.9e9)


def problems_of_cut(store, file, data, length):
    """Cut the file to `length` bytes, repair it, and yield what is wrong then."""
    file.write_bytes(data[:length])
    store.open_file(file).close()
    once = file.read_bytes()
    whole = data[:length].rpartition(b"\n")[0]
    if not once.startswith(whole):
        yield "whole lines were lost"
    yield from (str(one) for one in check_session(file).problems)
    store.open_file(file).close()
    if file.read_bytes() != once:
        yield "a second repair changed something"


def cut_everywhere(store, file, step):
    data = whole_session()
    first = max(len(encode(HEADER)), len(data) - 4096)
    found = {n: list(problems_of_cut(store, file, data, n)) for n in range(first, len(data) + 1, step)}
    return {length: problems for length, problems in found.items() if problems}


def test_cut_at_some_bytes_of_the_last_4_kb_it_is_whole_after_repair(store, file):
    assert cut_everywhere(store, file, 23) == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_cut_at_every_byte_of_the_last_4_kb_it_is_whole_after_repair(store, file):
    assert cut_everywhere(store, file, 1) == {}


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_cut_inside_the_header_it_is_an_empty_session_again(store, file, length):
    """Nothing was acknowledged yet; the name of the file says which session it is."""
    file.write_bytes(encode(HEADER)[:length])
    session = store.open_file(file)
    session.close()
    assert (session.id, session.loaded.history.items) == ("s-x", ())
    assert check_session(file).problems == ()
    assert load(file).header == Header(SessionId("s-x"), "", 1.9e9)


def flip(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def judged_flip(store, file, data, bit):
    """Change one bit, repair, check; return what is wrong with the outcome."""
    line = data.count(b"\n", 0, bit // 8) + 1
    file.write_bytes(flip(data, bit))
    try:
        store.open_file(file).close()
    except SessionError as error:
        return f"it cannot be opened: {error}"
    report = check_session(file)
    if bit // 8 == len(data) - 1:  # the last line end, which can be mended
        return "" if not report.problems and file.read_bytes().startswith(data) else f"it is not mended: {report}"
    # A changed line end makes two lines one, or one two: the damage is told at the first of them.
    named = {f"line {line}", f"line {line - 1}"} if data[bit // 8 : bit // 8 + 1] == b"\n" else {f"line {line}"}
    if not named & {problem.place for problem in report.problems}:
        return f"line {line} is not named: {report.problems}"
    known = {item.text for item in load(file).history.items if isinstance(item, User)}
    others = {"prompt 1", "go", "prompt 3"} - known
    return f"more than the damaged line is lost: {others}" if len(others) > 2 else ""


def test_a_changed_bit_is_named(store, file):
    data = whole_session()
    chance = random.Random(7)
    last = range(len(data) * 8 - 30 * 8, len(data) * 8)
    for bit in (*last, *(chance.randrange(len(data) * 8) for _ in range(200))):
        assert judged_flip(store, file, data, bit) == "", f"bit {bit}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_bit_changed_anywhere_is_named(store, file):
    data = whole_session()
    found = {bit: judged_flip(store, file, data, bit) for bit in range(0, len(data) * 8, 3)}
    assert {bit: said for bit, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ev: [*ev[:4], ev[3], *ev[4:]], "call c1 (shell) has the id of the call at line 5"),
        (lambda ev: [*ev, CallSettled(result(call("c9", 9)))], "call c9 (shell), which was never made"),
        (lambda ev: [*ev, ev[-1]], "call c1 (shell) has a second result"),
        (lambda ev: [*ev, CallMoved(CallId("c9"), "shell", Phase.RUNNING)], "call c9 (shell) moved and was never made"),
        (
            lambda ev: [*ev, TurnCommitted(Exchange(Assistant((call("c2", 2),)), (result(call("c2", 2)),)))],
            "c2 (shell) is in the history and was never settled",
        ),
        (lambda ev: ev, "has no end, and 3 calls without a committed result: c1, c2, c3"),
    ],
)
def test_what_does_not_pair_is_told_by_line(file, change, words):
    file.write_bytes(encode(HEADER) + b"".join(map(encode, stamped(change(open_turn())))))
    report = check_session(file)
    assert any(words in problem.text and problem.place.startswith("line ") for problem in report.problems), report


def test_events_out_of_order_are_told(file):
    lines = [encode(one) for one in stamped(text_run(1))]
    file.write_bytes(b"".join([encode(HEADER), lines[0], lines[2], lines[1], *lines[3:]]))
    assert check_session(file).problems == (Problem("line 4", "event 2 comes after event 3"),)


def test_an_exchange_that_is_not_paired_is_told_with_its_reason(file):
    lines = [encode(one) for one in stamped(text_run(1))]
    unpaired = b'{"seq":9,"run_id":"s-x-r1","at":3.0,"type":"turn_committed","exchange":{"type":"exchange","message":'
    unpaired += b'{"parts":[{"type":"tool_call","id":"c","index":1,"name":"shell","arguments":{}}]}}}\n'
    file.write_bytes(b"".join([*lines[:-1], sealed(unpaired)]))
    problem = check_session(file).problems[0]
    assert problem.place == "line 5"
    assert "PairingError: results must answer the calls one to one" in problem.text


def test_what_a_newer_version_wrote_is_a_note_and_no_damage(file):
    lines = [encode(one) for one in stamped(text_run(1))]
    file.write_bytes(b"".join([*lines[:2], sealed(b'{"type":"telepathy"}\n'), *lines[2:]]))
    report = check_session(file)
    assert (report.problems, len(report.notes)) == ((), 1)


def test_sessions_are_told_from_other_files(tmp_path, file):
    file.write_bytes(whole_session())
    other = tmp_path / "messages.jsonl"
    other.write_text('{"role":"user","content":"hi"}\n')
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(b"x" + whole_session()[1:].replace(b"novacode-session", b"novacode-xession", 1))
    assert (is_session(file), is_session(other), is_session(damaged)) == (True, False, True)


def test_a_line_without_checksum_among_others_is_told(file):
    """Whichever comes first; a file without any is one that an early version wrote."""
    lines = [encode(HEADER), *(encode(one) for one in stamped(text_run(1)))]
    bare = [line[: line.rindex(b',"crc"')] + b"}\n" for line in lines]
    file.write_bytes(b"".join(bare))
    assert check_session(file).problems == ()
    file.write_bytes(b"".join([bare[0], *lines[1:]]))
    assert check_session(file).problems == (Problem("line 1", "has no checksum, as later lines have"),)
    file.write_bytes(b"".join([*lines[:3], bare[3], *lines[4:]]))
    assert check_session(file).problems == (Problem("line 4", "has no checksum, as the lines before it have"),)
