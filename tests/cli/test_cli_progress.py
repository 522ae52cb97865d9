"""What a person is told of a run, before it is drawn."""

import pytest
from cli_events import EDIT, SHELL, stamped, whole_run

from novacode.cli.progress import Block, Kind, LiveCall, Progress, summary_of
from novacode.values.events import (
    ApprovalClosed,
    AttemptDropped,
    CallMoved,
    CallOutput,
    CallReady,
    CallSettled,
    FilesChanged,
    Level,
    Notice,
    Phase,
    RunEnded,
    RunStatus,
    TextDelta,
)
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import ApprovalId, CallId
from novacode.values.parts import BrokenCall, Text, ToolCall
from novacode.values.results import Outcome, ToolResult


def blocks_of(events, progress=None):
    progress = progress or Progress()
    return [block for one in stamped(events) for block in progress.apply(one.event, one.at)]


def test_a_whole_run():
    assert blocks_of([one.event for one in whole_run()]) == [
        Block(Kind.TEXT, "I look."),
        Block(Kind.CALL, "ls -la", True, "shell", "0.5 s"),
        Block(
            Kind.CALL,
            "a.py",
            False,
            "edit",
            "denied, Permission denied: the rule edit denies. Nothing was executed.",
        ),
        Block(Kind.TEXT, "Done."),
    ]


def test_what_is_live_while_a_call_runs():
    progress = Progress()
    blocks_of([CallReady(1, SHELL), CallMoved(SHELL.id, "shell", Phase.QUEUED, (CallId("c0"),))], progress)
    assert progress.calls == {SHELL.id: LiveCall("shell", "ls -la", Phase.QUEUED, 10.2, (CallId("c0"),))}
    blocks_of([CallMoved(SHELL.id, "shell", Phase.RUNNING), CallOutput(SHELL.id, "shell", "one\ntwo\n\n")], progress)
    assert progress.calls == {SHELL.id: LiveCall("shell", "ls -la", Phase.RUNNING, 10.1, (), "two")}
    blocks_of([RunEnded(RunStatus.CANCELLED, "SIGINT")], progress)
    assert progress.calls == {}


def test_whole_paragraphs_are_given_out_and_a_fence_is_one():
    progress = Progress()
    text = "One.\n\n```\na\n\nb\n```\n\nTwo, unfin"
    told = blocks_of([TextDelta(0, character) for character in text], progress)
    assert [block.text for block in told] == ["One.\n\n", "```\na\n\nb\n```\n\n"]
    assert progress.text == "Two, unfin"


def test_a_dropped_attempt_takes_its_text_back():
    dropped = AttemptDropped(Failure(FailureKind.OVERLOADED, "busy", True), 1, 2.0)
    progress = Progress()
    assert blocks_of([TextDelta(0, "half"), dropped], progress) == [
        Block(Kind.WARNING, "the model failed (overloaded: busy). Again in 2 s.")
    ]
    assert progress.text == ""
    assert blocks_of([TextDelta(0, "shown\n\nhalf"), dropped], progress)[-1] == Block(
        Kind.WARNING,
        "the model failed (overloaded: busy). What it has said above does not count. Again in 2 s.",
    )


def result(outcome, **more):
    began = more.pop("began", outcome in {Outcome.OK, Outcome.ERROR, Outcome.TIMEOUT})
    return ToolResult(SHELL.id, "shell", outcome, began, (Text(more.pop("text", "")),), **more)


@pytest.mark.parametrize(
    ("settled", "good", "detail"),
    [
        (result(Outcome.OK, note="3 files"), True, "3 files, 1.5 s"),
        (result(Outcome.ERROR, exit_code=2, text="make: error"), False, "exit 2, 1.5 s"),
        (result(Outcome.ERROR, text="\nThe tool failed: x\nmore"), False, "error, The tool failed: x, 1.5 s"),
        (result(Outcome.TIMEOUT, note="after 2 s"), False, "timeout, after 2 s, 1.5 s"),
        (result(Outcome.UNKNOWN_TOOL, text="There is no tool"), False, "unknown tool, There is no tool"),
        (
            result(Outcome.CANCELLED, text="Cancelled before it started."),
            False,
            "cancelled, Cancelled before it started.",
        ),
    ],
)
def test_each_way_to_end_has_its_words(settled, good, detail):
    assert blocks_of([CallReady(1, SHELL), CallSettled(settled, 1.5)]) == [
        Block(Kind.CALL, "ls -la", good, "shell", detail)
    ]


def test_a_diff_follows_its_call():
    settled = ToolResult(EDIT.id, "edit", Outcome.OK, True, (), diff="-x\n+\x1b[2Ky\n")
    assert blocks_of([CallReady(2, EDIT), CallSettled(settled)])[1] == Block(Kind.DIFF, "-x\n+\\x1b[2Ky\n")


def test_notices_are_shown_by_their_level():
    notices = [Notice(level, level.value) for level in Level]
    assert [one.text for one in blocks_of(notices)] == ["warning"]
    assert [one.text for one in blocks_of(notices, Progress(Level.INFO))] == ["info", "warning"]
    assert [one.text for one in blocks_of(notices, Progress(Level.DEBUG))] == ["debug", "info", "warning"]


def test_answers_to_questions_are_told_and_withdrawn_ones_are_not():
    closed = [ApprovalClosed(ApprovalId("a"), SHELL.id, "shell", word, "you") for word in ("allow", "abandoned")]
    assert blocks_of(closed) == [Block(Kind.NOTICE, "shell: allow, by you")]


def test_what_tells_most_about_a_call():
    assert summary_of(SHELL) == "ls -la"
    assert summary_of(ToolCall(CallId("x"), 0, "t", {"a": [1], "b": "\x07"})) == '{"a": [1], "b": "\\u0007"}'
    assert summary_of(ToolCall(CallId("x"), 0, "t", {})) == ""
    assert summary_of(BrokenCall(CallId("x"), 0, "t", "{\x1b", "p")) == "{\\x1b"


def _ended(changed, name="shell"):
    call = CallId("c9")
    ok = ToolResult(call, name, Outcome.OK, True, (Text("fine"),))
    return blocks_of([CallMoved(call, name, Phase.RUNNING), changed, CallSettled(ok, 0.5)])[1:]


def test_what_a_call_has_changed_is_told_behind_it():
    """Of every call but those whose result shows it: their diff is there already."""
    changed = {"created": ("new.txt",), "modified": ("a\x1b.py",), "deleted": ("old/",), "more": 2}
    text = "shell changed new.txt (new), a\\x1b.py, old/ (deleted) and 2 more"
    assert _ended(FilesChanged(CallId("c9"), "shell", **changed)) == [Block(Kind.NOTICE, text)]
    assert _ended(FilesChanged(CallId("c9"), "edit", modified=("a.py",)), "edit") == []


def test_many_changes_are_counted_and_not_all_named():
    changed = FilesChanged(CallId("c9"), "shell", created=tuple(f"f{number}" for number in range(12)), more=3)
    [block] = _ended(changed)
    assert block.text.startswith("shell changed f0 (new), f1 (new)")
    assert block.text.endswith("f7 (new) and 7 more")


def test_what_cannot_be_taken_back_is_a_warning_of_any_tool():
    changed = FilesChanged(CallId("c9"), "write", created=("a",), uncovered=("big.bin",), problem="the disk is full")
    assert _ended(changed, "write") == [
        Block(Kind.WARNING, "write: what it has changed is not known: the disk is full"),
        Block(Kind.WARNING, "write changed what rewind cannot give back: big.bin"),
    ]


def test_what_a_call_without_an_end_has_changed_is_told_at_once():
    assert blocks_of([FilesChanged(CallId("c9"), "shell", deleted=("a",))]) == [
        Block(Kind.NOTICE, "shell changed a (deleted)")
    ]
