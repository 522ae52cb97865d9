"""Questions at a terminal: what is shown is what runs, and only an answer to it counts."""

import os

import pytest
import trio
from terminals import Terminal

from novacode.cli.ask import Decision, TerminalAsker, question_text
from novacode.cli.outlet import Outlet
from novacode.values.events import ApprovalAsked
from novacode.values.ids import ApprovalId, CallId
from novacode.values.parts import ToolCall

PROMPT = "q stop the run: "


class Face:
    """Counts how often it had to be still."""

    def __init__(self):
        self.log = []

    async def suspend(self):
        self.log.append("suspend")

    def resume(self):
        self.log.append("resume")


def asked(command="git push", rule="shell(git push)", **more):
    call = ToolCall(CallId("c1"), 0, "shell", {"command": command, **more})
    return ApprovalAsked(ApprovalId("a1"), call, "`git push` is not read-only", rule=rule)


def check(rule):
    return "" if rule.startswith("shell") else f"{rule!r} is not a rule"


@pytest.fixture
def terminal():
    with Terminal(200) as made:
        yield made


@pytest.fixture
def asker(terminal):
    return TerminalAsker(terminal.fd, Outlet(terminal.fd), Face(), check)


async def decide(terminal, asker, question, *lines):
    """Answer each prompt with the next of `lines`."""
    decisions = []

    async def ask():
        decisions.append(await asker.ask(question))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        for line in lines:
            await terminal.wait_for(": ")
            await terminal.wait_for(PROMPT if "back: " not in terminal.text[-12:] else "back: ")
            terminal.text = ""
            terminal.type(line)
    return decisions[0]


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["y\n"], Decision("once")),
        (["YES\n"], Decision("once")),
        (["n\n"], Decision("no")),
        (["n use make instead\n"], Decision("no", "use make instead")),
        (["q\n"], Decision("stop")),
        (["a\n", "\n"], Decision("always", rule="shell(git push)")),
        (["s\n", "shell(git *)\n"], Decision("session", rule="shell(git *)")),
        (["a\n", "nonsense\n", "shell(x)\n"], Decision("always", rule="shell(x)")),
        (["a\n", "-\n", "n\n"], Decision("no")),
        (["maybe\n", "\n", "y\n"], Decision("once")),
        (["yes but only the first file\n", "n\n"], Decision("no")),
        (["a not really\n", "n\n"], Decision("no")),
        (["maybe\n", "what\n", "sure\n"], Decision("no", "the answer was not understood")),
        (["\x04"], Decision("no", "they closed the input without an answer")),
    ],
)
async def test_answers(terminal, asker, lines, decision):
    assert await decide(terminal, asker, asked(), *lines) == decision
    assert asker._face.log == ["suspend", "resume"]


async def test_always_is_not_offered_where_no_rule_can_be_kept(terminal, asker):
    assert await decide(terminal, asker, asked(rule=""), "a\n", "s\n", "y\n") == Decision("once")


@pytest.mark.parametrize(
    ("key", "said"), [("a\n", "for good, in /h/.novacode/projects/w.toml:"), ("s\n", "for this session:")]
)
async def test_what_is_kept_is_shown_with_where_before_it_is(terminal, key, said):
    asker = TerminalAsker(terminal.fd, Outlet(terminal.fd), Face(), check, "/h/.novacode/projects/w.toml")
    shown = []

    async def ask():
        shown.append(await asker.ask(asked()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await terminal.wait_for(PROMPT)
        terminal.text = ""
        terminal.type(key)
        await terminal.wait_for("back: ")
        assert f"This allows, {said}" in terminal.text
        assert "shell(git push)" in terminal.text
        assert shown == []
        terminal.type("\n")


async def test_keys_typed_before_the_question_do_not_answer_it(terminal, asker):
    terminal.type("y\n")
    await trio.lowlevel.wait_readable(terminal.fd)
    assert await decide(terminal, asker, asked(), "n\n") == Decision("no")


async def test_a_cancelled_question_is_withdrawn_and_the_next_one_works(terminal, asker):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asker.ask, asked())
        await terminal.wait_for(PROMPT)
        nursery.cancel_scope.cancel()
    await terminal.wait_for("(the question is withdrawn)")
    terminal.text = ""
    assert await decide(terminal, asker, asked(), "y\n") == Decision("once")
    assert asker._face.log == ["suspend", "resume"] * 2


async def test_questions_come_one_after_another(terminal, asker):
    got = []

    async def ask(command):
        got.append((command, (await asker.ask(asked(command))).word))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "one")
        await terminal.wait_for(PROMPT)
        nursery.start_soon(ask, "two")
        assert "two" not in terminal.read()
        terminal.text = ""
        terminal.type("y\n")
        await terminal.wait_for(PROMPT)
        terminal.type("n\n")
    assert got == [("one", "once"), ("two", "no")]


async def test_what_is_no_terminal_is_never_read():
    reader, writer = os.pipe()
    os.write(writer, b"y\n")
    decision = await TerminalAsker(reader, Outlet(writer), Face(), check).ask(asked())
    assert decision == Decision("no", "nobody could be asked: there is no terminal")
    assert os.read(reader, 10) == b"y\n"
    os.close(reader)
    os.close(writer)


async def test_a_terminal_that_hangs_up_means_no(asker, terminal):
    decisions = []

    async def ask():
        decisions.append(await asker.ask(asked()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await terminal.wait_for(PROMPT)
        spare = os.open("/dev/null", os.O_RDONLY)
        os.dup2(spare, terminal.master)
        os.close(spare)
    assert decisions == [Decision("no", "they closed the input without an answer")]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("touch P\r\x1b[2Kgit status", "  command: touch P\\x0d\\x1b[2Kgit status"),
        ("ls\u200b -la ; touch\u00a0P2", "  command: ls\\u200b -la ; touch\\xa0P2"),
        ("ls" + " " * 85 + "; touch P3", "  command:\n  | ls [85 spaces] ; touch P3"),
        ("echo \u202e gpj.exe", "  command: echo \\u202e gpj.exe"),
        ("true\ny once, n no: y", "  command:\n  | true\n  | y once, n no: y"),
    ],
)
def test_br_051_the_question_shows_what_runs(command, shown):
    text = question_text(asked(command))
    assert shown in text
    assert not {"\x1b", "\r", "\u200b", "\u202e", "\xa0"} & set(text)


def test_every_argument_is_shown_and_a_cut_is_said():
    text = question_text(asked("x" * 5000, timeout=3, env={"A": "\x07"}))
    assert "[CUT: 1000 more characters]" in text
    assert "  timeout: 3" in text
    assert '  env: {"A": "\\u0007"}' in text
    assert "[CUT: 100 more lines are not shown]" in question_text(asked("\n".join("x" * 500)))


def test_details_are_behind_a_bar():
    question = ApprovalAsked(ApprovalId("a"), asked().call, "why", details="-old\n+new")
    assert "  details:\n  | -old\n  | +new\n" in question_text(question)
