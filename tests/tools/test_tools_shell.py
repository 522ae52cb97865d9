"""The shell tool, with real processes, and what becomes of their output."""

import os
import shutil
import sys

import pytest
import trio

from novacode.errors import ToolFailed
from novacode.tools.base import EVERYTHING, Claims
from novacode.tools.plain import plain
from novacode.tools.shell import ShellTool
from novacode.workspace.processes import RealProcesses

SHELL = ShellTool()


@pytest.fixture
def bench(bench):
    """A bench with real processes."""
    bench.processes = RealProcesses()
    return bench


async def test_output_of_both_streams_comes_in_order_from_the_workspace(bench):
    output = await bench.output(SHELL, command="pwd; echo err >&2; echo out")
    assert output.content[0].text == f"{bench.root}\nerr\nout"
    assert output.exit_code == 0
    assert b"".join(bench.live) == f"{bench.root}\nerr\nout\n".encode()


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("true", "(no output)", 0),
        ("echo a; exit 3", "a\n[exit code 3]", 3),
        ("kill -9 $$", "(no output)\n[killed by signal 9 (SIGKILL)]", -9),
        ("exit 143", "(no output)\n[exit code 143: probably killed by SIGTERM]", 143),
        ("exit 255", "(no output)\n[exit code 255]", 255),
    ],
)
async def test_how_it_ended_is_told_apart(bench, command, text, code):
    output = await bench.output(SHELL, command=command)
    assert output.content[0].text == text
    assert output.exit_code == code


async def test_br_117_a_background_process_is_named_and_does_not_hold_the_call(bench):
    with trio.fail_after(10):
        output = await bench.output(SHELL, command="sleep 300 & echo ready $!")
        words = output.content[0].text.split()
        assert output.content[0].text == (
            f"ready {words[1]}\n[still running in the background: pid {words[1]}; stopped when the run ends]"
        )
        await bench.processes.sweep()
    with pytest.raises(ProcessLookupError):
        os.kill(int(words[1]), 0)


async def test_br_116_one_giant_line_is_clipped_and_kept_in_a_file(bench):
    said = await bench.run(SHELL, command=r"head -c 3000000 /dev/zero | tr '\0' a; echo end")
    assert len(said) < 31_000
    assert said.startswith("aaa")
    assert said.endswith("aaaend")
    assert "2970004 bytes left out; the whole output (3000004 bytes) is in" in said
    [kept] = bench.spill.iterdir()
    assert kept.stat().st_size == 3_000_004


async def test_br_121_bytes_that_are_no_text(bench):
    said = await bench.run(
        SHELL, command=r"printf 'ok\n\377\376 mid\nA\0B\n\033]0;title\007\033[2J\033[31mred\033[0m\nend\n'"
    )
    assert said == "ok\n\ufffd\ufffd mid\nA\u2400B\nred\nend"


async def test_a_run_of_nul_bytes_is_counted_not_spelled_out(bench):
    assert await bench.run(SHELL, command="head -c 20000 /dev/zero; echo x") == "\u2400×20000x"


async def test_br_121_the_bytes_of_a_program_are_text_without_control_characters(bench):
    said = await bench.run(SHELL, command="head -c 300 /bin/ls; echo; echo end")
    assert said.endswith("end")
    assert all(char.isprintable() or char in "\n\t" for char in said)


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("less", "seq 3000 | less | tail -1"),
        ("more", "seq 3000 | more | tail -1"),
        ("man", "man ls | tail -1"),
        ("sudo", "sudo -S true"),
        ("python3", "python3 -c 'help(int)' | tail -1; python3 -c 'import getpass; getpass.getpass()'"),
    ],
)
async def test_br_119_and_br_120_what_pages_or_asks_ends_by_itself(bench, program, command):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    with trio.fail_after(10):
        await bench.run(SHELL, command=command)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_br_120_a_long_history_is_not_paged_and_settings_stay(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("PAGER", "less")
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / ".gitconfig"
    settings.write_text("[core]\n\tpager = less\n")
    author = "committer A <a@example.org> 1 +0000"
    stream = "".join(f"commit refs/heads/main\n{author}\ndata {len(str(n))}\n{n}\n" for n in range(1, 501))
    bench.put("stream", stream)
    with trio.fail_after(10):
        said = await bench.run(
            SHELL, command="git init -q . && git fast-import --quiet < stream && git log --format=%s main"
        )
    assert said.split("\n") == [str(n) for n in range(500, 0, -1)]
    assert settings.read_text() == "[core]\n\tpager = less\n"
    assert os.environ["PAGER"] == "less"


async def test_br_122_the_devices_of_stdin_are_at_their_end(bench):
    command = "wc -c /dev/stdin; printf 'b\\na\\n' | sort /dev/stdin; head -1 /dev/fd/0; echo end"
    with trio.fail_after(10):
        assert await bench.run(SHELL, command=command) == "0 /dev/stdin\na\nb\nend"


async def test_there_is_nothing_to_read(bench):
    with trio.fail_after(10):
        assert await bench.run(SHELL, command="read -r x; echo got:$x; cat; wc -c /dev/stdin") == "got:\n0 /dev/stdin"


async def test_it_is_bash_where_there_is_one(bench):
    assert await bench.run(SHELL, command='a=(x y); [[ ${a[1]} == y ]] && echo "${#a[@]}"') == "2"


async def test_cancelled_nothing_of_it_is_left(bench):
    with trio.move_on_after(0.3) as scope:
        await bench.run(SHELL, command="sleep 300 & echo $!; wait")
    assert scope.cancelled_caught
    with pytest.raises(ProcessLookupError):
        os.kill(int(b"".join(bench.live)), 0)


async def test_a_command_that_no_program_can_be_given_is_refused(bench):
    with pytest.raises(ToolFailed, match="NUL character"):
        await bench.run(SHELL, command="echo a\0b")


def test_claims_follow_what_is_known_of_the_command(bench):
    def reads_only(command: str) -> bool:
        if command == "odd":
            raise ValueError(command)
        return command == "ls"

    tool = ShellTool(reads_only)
    everything = frozenset({EVERYTHING})
    assert tool.claims({"command": "ls"}, bench.workspace) == Claims(reads=everything)
    for command in ("rm x", "odd", None, 5):
        assert tool.claims({"command": command}, bench.workspace) == Claims(writes=everything)


def test_br_051_the_command_is_judged_and_shown_as_it_will_run(bench):
    command = "touch P\r\x1b[2Kgit status\u202e"
    effects = SHELL.effects({"command": command}, bench.workspace)
    assert (effects.command, effects.summary) == (command, f"shell {command}")


def test_the_time_limit_is_the_callers_within_bounds(bench):
    assert SHELL.limit(bench.permit(SHELL, {"command": "x"}).args) == 120
    assert SHELL.limit(bench.permit(SHELL, {"command": "x", "timeout": 2}).args) == 2


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain ü\n\t", "plain ü\n\t"),
        ("10%\r50%\r100%\r\n", "10%\n50%\n100%\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ended", "never ended"),
        ("\x1bPdcs\x1b\\x\x1b(B", "x"),
        ("a\x08\x07\x7f", "a␈␇␡"),
        ("\x9b31m", "\\x9b31m"),
        ("\x1b", "␛"),
        ("\ud800", "\ufffd"),
    ],
)
def test_output_as_plain_text(raw, shown):
    assert plain(raw) == shown


@pytest.mark.slow
async def test_br_115_an_endless_printer_is_bounded_in_time_and_memory(bench):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bench.live = type("Drop", (list,), {"append": lambda self, data: None})()
    with trio.move_on_after(2) as scope, trio.fail_after(10):
        await bench.run(SHELL, command="yes")
    assert scope.cancelled_caught
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 50_000_000
