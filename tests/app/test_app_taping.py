"""A whole session recorded and played again: tools, answers and limits come from the tape, and nothing is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import attrs
import pytest
import trio

from novacode.app.choosing import scripted
from novacode.app.settings import Places, load_settings
from novacode.app.setup import SessionWish, Setup
from novacode.app.tape_seam import Replay
from novacode.app.taping import choice_of
from novacode.app.wiring import open_app
from novacode.authority.approvals import Answer, Scope
from novacode.errors import UsageError
from novacode.models.script import parse_script
from novacode.models.tape_file import TapeHeader, dump_lines, read_tape
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallOutput,
    CallSettled,
    RunEnded,
    RunStatus,
    TurnCommitted,
)
from novacode.values.results import Outcome

pytestmark = pytest.mark.timeout(60)


def setup_in(root: Path, script: str = "", mode: str = "bypass", **more) -> Setup:
    work = root / "work"
    work.mkdir(parents=True, exist_ok=True)
    settings = load_settings(Places(root / "home", work), {}, {"permissions.mode": mode})
    choice = scripted("script:t", parse_script(script, "t")) if script else None
    return Setup(settings, {}, root / "home", work, session=SessionWish(keep=False), choice=choice, **more)


async def play(setup: Setup, answers=()):
    """Run once and return every event; `answers` are given to questions in order."""
    given, events = list(answers), []
    async with open_app(setup) as app, trio.open_nursery() as nursery:

        def sink(stamped):
            events.append(stamped.event)
            if isinstance(stamped.event, ApprovalAsked) and given:
                app.agent.answer(stamped.run_id, stamped.event.approval_id, given.pop(0))

        app.bus.subscribe(sink)
        await nursery.start(app.background)
        await app.agent.run("go")
        nursery.cancel_scope.cancel()
    return events


def replaying(root: Path, tape: Path, *, everything: bool = True, mode: str = "bypass") -> Setup:
    read = read_tape(tape)
    replay = Replay(read, everything)
    return attrs.evolve(
        setup_in(root, mode=mode), choice=choice_of(read.header, None), replay=replay, deterministic=True
    )


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def change(tape: Path, edit) -> None:
    """Hand each line of `tape` to `edit`; what returns `None` is cut out."""
    lines = [edit(json.loads(line)) for line in tape.read_text().splitlines()]
    tape.write_text("".join(json.dumps(line) + "\n" for line in lines if line is not None))


EVERY_OUTCOME = """
[[turn]]
steps = [
  { call = "shell", arguments = { command = "echo seen; touch made.txt" } },
  { call = "shell", arguments = { command = "echo broken >&2; exit 3" } },
  { call = "read", arguments = { path = "missing.txt" } },
  { call = "write", arguments = { path = "new.txt", content = "é\\n" } },
  { call = "shell", arguments = { command = "echo begun; sleep 30", timeout = 0.3 } },
  { call = "nonsense", arguments = {} },
  { call = "read", arguments = { wrong = 1 } },
]
[[turn]]
steps = [ { text = "Done." } ]
"""


async def test_every_outcome_comes_again_and_nothing_is_run(tmp_path, autojump_clock):
    """Recorded with real tools, in real time; played where the folder is not, on a virtual clock."""
    autojump_clock.autojump_threshold, autojump_clock.rate = float("inf"), 1.0
    tape = tmp_path / "a.tape"
    first = await play(setup_in(tmp_path / "there", EVERY_OUTCOME, record=tape))
    outcomes = [settled.result.outcome for settled in of(first, CallSettled)]
    assert set(outcomes) == {
        Outcome.OK,
        Outcome.ERROR,
        Outcome.TIMEOUT,
        Outcome.UNKNOWN_TOOL,
        Outcome.INVALID,
    }
    (tmp_path / "there").rename(tmp_path / "gone")
    autojump_clock.autojump_threshold = 0
    again = await play(replaying(tmp_path / "here", tape))
    assert of(again, TurnCommitted) == of(first, TurnCommitted)
    assert "".join(output.text for output in of(again, CallOutput)).split() == ["seen", "broken", "begun"]
    assert not list((tmp_path / "here/work").iterdir())
    assert not (tmp_path / "there").exists()


ASKS = """
[[turn]]
steps = [
  { call = "shell", arguments = { command = "touch allowed.txt" } },
  { call = "shell", arguments = { command = "touch denied.txt" } },
]
[[turn]]
steps = [ { text = "Done." } ]
"""
ANSWERS = (
    Answer(allowed=True, by="you", scope=Scope.ALWAYS, rules=("shell(touch allowed.txt)",)),
    Answer(allowed=False, by="you", words="not this one"),
)


@pytest.fixture
async def asked(tmp_path, autojump_clock):
    """The tape of a run with two questions, and its events."""
    autojump_clock.autojump_threshold, autojump_clock.rate = float("inf"), 1.0
    tape = tmp_path / "asked.tape"
    events = await play(setup_in(tmp_path / "there", ASKS, "default", record=tape, somebody=True), ANSWERS)
    autojump_clock.autojump_threshold = 0
    return tape, events


async def test_answers_come_from_the_tape(asked, tmp_path):
    """The same answers to the same questions; a rule that was stored for ever is stored nowhere."""
    tape, first = asked
    again = await play(replaying(tmp_path / "here", tape, mode="default"))
    assert of(again, TurnCommitted) == of(first, TurnCommitted)
    assert [(one.decision, one.by) for one in of(again, ApprovalClosed)] == [("allow", "you"), ("deny", "you")]
    assert list((tmp_path / "there/home").rglob("*.toml"))
    assert not list((tmp_path / "here/home").rglob("*.toml"))
    assert not list((tmp_path / "here/work").iterdir())


async def test_a_question_without_an_answer_on_the_tape_ends_the_run(asked, tmp_path):
    tape, _ = asked
    change(tape, lambda line: None if line.get("type") == "answer" else line)
    [ended] = of(await play(replaying(tmp_path / "here", tape, mode="default")), RunEnded)
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "replay_mismatch")


def other_arguments(line):
    if line.get("type") == "tool":
        line["arguments"]["command"] = "touch other.txt"
    return line


def other_words(line):
    return json.loads(json.dumps(line).replace("(no output)", "(none)")) if line.get("type") == "tool" else line


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda line: None if line.get("type") == "tool" else line, "has no outcome of the call shell call_s1_1"),
        (other_arguments, '$.arguments.command: expected "touch other.txt", found "touch allowed.txt"'),
        (other_words, '$.messages[2].content[0].content[0].text: expected "(no output)", found "(none)"'),
    ],
)
async def test_a_tape_that_was_changed_tells_what_does_not_fit(asked, tmp_path, edit, told):
    """An outcome that is missing, one of another call, and one that the next request does not have."""
    tape, _ = asked
    change(tape, edit)
    events = await play(replaying(tmp_path / "here", tape, mode="default"))
    [ended] = of(events, RunEnded)
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "replay_mismatch")
    assert any(told in getattr(event, "text", "") for event in events)


async def test_a_person_who_stops_the_run_stops_it_again(tmp_path, autojump_clock):
    """In the middle of a call, with a reply half way: the same calls had begun, and the run ends the same way."""
    autojump_clock.autojump_threshold, autojump_clock.rate = float("inf"), 1.0
    script = """
[[turn]]
steps = [
  { call = "shell", arguments = { command = "touch x; echo begun; sleep 30" } },
  { call = "shell", arguments = { command = "echo never" } },
  { pause = 30.0 },
]
"""
    tape = tmp_path / "a.tape"
    events = []
    async with open_app(setup_in(tmp_path / "there", script, record=tape)) as app, trio.open_nursery() as nursery:

        def sink(stamped):
            events.append(stamped.event)
            if isinstance(stamped.event, CallOutput):
                app.agent.cancel("SIGINT")

        app.bus.subscribe(sink)
        await nursery.start(app.background)
        await app.agent.run("go")
        nursery.cancel_scope.cancel()
    autojump_clock.autojump_threshold = 0
    again = await play(replaying(tmp_path / "here", tape))
    assert of(again, TurnCommitted) == of(events, TurnCommitted)
    [ended] = of(again, RunEnded)
    assert (ended.status, ended.reason) == (RunStatus.CANCELLED, "SIGINT")
    assert [settled.result.began for settled in of(again, CallSettled)] == [True, False]


async def test_a_tape_that_cannot_be_written_any_more_ends_the_run(tmp_path):
    """What goes on would be on no tape, and nobody would know."""
    tape, events = tmp_path / "a.tape", []
    async with open_app(setup_in(tmp_path / "there", EVERY_OUTCOME, record=tape)) as app:
        [opened] = [fd for fd in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{fd}") == str(tape)]
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, int(opened))
        os.close(full)
        app.bus.subscribe(lambda stamped: events.append(stamped.event))
        ended = await app.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.FAILED, "session_error")
    assert any(f"the tape {tape} cannot be written" in getattr(event, "text", "") for event in events)
    assert list((tmp_path / "there/work").iterdir()) == []


def header(**more):
    return TapeHeader("anthropic/m", "m", "anthropic", issuer="anthropic", **more)


def test_the_model_is_that_of_the_tape():
    choice = choice_of(header(), None)
    assert (choice.label, choice.name, choice.scripted) == ("anthropic/m", "m", False)
    assert choice_of(header(), "anthropic/m") == choice


def test_another_model_is_asked_without_a_key_so_that_its_requests_can_be_compared():
    assert choice_of(header(), "openai/n").spoken.protocol.startswith("openai")


@pytest.mark.parametrize("wanted", ["demo", "script:other.toml"])
def test_another_script_cannot_be_compared(wanted):
    with pytest.raises(UsageError, match="the tape was recorded with anthropic/m"):
        choice_of(header(), wanted)


async def test_a_tape_without_a_folder_is_played_where_it_is(tmp_path, autojump_clock):
    tape = tmp_path / "a.tape"
    tape.write_bytes(dump_lines([header()]))
    async with open_app(replaying(tmp_path / "here", tape)) as app:
        assert app.folder == tmp_path / "here/work"
