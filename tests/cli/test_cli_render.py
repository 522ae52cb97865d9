"""The faces on stderr: drawn on a real pty, and as lines on a pipe."""

import contextlib
import os
import subprocess
import sys

import pytest
import trio
from cli_events import BEGIN, SHELL, moves, shell_work, stamped, whole_run
from terminals import Terminal

from novacode.cli.outlet import Outlet
from novacode.cli.plain import PlainFace
from novacode.cli.render import Look, TerminalFace, make_face
from novacode.values.events import (
    CallOutput,
    CallReady,
    CallSettled,
    Level,
    Notice,
    Phase,
    RunEnded,
    RunStatus,
    TextDelta,
)
from novacode.values.results import Outcome, ToolResult

LOOK = Look(environ={"TERM": "xterm-256color"})


async def shown(terminal, events, look=LOOK, encoding="utf-8"):
    """Run a face over `events` to its end."""
    face = make_face(terminal.fd, encoding, look)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(face.run)
        for one in events:
            face(one)
            await trio.lowlevel.checkpoint()
        face.close()
    return terminal.screen()


async def test_a_whole_run_on_a_terminal():
    with Terminal() as terminal:
        assert await shown(terminal, whole_run()) == [
            "I look.",
            "✓ shell ls -la  (0.5 s)",
            "✗ edit a.py  (denied, Permission denied: the rule edit denies. Nothing was",
            "executed.)",
            "Done.",
            "",
        ]
        assert "\x1b[?25l" not in terminal.text, "a hidden cursor would stay hidden after a kill"


@pytest.mark.parametrize("columns", [10, 20, 300])
async def test_any_width_works(columns):
    with Terminal(columns) as terminal:
        screen = await shown(terminal, whole_run())
        assert "".join(screen).replace(" ", "").startswith("Ilook.✓shell")


async def test_live_lines_are_drawn_and_taken_away():
    with Terminal() as terminal:
        face = make_face(terminal.fd, "utf-8", LOOK)
        assert isinstance(face, TerminalFace)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(face.run)
            for one in stamped([*BEGIN, TextDelta(0, "Still wri"), CallReady(1, SHELL)]):
                face(one)
            for one in stamped([*moves(SHELL, Phase.RUNNING), CallOutput(SHELL.id, "shell", "line\n")], first=4):
                face(one)
            await terminal.wait_for("| line")
            assert terminal.screen() == ["Still wri", "* shell [running] ls -la", "  | line", ""]
            await face.suspend()
            assert terminal.screen() == ["Still wri", ""]
            os.write(terminal.fd, b"a question\n")
            face.resume()
            await terminal.wait_for("| line")
            face(stamped([shell_work()[-1]], first=9)[0])
            face.close()
        assert terminal.screen() == ["Still wri", "a question", "✓ shell ls -la  (0.5 s)", ""]


async def test_what_stopping_waits_for_is_shown():
    with Terminal() as terminal:
        waiting = ["1234 sleep 300"]
        face = make_face(terminal.fd, "utf-8", Look(environ=LOOK.environ, waiting_for=lambda: waiting))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(face.run)
            face(stamped([RunEnded(RunStatus.CANCELLED, "SIGINT")])[0])
            await terminal.wait_for("waiting for 1234 sleep 300")
            waiting.clear()
            face.close()
        assert terminal.screen() == [""]


async def test_br_051_nothing_acts_on_the_terminal():
    evil = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
    events = [
        TextDelta(0, f"text {evil}"),
        Notice(Level.WARNING, evil),
        CallReady(1, SHELL),
        *moves(SHELL, Phase.RUNNING),
        CallOutput(SHELL.id, "shell", evil),
        CallSettled(ToolResult(SHELL.id, "shell", Outcome.OK, True, (), note=evil, diff=f"+{evil}")),
    ]
    with Terminal(200) as terminal:
        await shown(terminal, stamped(events))
        assert "\x1b]" not in terminal.text
        assert "\x1b[2J" not in terminal.text
        assert not {"\x07", "\x9b", "\u202e"} & set(terminal.text)
        assert terminal.text.count("\\x1b]0;title\\x07") >= 4


async def test_links_show_where_they_lead():
    with Terminal() as terminal:
        screen = await shown(terminal, stamped([TextDelta(0, "[bank](http://evil.example)\n\n")]))
        assert "http://evil.example" in screen[0]


async def test_a_stopped_terminal_holds_up_nobody():
    """Nothing reads the pty: events are taken all the same, and a cancelled face ends."""
    with Terminal() as terminal, trio.fail_after(10):
        face = make_face(terminal.fd, "utf-8", LOOK)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(face.run)
            for number in range(300):
                face(stamped([TextDelta(0, "word " * 200 + "\n\n")], first=number + 1)[0])
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("term", ["", "dumb"])
async def test_a_dumb_terminal_gets_lines(term):
    with Terminal(200) as terminal:
        screen = await shown(terminal, whole_run(), Look(environ={"TERM": term}))
        assert screen[0] == "> shell ls -la"
        assert "\x1b" not in terminal.text


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        with contextlib.suppress(OSError):  # a test may have closed it
            os.close(fd)


async def lines_on(pipe, events, encoding="utf-8", **how):
    face = PlainFace(Outlet(pipe[1], encoding), **how)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(face.run)
        for one in events:
            face(one)
        face.close()
    os.set_blocking(pipe[0], False)
    try:
        return os.read(pipe[0], 10**6).decode(encoding).splitlines()
    except BlockingIOError:
        return []


PLAIN = [
    "> shell ls -la",
    "✓ shell ls -la  (0.5 s)",
    "✗ edit a.py  (denied, Permission denied: the rule edit denies. Nothing was executed.)",
]


async def test_a_whole_run_as_lines(pipe):
    assert await lines_on(pipe, whole_run()) == PLAIN


async def test_verbose_lines_have_the_texts(pipe):
    assert await lines_on(pipe, whole_run(), verbose=True) == ["I look.", *PLAIN, "Done."]


async def test_quiet_leaves_warnings(pipe):
    warned = [*whole_run(), *stamped([Notice(Level.WARNING, "look"), Notice(Level.INFO, "no")], first=90)]
    assert await lines_on(pipe, warned, quiet=True) == ["novacode: look"]


async def test_an_ascii_pipe_gets_ascii(pipe):
    lines = await lines_on(pipe, whole_run(), encoding="ascii")
    assert lines[1] == "ok shell ls -la  (0.5 s)"
    assert lines[2].startswith("FAILED edit")


async def test_br_152_a_reader_that_went_away_is_no_failure(pipe):
    os.close(pipe[0])
    face = PlainFace(Outlet(pipe[1]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(face.run)
        for one in whole_run():
            face(one)
        face.close()


async def test_a_closed_stderr_is_no_failure(pipe):
    for fd in pipe:
        os.close(fd)
    outlet = Outlet(pipe[1])
    outlet.write("x")
    await outlet.drain()
    assert outlet.broken


async def test_an_outlet_keeps_a_bounded_amount_and_says_what_it_dropped(pipe):
    outlet = Outlet(pipe[1])
    for _ in range(10):
        outlet.write("x" * 1_000_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outlet.drain)
        got = b""
        while len(got) < 4_000_000:
            await trio.lowlevel.wait_readable(pipe[0])
            got += os.read(pipe[0], 1 << 20)
    outlet.write("end")
    await outlet.drain()
    assert os.read(pipe[0], 1000) == b"\n[... 6000000 bytes left out: the output was not taken ...]\nend"
    outlet.close()
    outlet.close()


def test_rich_is_not_imported_for_lines():
    code = "import sys, novacode.cli.render, novacode.cli.ask; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
