"""Commands that come to their end: what they say, how they end, what they leave running."""

import os
import shutil
import sys
import tracemalloc
from pathlib import Path

import pytest
import trio
from doubles.os_processes import Heard, alive, gone, present, shell, unique

from novacode.errors import ToolFailed
from novacode.grace import Grace
from novacode.workspace import proctree
from novacode.workspace.base import Command, Exit
from novacode.workspace.processes import RealProcesses

GRACE = Grace(term=0.3, kill=3)


@pytest.fixture
async def processes():
    made = RealProcesses(GRACE)
    yield made
    await made.sweep()


async def said(processes, text, **more):
    """Run a line of shell; returns its exit code and its output."""
    heard = Heard()
    with trio.fail_after(10):
        ended = await processes.run(shell(text, **more), heard)
    return ended.code, heard.data


async def test_output_keeps_the_order_of_both_streams(processes):
    line = "for i in 1 2 3 4; do echo out$i; echo err$i >&2; done"
    assert await said(processes, line) == (0, b"".join(b"out%d\nerr%d\n" % (i, i) for i in range(1, 5)))


@pytest.mark.parametrize(("line", "code"), [("exit 7", 7), ("kill -KILL $$", -9), ("kill -TERM $$", -15), ("true", 0)])
async def test_the_exit_code_and_the_signal_are_told(processes, line, code):
    assert await said(processes, line) == (code, b"")


async def test_stdin_is_given_or_empty(processes):
    assert await said(processes, "cat", stdin=b"x" * 300_000) == (0, b"x" * 300_000)
    assert await said(processes, "cat") == (0, b"")


async def test_a_command_may_leave_its_stdin_unread(processes):
    assert await said(processes, "echo no", stdin=b"x" * 3_000_000) == (0, b"no\n")


async def test_br_119_questions_meet_the_end_of_file(processes):
    assert await said(processes, "read -r x; echo got:$x") == (0, b"got:\n")
    code, text = await said(processes, f"{sys.executable} -c 'input()'")
    assert code == 1
    assert b"EOFError" in text


async def test_br_122_devices_of_stdin_are_the_commands_own(processes):
    line = "wc -c </dev/stdin; printf 'b\\na\\n' | sort /dev/stdin; head -1 /dev/fd/0; echo end"
    assert await said(processes, line) == (0, b"0\na\nb\nend\n")


async def test_there_is_no_terminal_to_reach(processes):
    code, text = await said(processes, "exec 2>&1; : </dev/tty && echo reached")
    assert code != 0
    assert b"reached" not in text


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_br_119_and_br_120_git_neither_edits_nor_pages(processes, tmp_path):
    setup = (
        "git init -q . && git config user.email a@example.org && git config user.name A && git config core.pager less"
        " && git config core.editor vi && git config sequence.editor vi"
        " && for i in 1 2 3; do echo $i > f && git add f && git commit -qm $i; done; echo 4 > f; git add f"
    )
    assert (await said(processes, setup, cwd=tmp_path))[0] == 0
    code, text = await said(processes, "git commit", cwd=tmp_path)
    assert (code, b"empty commit message" in text) == (1, True)
    code, text = await said(
        processes, "git reset -q --hard && git rebase -i HEAD~2 && git log --format=%s", cwd=tmp_path
    )
    assert code == 0
    assert text.endswith(b"3\n2\n1\n")


async def test_br_121_bytes_come_as_they_are(processes):
    line = "printf 'ok\\n\\377\\376 mid\\0\\033[2J\\nend\\n'"
    assert await said(processes, line) == (0, b"ok\n\xff\xfe mid\0\x1b[2J\nend\n")


@pytest.mark.parametrize(
    ("argv", "cwd", "why"),
    [
        (("no-such-program",), "/", "no such program"),
        (("/no/such/program",), "/", "no such program"),
        (("/etc/passwd",), "/", "check the permissions"),
        (("true",), "/no/such/folder", "'/no/such/folder', is not there"),
        (("true",), "/etc/passwd", "'/etc/passwd', is not there or not a folder"),
        (("true", "x" * 4_000_000), "/", r"arguments are too long \(4000006 characters\)"),
        (("true", "a\0b"), "/", "embedded null byte"),
        (("true", "\ud800"), "/", "odd characters"),
        ((), "/", "the command is empty"),
    ],
)
async def test_what_cannot_be_started_says_why_and_what_to_do(processes, argv, cwd, why):
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ToolFailed, match=why) as caught:
        await processes.run(Command(argv, Path(cwd), "call_1"), Heard())
    assert str(caught.value).endswith("Nothing was run.")
    assert len(os.listdir("/proc/self/fd")) == open_before


async def test_a_script_without_interpreter_is_told(processes, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo hi")
    script.chmod(0o755)
    with pytest.raises(ToolFailed, match="has no '#!' line"):
        await processes.run(Command((str(script),), tmp_path, "call_1"), Heard())


@pytest.mark.parametrize(
    "line",
    [
        "sleep {0} & echo ready",
        "(sleep {0}; echo late) & disown; echo ready",
        "nohup sleep {0} >/dev/null 2>&1 & echo ready",
        "setsid sleep {0} & echo ready",
        "(setsid sh -c 'sleep {0}' >/dev/null 2>&1 &) ; sleep 0.05; echo ready",
    ],
)
async def test_br_117_the_background_does_not_hold_the_call(processes, line):
    token = unique()
    heard = Heard()
    with trio.fail_after(5):
        ended = await processes.run(shell(line.format(token)), heard)
    assert (ended.code, heard.data) == (0, b"ready\n")
    assert ended.background
    assert alive(token)
    assert set(ended.background) <= {proc.pid for proc in proctree.everybody()}
    await processes.sweep()
    assert alive(token) == []
    assert processes.reaped.survivors == ()


async def test_a_later_command_is_not_blamed_for_the_background(processes):
    token = unique()
    await processes.run(shell(f"sleep {token} &"), Heard())
    assert await processes.run(shell("true"), Heard()) == Exit(0)
    assert alive(token)


async def test_the_background_is_not_killed_by_its_own_words(processes):
    """A server that logs must outlive its call: closing the pipe would end it at the next line."""
    token = unique()
    await processes.run(shell(f"(while :; do echo tick || exit; sleep 0.02; done; : {token}) & echo up"), Heard())
    await trio.sleep(0.15)
    assert alive(token)


async def test_a_process_in_the_background_that_ends_by_itself_leaves_no_zombie(processes):
    token = unique(0)
    ended = await processes.run(shell(f"sleep {token} >/dev/null & echo $!"), Heard())
    assert await gone(token)
    await processes.run(shell("sleep 300 & kill $!"), Heard())
    await processes.sweep()
    assert [pid for pid in ended.background if proctree.read(pid)] == []
    assert processes.reaped.survivors == ()


async def test_sweep_takes_a_daemon_that_cleared_its_environment(processes):
    token = unique()
    await processes.run(shell(f"(env -i setsid sleep {token} >/dev/null 2>&1 &)"), Heard())
    assert await present(token)
    await processes.sweep()
    assert alive(token) == []


async def test_sweep_leaves_the_children_of_others(processes):
    """Ours from before, ours in our session, and ours in another session when it is spared."""
    tokens = [unique() for _ in range(3)]
    before = await trio.lowlevel.open_process(["sleep", tokens[0]], start_new_session=True)
    await processes.run(shell("true"), Heard())
    beside = await trio.lowlevel.open_process(["sleep", tokens[1]])
    spared = await trio.lowlevel.open_process(["sleep", tokens[2]], start_new_session=True)
    processes.spare(spared.pid)
    await processes.sweep()
    assert [len(alive(token)) for token in tokens] == [1, 1, 1]
    for process in (before, beside, spared):
        process.kill()
        assert await process.wait() == -9


async def test_sweep_of_one_table_leaves_the_commands_of_another(processes):
    token = unique()
    other = RealProcesses(GRACE)
    async with trio.open_nursery() as nursery:
        heard = Heard()
        nursery.start_soon(other.run, shell(f"(setsid sleep {token} &); echo up; sleep {token}"), heard)
        await heard.text(b"up")
        await processes.run(shell("true"), Heard())
        await processes.sweep()
        assert len(alive(token)) >= 2
        nursery.cancel_scope.cancel()
    assert alive(token) == []
    assert processes.reaped.processes == 0


async def test_sweep_with_nothing_to_do_is_quiet():
    processes = RealProcesses(GRACE)
    with trio.CancelScope() as scope:
        scope.cancel()
        await processes.sweep()
    assert not scope.cancelled_caught
    assert processes.reaped.processes == 0


async def test_br_115_much_output_costs_neither_memory_nor_time(processes):
    total = 0

    def count(data: bytes) -> None:
        nonlocal total
        total += len(data)

    tracemalloc.start()
    try:
        with trio.fail_after(10):
            ended = await processes.run(shell("head -c 50000000 /dev/zero"), count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (ended, total) == (Exit(0), 50_000_000)
    assert peak < 4_000_000


@pytest.mark.parametrize("line", ["yes", "yes >&2"])
async def test_br_115_an_endless_printer_can_be_stopped(processes, line):
    heard = 0

    def count(data: bytes) -> None:
        nonlocal heard
        heard += len(data)

    with trio.fail_after(10), trio.move_on_after(0.3) as limit:
        await processes.run(shell(f"exec {line}"), count)
    assert limit.cancelled_caught
    assert heard > 100_000


async def test_no_descriptor_is_left_open(processes):
    await processes.run(shell("true"), Heard())
    before = len(os.listdir("/proc/self/fd"))
    for line in ("echo x", "sleep 300 & echo x", "exit 1"):
        await processes.run(shell(line), Heard())
    with trio.move_on_after(0.05):
        await processes.run(shell("sleep 300"), Heard())
    await processes.sweep()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_the_output_that_was_in_the_pipe_is_not_lost(processes):
    """The moment for the pipe may pass before the pump gets its turn: what the leader wrote is read all the same."""
    impatient = RealProcesses(Grace(term=1, kill=1, pipes=0))
    for _ in range(20):
        assert await said(impatient, "head -c 60000 /dev/zero") == (0, b"\0" * 60_000)
