"""The real processes and the fake ones keep the same promises."""

import sys

import pytest
import trio
from doubles.fake_processes import FakeProcesses, Program
from doubles.os_processes import alive, unique
from doubles.process_checks import World, check_processes

from novacode.grace import Grace
from novacode.values.ids import CallId
from novacode.workspace.base import Command, Exit
from novacode.workspace.processes import RealProcesses


async def test_real_processes(tmp_path):
    token = unique()
    argv = {
        "says-a-b": ("sh", "-c", "echo a; echo b >&2; exit 3"),
        "endless": ("sh", "-c", f"trap 'sleep 0.05; exit 0' TERM; echo ready; sleep {token} & wait"),
        "deaf": ("sh", "-c", f"trap '' TERM; echo ready; sleep {token}"),
        "leaves": ("sh", "-c", f"sleep {token} & echo done"),
    }
    await check_processes(
        World(lambda: RealProcesses(Grace(term=20, kill=5)), argv, lambda _: bool(alive(token)), tmp_path)
    )


async def test_fake_processes(autojump_clock, tmp_path):
    programs = {
        "says-a-b": Program((b"a\n", b"b\n"), 1, 3),
        "endless": Program((b"ready\n",), sys.maxsize, cleanup=0.05),
        "deaf": Program((b"ready\n",), sys.maxsize, cleanup=sys.maxsize),
        "leaves": Program((b"done\n",), 1, leaves=("server",)),
    }
    argv = {role: ("sh", "-c", role) for role in programs}
    await check_processes(
        World(lambda: FakeProcesses(programs, Grace(term=20, kill=5)), argv, lambda fake: bool(fake.alive), tmp_path)
    )


async def test_the_fake_tells_what_became_of_each(autojump_clock, tmp_path):
    """What tests above this floor read: started, finished and cancelled, in order."""
    fake = FakeProcesses({"short": Program(seconds=1), "long": Program(seconds=60, cleanup=0.5)})
    world = World(lambda: fake, {"short": ("short",), "long": ("long",)}, lambda _: bool(fake.alive), tmp_path)
    await fake.run(world.command("short"), lambda _: None)
    began = trio.current_time()
    with trio.move_on_after(10):
        await fake.run(world.command("long"), lambda _: None)
    assert trio.current_time() - began == 10.5
    assert (fake.started, fake.finished, fake.cancelled) == (["short", "long"], ["short"], ["long"])


async def _apart(processes, argv, cwd):
    """Run a command with a taker of its own for stderr, and return its exit and what each taker got."""
    out, err = bytearray(), bytearray()
    done = await processes.run(Command(argv, cwd, CallId("call_1")), out.extend, err.extend)
    return done, bytes(out), bytes(err)


async def test_stderr_apart(tmp_path):
    """Both pipes are read at the same time: more than a pipe holds on either does not stop the command."""
    script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; echo e >&2; echo o; exit 3"
    done, out, err = await _apart(RealProcesses(), ("sh", "-c", script), tmp_path)
    assert (done, out, err) == (Exit(3), bytes(300_000) + b"o\n", bytes(300_000) + b"e\n")


async def test_stderr_apart_of_the_fake(autojump_clock, tmp_path):
    fake = FakeProcesses({"both": Program((b"o\n",), errors=b"e\n")})
    assert await _apart(fake, ("sh", "-c", "both"), tmp_path) == (Exit(0), b"o\n", b"e\n")


async def test_a_taker_of_stderr_that_raises_stops_the_command(tmp_path):
    def refuse(data):
        raise ValueError(f"no {data!r}")

    token = unique()
    command = Command(("sh", "-c", f"echo e >&2; sleep {token}"), tmp_path, CallId("call_1"))
    with pytest.raises(ValueError, match="no b'e"):
        await RealProcesses(Grace(term=20, kill=5)).run(command, lambda _: None, refuse)
    assert not alive(token)
