"""The real processes and the fake ones keep the same promises."""

import sys

import trio
from doubles.fake_processes import FakeProcesses, Program
from doubles.os_processes import alive, unique
from doubles.process_checks import World, check_processes

from novacode.grace import Grace
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
