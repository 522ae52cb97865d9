"""Reading a session back: everything good is loaded, nothing bad is silent, and the history is always paired."""

import pytest
from session_events import call, open_turn, result, stamped, text_run

from novacode.engine import texts
from novacode.errors import SessionError
from novacode.sessions.fold import load
from novacode.sessions.loaded import Loaded
from novacode.sessions.record import Header, encode
from novacode.values.events import AttemptDropped, CallBroken, PartDone, RunBegan, TurnBegan, TurnCommitted, UserAdded
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId, SessionId
from novacode.values.parts import Assistant, BrokenCall, Text, Thinking, User
from novacode.values.request import Usage
from novacode.values.results import Outcome, ToolResult

HEADER = Header(SessionId("s-x"), "/w", 1.0)


@pytest.fixture
def read(tmp_path):
    def run(lines):
        path = tmp_path / "s.jsonl"
        path.write_bytes(b"".join(lines))
        return load(path)

    return run


def lines_of(events, **how):
    return [encode(HEADER), *(encode(one) for one in stamped(events, **how))]


def history_of(*numbers):
    items = []
    for number in numbers:
        items += [User.said(f"prompt {number}"), Exchange(Assistant((Text(f"answer {number}"),), "demo"))]
    return tuple(items)


def test_a_whole_session_comes_back_whole(read):
    assert read(lines_of(text_run(1)) + lines_of(text_run(2), first=6, run="s-x-r2")[1:]) == Loaded(
        history=History(history_of(1, 2)),
        header=HEADER,
        runs=2,
        last_seq=10,
        last_at=2e9 + 10,
        model="demo",
        last_usage=Usage(),
        cost_usd=1.0,
    )


EIGHT_RUNS = [event for number in range(8) for event in text_run(number)]


def test_br_127_a_torn_last_record_is_all_that_is_lost(read):
    lines = lines_of(EIGHT_RUNS)
    loaded = read([*lines[:-1], lines[-1][: len(lines[-1]) // 2]])
    assert loaded.history.items == history_of(*range(8))
    assert loaded.interrupted
    assert loaded.notices == ("its last record was cut off by a crash and is lost",)


def test_br_127_a_broken_record_in_the_middle_is_skipped_and_named(read):
    lines = lines_of(EIGHT_RUNS)
    lines[20] = lines[20][:30] + b"\n"
    loaded = read(lines)
    assert loaded.history.items == history_of(*range(8))
    assert loaded.notices == ("1 line (21) could not be read and was skipped",)


def test_br_127_empty_lines_are_nothing(read):
    lines = lines_of(EIGHT_RUNS)
    assert read([line + b"\n\r\n  \n" for line in lines]) == read(lines)


def test_br_127_unknown_kinds_are_skipped_and_named(read):
    lines = lines_of(EIGHT_RUNS)
    loaded = read([*lines[:5], b'{"type":"telepathy","seq":1}\n', *lines[5:]])
    assert loaded.history.items == history_of(*range(8))
    assert loaded.notices == ("1 line (6) was skipped: written by a newer NovaCode",)


def test_a_commit_that_cannot_be_read_is_put_together_from_the_pieces(read):
    lines = lines_of([*text_run(1), *text_run(2)])
    lines[4] = b"garbage\n"
    assert read(lines).history.items == (
        User.said("prompt 1"),
        Exchange(Assistant((Text("answer 1"),))),
        *history_of(2),
    )


def test_a_record_that_lies_about_its_shape_is_damage_not_a_crash(read):
    lines = lines_of(text_run(1))
    lines.insert(2, b'{"type":"turn_committed","seq":2,"run_id":"s-x-r1","at":1,"exchange":{"message":7}}\n')
    lines.insert(3, b'{"type":"run_ended"}\n')
    loaded = read(lines)
    assert loaded.history.items == history_of(1)
    assert loaded.notices == ("2 lines (3, 4) could not be read and were skipped",)


def test_a_crash_with_calls_under_way_leaves_each_with_one_result(read):
    loaded = read(lines_of(open_turn()))
    one, two, three = (call(f"c{number}", number) for number in (1, 2, 3))
    (_, exchange) = loaded.history.items
    assert exchange.message == Assistant((Text("I look."), one, two, three))
    assert [(item.call_id, item.outcome, item.began) for item in exchange.results] == [
        (CallId("c1"), Outcome.OK, True),
        (CallId("c2"), Outcome.LOST, True),
        (CallId("c3"), Outcome.SKIPPED, False),
    ]
    assert exchange.results[0] == result(one)
    assert (loaded.interrupted, loaded.repaired) == (True, (CallId("c2"), CallId("c3")))
    assert loaded.notices == ("2 calls had no result when NovaCode ended: c2, c3",)


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_crash_after_any_record_gives_a_paired_history_that_goes_on(read, cut):
    lines = lines_of(open_turn()[:cut])
    later = [encode(one) for one in stamped(text_run(2), first=cut + 1, run="s-x-r2")]
    alone, gone_on = read(lines), read(lines + later)
    assert gone_on.history.items[-2:] == history_of(2)
    told = [item for item in alone.history.items if item not in gone_on.history.items]
    # Only text is left out when a later run began: without calls, an uncommitted turn was dropped on purpose.
    assert told == ([alone.history.items[-1]] if cut == 3 else [])


def test_a_crash_keeps_what_was_said_without_calls(read):
    loaded = read(lines_of([*text_run(1)[:3]]))
    assert loaded.history.items == (User.said("prompt 1"), Exchange(Assistant((Text("answer 1"),))))


def test_unsigned_thinking_alone_is_not_a_message(read):
    assert read(lines_of([RunBegan(User.said("x")), PartDone(0, Thinking("hm"))])).history.items == (User.said("x"),)


def test_a_dropped_attempt_is_forgotten(read):
    failure = Failure(FailureKind.OVERLOADED, "busy", True)
    events = [
        RunBegan(User.said("x")),
        TurnBegan(1),
        PartDone(0, Text("void")),
        AttemptDropped(failure, 1, 0.0),
        PartDone(0, Text("good")),
    ]
    assert read(lines_of(events)).history.items[-1] == Exchange(Assistant((Text("good"),)))


def test_a_broken_call_of_a_crashed_turn_stays_broken(read):
    broken = BrokenCall(CallId("b"), 1, "edit", '{"pa', "Its arguments ended early.")
    loaded = read(lines_of([RunBegan(User.said("x")), CallBroken(1, broken)]))
    assert loaded.history.items[-1] == Exchange(
        Assistant((broken,)),
        (ToolResult.of(broken, Outcome.BROKEN, texts.broken(broken)),),
    )


def test_a_call_recorded_twice_is_one_call(read):
    events = open_turn()
    loaded = read(lines_of([*events, events[3]]))
    assert [item.id for item in loaded.history.items[-1].message.calls] == ["c1", "c2", "c3"]


def test_what_the_runtime_said_is_history(read):
    nudge = User.said("go on", "runtime")
    assert read(lines_of([RunBegan(User.said("x")), UserAdded(nudge)])).history.items == (User.said("x"), nudge)


def test_the_usage_of_the_last_turn_is_known(read):
    turn = TurnCommitted(Exchange(Assistant((Text("a"),))), Usage(input=9, output=3))
    assert read(lines_of([RunBegan(User.said("x")), turn])).last_usage == Usage(input=9, output=3)


def test_run_numbers_go_on_behind_the_highest_seen(read):
    assert read(lines_of(text_run(1), run="s-x-r7")).runs == 7


def test_a_lost_header_is_said_and_the_rest_is_loaded(read):
    loaded = read([b'{"format":"nova\n', *lines_of(text_run(1))[1:]])
    assert loaded.history.items == history_of(1)
    assert loaded.header is None
    assert loaded.notices[0] == "its first line, the header, could not be read"


def test_an_empty_file_is_an_empty_session(read):
    assert read([]) == Loaded()


@pytest.mark.parametrize(
    "content", [b"hello\nworld\n", b'{"type":"x"}\n', b'{"format":"novacode-session","version":9}\n']
)
def test_what_is_no_session_of_ours_is_refused(read, content):
    with pytest.raises(SessionError):
        read([content])
