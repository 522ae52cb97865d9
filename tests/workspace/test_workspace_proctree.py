"""What is read from /proc, and what is made of odd content there."""

import os
import subprocess
import sys

import pytest
from doubles.os_processes import unique

from novacode.workspace import proctree
from novacode.workspace.proctree import Proc

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs the /proc of Linux")


@pytest.fixture
def child():
    process = subprocess.Popen(
        ["sleep", unique()], start_new_session=True, env={"PATH": os.environ["PATH"], "MARK": "a=b", "MARKED": "no"}
    )
    yield process
    process.kill()
    process.wait()


def test_a_process_is_read_whole(child):
    proc = proctree.read(child.pid)
    assert proc == Proc(child.pid, os.getpid(), child.pid, child.pid, proc.start, b"sleep")
    assert proc.start > 0


def test_what_is_not_there_is_none():
    assert proctree.read(2**22 + 1) is None
    assert proctree.children(2**22 + 1) == []
    assert proctree.variable(2**22 + 1, "PATH") is None
    assert proctree.command_line(2**22 + 1) == ""


def test_a_name_that_looks_like_the_fields_behind_it_is_read_right(tmp_path):
    program = tmp_path / ") Z 1 1 (x"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), unique()]) as process:
        proc = proctree.read(process.pid)
        process.kill()
    assert (proc.parent, proc.gone, proc.name) == (os.getpid(), False, b") Z 1 1 (x")


def test_a_zombie_is_gone_until_it_is_reaped():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert proctree.read(process.pid).gone
    assert process.pid in proctree.children(os.getpid())
    process.wait()
    assert proctree.read(process.pid) is None


def test_a_process_whose_first_thread_has_ended_is_not_gone():
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print(flush=True);"
    code += "ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for _ in range(1000):
            if b") Z " in proctree._content(f"/proc/{process.pid}/stat"):
                break
            os.sched_yield()
        proc = proctree.read(process.pid)
        process.kill()
    assert not proc.gone


def test_variables_are_told_apart_by_their_whole_name(child):
    assert proctree.variable(child.pid, "MARK") == "a=b"
    assert proctree.variable(child.pid, "MAR") is None


@pytest.mark.parametrize("lists", [True, False], ids=["children-files", "whole-scan"])
def test_descendants_come_after_their_parents(monkeypatch, lists):
    if lists and not proctree._lists_children():
        pytest.skip("this kernel has no lists of children")
    monkeypatch.setattr(proctree, "_lists_children", lambda: lists)
    line = f"(sleep {unique()} & sleep {unique()} & echo up; wait) & wait"
    with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()
        found = proctree.descendants(process.pid)
        again = proctree.children(process.pid)
        os.killpg(process.pid, 9)
    seen = {process.pid}
    for proc in found:
        assert proc.parent in seen
        seen.add(proc.pid)
    assert len(found) == 3
    assert again == [found[0].pid]


def test_a_program_that_is_just_being_started_has_its_environment():
    """The kernel shows none for a moment; without waiting it out, one in seven looks empty."""
    for _ in range(100):
        process = subprocess.Popen(["/bin/sleep", unique()], env={"MARK": "here"})
        try:
            assert proctree.variable(process.pid, "MARK") == "here"
        finally:
            process.kill()
            process.wait()


def test_long_environments_and_lists_are_read_whole():
    env = {f"VAR{number}": "x" * 1000 for number in range(200)} | {"LAST": "here"}
    process = subprocess.Popen(["/bin/sleep", unique()], env=env)
    try:
        assert proctree.variable(process.pid, "LAST") == "here"
    finally:
        process.kill()
        process.wait()


def test_many_children_are_all_listed():
    processes = [subprocess.Popen(["/bin/sleep", unique()]) for _ in range(150)]
    try:
        assert {process.pid for process in processes} <= set(proctree.children(os.getpid()))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_command_line_for_people_is_one_short_line_without_control_characters():
    process = subprocess.Popen(["/bin/sleep", "60", "\x1b[31m\n" + "y" * 200], stderr=subprocess.DEVNULL)
    try:
        shown = proctree.command_line(process.pid, 40)
    finally:
        process.kill()
        process.wait()
    assert shown.isprintable() or shown == ""
    assert len(shown) <= 40
