"""A stop leaves nothing: whatever a command has started, and however it hides."""

import os
import signal
import subprocess
import sys

import attrs
import pytest
import trio
from doubles.os_processes import Heard, alive, gone, present, shell, unique

from novacode.grace import Grace
from novacode.workspace import census, proctree, stopping
from novacode.workspace.groups import GroupCensus
from novacode.workspace.processes import RealProcesses

GRACE = Grace(term=0.2, kill=5)
PATIENT = Grace(term=25, kill=5)


async def stopped(processes, line, ready=b"ready", then=lambda: None):
    """Cancel `line` once it has said `ready`, call `then`, and return what was heard when `run` was over."""
    heard = Heard()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(processes.run, shell(line), heard)
        await heard.text(ready)
        nursery.cancel_scope.cancel()
        then()
    return heard.data


async def test_br_011_every_member_of_a_pipeline_is_gone():
    token = unique()
    processes = RealProcesses(PATIENT)
    await stopped(processes, f"echo ready; exec 3>&1; sleep {token} | cat - /dev/null; : {token}")
    assert alive(token) == []
    assert processes.reaped.escalated == 0


async def test_br_012_a_descendant_in_its_own_session_is_gone(tmp_path):
    token, canary = unique(), tmp_path / "canary"
    line = f"setsid sh -c 'sleep 1; : > {canary}; sleep {token}' & echo ready; sleep {token}"
    await stopped(RealProcesses(PATIENT), line)
    assert alive(token) == []
    await trio.sleep(1.1)
    assert not canary.exists()


@pytest.mark.parametrize(
    "line",
    [
        "(setsid sleep {0} &); echo ready; sleep {0}",
        "(setsid setsid sh -c '(sleep {0} &) ; exit' &); sleep 0.1; echo ready; sleep {0}",
        "(env -i setsid sleep {0} &); sleep 0.1; echo ready; sleep {0}",
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {0}' &); sleep 0.1; echo ready; sleep {0}",
        "trap '' TERM INT HUP; echo ready; while :; do sleep {0}; done",
        "for i in $(seq 10); do (setsid sleep {0} >/dev/null 2>&1 &); done; echo ready; sleep {0}",
        "sleep {0} & kill -STOP $!; echo ready; kill -STOP $$",
    ],
    ids=["daemon", "double", "cleared", "deaf-daemon", "deaf", "ten-daemons", "stopped"],
)
async def test_nothing_of_a_cancelled_command_is_alive(line):
    """An orphan that cleared its environment cannot be told from another call's: that one waits for the sweep."""
    token = unique()
    processes = RealProcesses(GRACE)
    await stopped(processes, line.format(token))
    if "env -i" in line:
        await processes.sweep()
    assert alive(token) == []
    assert processes.reaped.survivors == ()


async def test_a_process_that_obeys_is_gone_at_once():
    """Nothing sleeps for a fixed time: a grace of 25 seconds costs nothing where nobody needs it."""
    with trio.fail_after(10):
        for _ in range(5):
            await stopped(RealProcesses(PATIENT), f"echo ready; exec sleep {unique()}")


async def test_a_stopped_process_gets_the_chance_to_obey():
    processes = RealProcesses(PATIENT)
    with trio.fail_after(10):
        data = await stopped(processes, "trap 'echo bye; exit' TERM; echo ready; kill -STOP $$")
    assert data == b"ready\nbye\n"
    assert processes.reaped.escalated == 0


async def test_last_words_are_heard_however_long_they_are():
    """Who cleans up loudly must not be stuck on a full pipe that nobody reads any more."""
    line = "trap 'head -c 500000 /dev/zero; exit' TERM; echo ready; while :; do sleep 0.01; done"
    with trio.fail_after(10):
        data = await stopped(RealProcesses(PATIENT), line)
    assert data.startswith(b"ready\n")
    assert data.count(b"\0") == 500_000


async def test_the_helpers_of_a_clean_up_are_left_to_do_it(tmp_path):
    """What a process starts when it is told to stop is not told to stop itself, unless its parent ends before it."""
    done, token = tmp_path / "done", unique()
    line = f"trap 'sleep 0.1; : > {done}; (sleep {token} &); exit' TERM; echo ready; sleep {token} & wait"
    processes = RealProcesses(PATIENT)
    with trio.fail_after(10):
        await stopped(processes, line)
    assert done.exists()
    assert alive(token) == []
    assert processes.reaped.escalated == 0


async def test_a_tree_of_thirty_is_gone_and_counted():
    token = unique()
    processes = RealProcesses(GRACE)
    line = f"for i in $(seq 30); do sh -c 'sleep {token}; :' & done; echo ready; wait"
    await stopped(processes, line)
    assert alive(token) == []
    assert processes.reaped.processes >= 31


async def test_a_tree_that_keeps_forking_is_gone():
    """Deaf to SIGTERM, each in its own session, always a new one."""
    token = unique()
    fork = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(400):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(0.03)\n"
        "        continue\n"
        "    time.sleep(0.03)\n"
        "    os._exit(0)\n"
    )
    processes = RealProcesses(GRACE)
    line = f"{sys.executable} -S -c '{fork}' {token} & echo ready; wait; sleep {token}"
    await stopped(processes, line)
    assert alive(token) == []
    assert processes.reaped.survivors == ()


@pytest.mark.parametrize(
    "line",
    [
        "(while :; do echo tick; sleep 0.1; done; : {0}) & wait",
        "trap '' TERM; echo tick; sleep {0} | cat",
    ],
)
async def test_br_118_a_time_limit_holds_and_keeps_the_output_so_far(line):
    token = unique()
    heard = Heard()
    with trio.fail_after(10), trio.move_on_after(0.3) as limit:
        await RealProcesses(GRACE).run(shell(line.format(token)), heard)
    assert limit.cancelled_caught
    assert heard.data.startswith(b"tick\n")
    assert alive(token) == []


async def test_cancelled_comes_out_plain_and_after_the_end():
    token = unique()
    heard = Heard()
    async with trio.open_nursery() as nursery:

        async def run():
            try:
                await RealProcesses(GRACE).run(shell(f"echo ready; sleep {token}"), heard)
            except trio.Cancelled:
                assert alive(token) == []
                raise

        nursery.start_soon(run)
        await heard.text(b"ready")
        nursery.cancel_scope.cancel()


async def test_a_cancelled_call_does_not_touch_its_neighbour():
    mine, other = unique(), unique()
    processes = RealProcesses(GRACE)
    async with trio.open_nursery() as nursery:
        heard = Heard()
        nursery.start_soon(processes.run, shell(f"(setsid sleep {other} &); echo up; sleep {other}"), heard)
        await heard.text(b"up")
        assert await present(other, 2)
        await stopped(processes, f"(setsid sleep {mine} &); echo ready; sleep {mine}")
        assert alive(mine) == []
        assert len(alive(other)) >= 2
        nursery.cancel_scope.cancel()
    assert alive(other) == []


async def test_hurry_skips_the_grace_and_what_is_waited_for_has_a_name():
    token = unique()
    processes = RealProcesses(PATIENT)
    heard, names = Heard(), []

    async def press_again(scope):
        await heard.text(b"ready")
        scope.cancel()
        for _ in range(1000):
            await trio.sleep(0.001)
            names.extend(processes.waiting_for())
            if names:
                break
        processes.hurry()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(press_again, scope)
                await processes.run(shell(f"trap '' TERM; echo ready; sleep {token}; :"), heard)
    assert names
    assert all(name.split()[0].isdecimal() and token in name for name in names)
    assert processes.waiting_for() == ()
    assert processes.reaped.escalated >= 1
    assert alive(token) == []


async def test_hurry_with_nothing_under_way_does_not_spoil_the_next_stop():
    processes = RealProcesses(PATIENT)
    processes.hurry()
    line = "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done"
    assert (await stopped(processes, line)).endswith(b"bye\n")


async def test_a_survivor_is_named_and_nothing_hangs(monkeypatch):
    """Signals that do not arrive stand for a process the kernel cannot end."""
    token = unique()
    processes = RealProcesses(Grace(term=0.05, kill=0.05))
    monkeypatch.setattr(stopping, "send", lambda proc, number: True)
    monkeypatch.setattr(os, "killpg", lambda group, number: None)
    with trio.fail_after(10):
        await stopped(processes, f"echo ready; exec sleep {token}")
    (survivor,) = processes.reaped.survivors
    assert proctree.command_line(survivor) == f"sleep {token}"
    monkeypatch.undo()
    await processes.sweep()
    assert alive(token) == []
    assert processes.reaped.survivors == ()


@pytest.mark.parametrize("step", range(12))
async def test_cancelled_at_every_step_of_a_short_command(step):
    """Whenever the cancel comes, there is an exit or nothing left, never half of both."""
    processes = RealProcesses(GRACE)
    children = proctree.children(os.getpid())
    with trio.CancelScope() as scope:
        canceller = CancelAfter(step, scope)
        trio.lowlevel.add_instrument(canceller)
        try:
            await processes.run(shell("true"), lambda data: None)
        finally:
            trio.lowlevel.remove_instrument(canceller)
    assert proctree.children(os.getpid()) == children


@pytest.mark.parametrize("step", range(12))
async def test_cancelled_at_every_step_of_a_long_command(step):
    token = unique()
    with trio.CancelScope() as scope:
        canceller = CancelAfter(step, scope)
        trio.lowlevel.add_instrument(canceller)
        scope.deadline = trio.current_time() + 0.2
        try:
            await RealProcesses(GRACE).run(shell(f"sleep {token}", stdin=b"x" * 200_000), lambda data: None)
        finally:
            trio.lowlevel.remove_instrument(canceller)
    assert scope.cancelled_caught
    assert alive(token) == []


class CancelAfter(trio.abc.Instrument):
    """Cancels `scope` before the scheduler's step of this number."""

    def __init__(self, steps, scope):
        self.steps = steps
        self.scope = scope

    def before_task_step(self, task):
        self.steps -= 1
        if self.steps < 0:
            self.scope.cancel()


async def test_the_next_command_works_after_a_cancelled_one():
    processes = RealProcesses(GRACE)
    await stopped(processes, f"echo ready; sleep {unique()}")
    heard = Heard()
    assert (await processes.run(shell("echo again"), heard)).code == 0
    assert heard.data == b"again\n"


async def test_without_a_subreaper_the_marker_still_finds_daemons(monkeypatch):
    """What an orphan carries in its environment is enough, and the weakness that is left is told."""
    monkeypatch.setattr(census, "become", lambda: "not permitted")
    monkeypatch.setattr(proctree, "_lists_children", lambda: False)
    token = unique()
    processes = RealProcesses(GRACE)
    await stopped(processes, f"(setsid sleep {token} &); echo ready; sleep {token}")
    assert alive(token) == []
    await processes.run(shell(f"(setsid sleep {token} >/dev/null 2>&1 &)"), Heard())
    assert await present(token)
    await processes.sweep()
    assert await gone(token)
    assert "not permitted" in processes.weakness


async def test_without_proc_the_group_is_stopped():
    token = unique()
    processes = RealProcesses(GRACE, census=GroupCensus())
    await stopped(processes, f"trap '' TERM; sleep {token} & echo ready; sleep {token}")
    assert await gone(token)
    ended = await processes.run(shell(f"sleep {token} & echo ready"), Heard())
    assert ended.background
    await processes.sweep()
    assert await gone(token)
    assert "no /proc" in processes.weakness


def test_a_pid_that_is_used_again_is_not_signalled():
    """The pair of pid and start time is one process; a later one with its pid gets nothing."""
    child = subprocess.Popen(["sleep", unique()], start_new_session=True)
    try:
        proc = proctree.read(child.pid)
        assert proc is not None
        assert not stopping.send(attrs.evolve(proc, start=proc.start - 1), signal.SIGKILL)
        assert child.poll() is None
        assert stopping.send(proc, signal.SIGKILL)
        assert child.wait() == -9
        assert not stopping.send(proc, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()


def test_a_pid_that_is_used_again_is_not_signalled_without_pidfd(monkeypatch):
    def refuse(pid, flags=0):
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", refuse)
    test_a_pid_that_is_used_again_is_not_signalled()


async def test_without_pidfd_a_stop_works_all_the_same(monkeypatch):
    def refuse(pid, flags=0):
        raise PermissionError

    token = unique()
    heard = Heard()
    processes = RealProcesses(PATIENT)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(processes.run, shell(f"(setsid sleep {token} &); echo ready; sleep {token}"), heard)
            await heard.text(b"ready")
            monkeypatch.setattr(os, "pidfd_open", refuse)
            nursery.cancel_scope.cancel()
    assert alive(token) == []


async def test_the_status_of_trios_own_children_is_never_taken():
    """Their codes arrive while commands with orphans are stopped all around them."""
    processes = RealProcesses(GRACE)
    codes = []

    async def wait_for(code):
        process = await trio.lowlevel.open_process(["sh", "-c", f"sleep 0.0{code}; exit {code}"])
        codes.append((code, await process.wait()))

    async with trio.open_nursery() as nursery:
        for code in range(1, 10):
            nursery.start_soon(wait_for, code)
        for _ in range(3):
            await stopped(processes, "(setsid sleep 0.02 &); (setsid sleep 300 &); echo ready; sleep 300")
    assert sorted(codes) == [(code, code) for code in range(1, 10)]
