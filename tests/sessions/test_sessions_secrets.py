"""Secrets are in no record, whatever kind of event they come by, and the record still is what it was."""

import json

import attrs
import pytest
from session_events import stamped

from novacode.sessions.fold import load
from novacode.sessions.journal import Journal
from novacode.sessions.record import Header, encode, is_kept, read_lines
from novacode.sessions.secrets import Secrets
from novacode.values import events, serial
from novacode.values.events import CallMoved, Phase, RunBegan, Stamped
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange
from novacode.values.ids import ApprovalId, CallId, RunId, SessionId
from novacode.values.parts import Assistant, BrokenCall, ServerBlock, Text, Thinking, ToolCall, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome, ToolResult

KEY = 'sk-"quoted"\\\n\u2028-ünï-value'
SECRETS = Secrets(["A_KEY", "SHORT", "NOT_SET"], {"A_KEY": KEY, "SHORT": "abc"})
TEXT = f"before {KEY} after"
CALL = ToolCall(CallId("c1"), 1, "shell", {"command": TEXT, KEY: [{"type": TEXT}], "n": 12345678}, {"signature": KEY})
RESULT = ToolResult(CALL.id, "shell", Outcome.OK, True, (Text(TEXT),), TEXT, 0, TEXT)
BROKEN = BrokenCall(CallId("c2"), 2, "shell", TEXT, TEXT)

EVENTS = [
    events.RunBegan(User((Text(TEXT),)), TEXT),
    events.TurnBegan(1),
    events.Started(TEXT, TEXT),
    events.Finished(StopReason.END, TEXT, TEXT),
    events.AttemptDropped(Failure(FailureKind.SERVER, TEXT, True, raw_type=TEXT), 1, 0.5),
    events.PartDone(0, Thinking(TEXT, {"signature": KEY})),
    events.PartDone(0, ServerBlock("search", {"deep": [[TEXT]]})),
    events.CallReady(1, CALL),
    events.CallBroken(2, BROKEN),
    events.CallSettled(RESULT, 1.5),
    events.CallMoved(CALL.id, TEXT, Phase.RUNNING),
    events.FilesChanged(CALL.id, TEXT, (TEXT,), (TEXT,), (TEXT,), (TEXT,), 1, TEXT),
    events.ApprovalAsked(ApprovalId("a"), CALL, TEXT, TEXT, TEXT, TEXT),
    events.ApprovalClosed(ApprovalId("a"), CALL.id, "shell", "deny", TEXT),
    events.HookRan("PreToolUse", TEXT, 0.1, "deny", CALL.id, "shell", TEXT),
    events.TurnCommitted(Exchange(Assistant((Text(TEXT), CALL), "x"), (RESULT,)), Usage(1), StopReason.END, TEXT),
    events.UserAdded(User.said(TEXT, "runtime")),
    events.Compacted(3, TEXT, 1, {CALL.id: 100}, 9000, 400),
    events.Notice(events.Level.INFO, TEXT),
    events.RunEnded(events.RunStatus.FAILED, TEXT, TEXT, calls={KEY: 1}),
]


def has_text(cls):
    return any("str" in str(field.type) or "Text" in str(field.type) for field in attrs.fields(cls))


def test_no_kind_of_event_that_is_kept_is_left_out_here():
    """A kind of event that is added must be tried here, too."""
    never = {cls for cls in serial.TAGS if cls.__module__ == events.__name__} - {type(event) for event in EVENTS}
    not_kept = (events.TextDelta, events.ThinkingDelta, events.CallOpened, events.CallDelta, events.CallOutput)
    unkept = never - {*not_kept, events.UsageSeen}
    assert {cls.__name__ for cls in unkept if has_text(cls)} == set()


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_the_value_is_written_as_its_name(tmp_path, event):
    path = tmp_path / "s.jsonl"
    journal = Journal(path, Header(SessionId("s-x"), "/w", 1.0), secrets=SECRETS)
    assert is_kept(event)
    journal.append(Stamped(1, RunId("s-x-r1"), 2.0, event))
    journal.close()
    with path.open("rb") as file:
        _, record = read_lines(file)
    flat = json.dumps(record.data)
    for trace in (KEY, json.dumps(KEY)[1:-1], "sk-", "value"):
        assert trace not in flat
    assert record.altered is False
    hidden = serial.load_stamped(record.data)
    expected = json.loads(encode(Stamped(1, RunId("s-x-r1"), 2.0, event)))
    assert hidden.event == serial.load_event(replaced({key: expected[key] for key in expected if key != "crc"}))
    if not isinstance(event, events.TurnBegan):
        assert "[secret A_KEY]" in flat


def replaced(data):
    match data:
        case str():
            return data.replace(KEY, "[secret A_KEY]")
        case dict():
            return {replaced(key): replaced(value) for key, value in data.items()}
        case list():
            return [replaced(item) for item in data]
        case _:
            return data


@pytest.mark.parametrize(
    "value", ["turn_committed", "run_began", '","type":"', "1234567890", "shell_command", "arguments"]
)
def test_a_value_that_is_a_word_of_the_format_breaks_no_record(tmp_path, value):
    path = tmp_path / "s.jsonl"
    journal = Journal(path, Header(SessionId("s-x"), "/w", 1.0), secrets=Secrets(["X"], {"X": value}))
    for one in stamped(
        [RunBegan(User.said(f"say {value}")), CallMoved(CallId("c"), "shell", Phase.RUNNING)], first=1234567890
    ):
        journal.append(one)
    journal.close()
    loaded = load(path)
    assert loaded.history.items == (User.said("say [secret X]" if len(value) >= 8 else f"say {value}"),)
    assert loaded.last_seq == 1234567891
    assert loaded.notices == ()


def test_the_longer_of_two_values_goes_first():
    both = Secrets(["A", "B"], {"A": "password", "B": "password-and-more"})
    assert both.text("password-and-more password") == "[secret B] [secret A]"


def test_a_value_that_no_text_encoding_can_say_is_found():
    odd = Secrets(["A"], {"A": "latin-\udce9\udce8-key"})
    line = odd.hide(Stamped(1, RunId("r"), 0.0, RunBegan(User.said("x latin-\udce9\udce8-key y"))), encode)
    assert b"[secret A]" in line
    assert b"latin" not in line
