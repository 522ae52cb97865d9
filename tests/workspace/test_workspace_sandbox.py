"""Commands in the sandbox, with real processes: what they can write, see and reach, and that nothing outlives them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import trio
from doubles.os_processes import Heard, alive, gone, present, shell, unique

from novacode.errors import SettingsError
from novacode.grace import Grace
from novacode.workspace.base import Exit
from novacode.workspace.processes import RealProcesses
from novacode.workspace.sandbox import Sandbox
from novacode.workspace.sandbox_places import Ground, bound_sockets, ground_of
from novacode.workspace.sandbox_probe import find_bwrap, probe

_PROGRAM = find_bwrap(os.environ)
GRACE = Grace(term=0.3, kill=5)
PATIENT = Grace(term=25, kill=5)


async def _works() -> None:
    await probe(Sandbox(_PROGRAM or "", "", Ground(()), Path("/var/tmp")))


def _why_not() -> str:
    if _PROGRAM is None:
        return "needs bubblewrap"
    try:
        trio.run(_works)
    except SettingsError as error:
        return f"no sandbox here: {error}"
    return ""


_MISSING = _why_not()
pytestmark = [pytest.mark.skipif(bool(_MISSING), reason=_MISSING or "-"), pytest.mark.timeout(60)]


@attrs.frozen
class Box:
    """A sandbox over `work`, with places beside it that are none of its business."""

    root: Path
    sandbox: Sandbox

    @property
    def work(self) -> Path:
        return self.root / "work"

    def processes(self, grace: Grace = GRACE) -> RealProcesses:
        return RealProcesses(grace, sandbox=self.sandbox)

    async def says(self, line: str, **more: object) -> tuple[int, str]:
        """Run a line of shell in the folder of work; returns its exit code and its output."""
        heard = Heard()
        with trio.fail_after(20):
            ended = await self.processes().run(shell(line, self.work, **more), heard)
        assert ended.confined
        assert ended.background == ()
        return ended.code, heard.data.decode()


@pytest.fixture
def box() -> Iterator[Box]:
    """Not below `/tmp`, which is another one inside: what lies outside would not even be seen."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="novacode-test-") as folder:
        yield _box_in(Path(folder).resolve())


def _box_in(root: Path) -> Box:
    for name in ("work", "private", "beside"):
        (root / name).mkdir()
    return Box(root, Sandbox(_PROGRAM or "", "bwrap", ground_of([root / "work"]), root / "private"))


def git(folder: Path, *words: str) -> None:
    """Run git, with an identity and nothing of the machine's settings."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, env=clean)


def started(*words: str) -> subprocess.Popen[bytes]:
    """Start a program outside."""
    return subprocess.Popen(words)


async def stopped(processes: RealProcesses, line: str, folder: Path) -> bytes:
    """Cancel `line` once it has said that it is ready, and return what was heard when `run` was over."""
    heard = Heard()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(processes.run, shell(line, folder), heard)
            await heard.text(b"ready")
            nursery.cancel_scope.cancel()
    return heard.data


# What it can write.


async def test_it_writes_in_the_workspace_and_nowhere_else(box: Box) -> None:
    line = f"echo in > a.txt; for f in {box.root}/beside/x /etc/x ~/x /var/tmp/x /usr/x; do : > $f; done; echo end"
    code, text = await box.says(line)
    assert code == 0
    assert text.count("Read-only file system") + text.count("Permission denied") + text.count("No such file") == 5
    assert (box.work / "a.txt").read_text() == "in\n"
    assert not any(Path(path, "x").exists() for path in (box.root / "beside", "/etc", Path.home(), "/var/tmp", "/usr"))


@pytest.mark.parametrize(
    "line",
    [
        "chmod 777 {0}/kept",
        "rm -f {0}/kept",
        "mv {0}/kept {0}/other",
        "touch -d 2001-01-01 {0}/kept",
        "ln {0}/kept {1}/link && echo x > {1}/link",
        "ln -s {0}/kept {1}/sym && echo x > {1}/sym",
        "mount -o remount,rw / ; echo x > {0}/kept",
        "unshare -Urm sh -c 'mount -o remount,rw,bind /; mount -o remount,rw,bind {0}; echo x > {0}/kept'",
        "nsenter -t 1 -m sh -c 'echo x > {0}/kept'",
        "echo x > /proc/1/root{0}/kept",
        "{2} -c 'import os; os.chmod(\"{0}/kept\", 0o777)'",
    ],
)
async def test_what_lies_outside_is_not_changed_by_any_means(box: Box, line: str) -> None:
    """Modes and times, which a rule about writing would miss, and the ways to undo a read-only mount."""
    kept = box.root / "beside" / "kept"
    kept.write_text("kept")
    before = kept.stat()
    await box.says(line.format(kept.parent, box.work, sys.executable))
    after = kept.stat()
    assert kept.read_text() == "kept"
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert [path.name for path in kept.parent.iterdir()] == ["kept"]


async def test_tmp_is_the_sessions_own_and_stays_from_one_command_to_the_next(box: Box) -> None:
    name = f"novacode-test-{unique()}"
    assert await box.says(f"echo $TMPDIR > /tmp/{name}") == (0, "")
    assert await box.says(f"cat /tmp/{name}") == (0, "/tmp\n")
    assert not Path("/tmp", name).exists()
    assert (box.root / "private" / name).exists()


async def test_a_workspace_below_tmp_is_there() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        box = _box_in(Path(folder))
        assert await box.says("echo in > a.txt; echo beside > ../beside.txt") == (0, "")
        assert sorted(path.name for path in box.root.iterdir()) == ["beside", "private", "work"]
        assert (box.work / "a.txt").read_text() == "in\n"


async def test_an_extra_folder_is_writable(box: Box) -> None:
    ground = ground_of([box.work, box.root / "beside"])
    wider = attrs.evolve(box, sandbox=attrs.evolve(box.sandbox, ground=ground))
    assert await wider.says(f"echo x > {box.root}/beside/new") == (0, "")
    assert (box.root / "beside" / "new").exists()


async def test_the_place_for_long_outputs_is_writable_within_what_is_guarded(box: Box) -> None:
    """NovaCode's own folder may be in the workspace, when that is the home folder."""
    home = box.work / ".config" / "novacode"
    (home / "spill").mkdir(parents=True)
    sandbox = attrs.evolve(box.sandbox, ground=ground_of([box.work], [home])).with_spill(home / "spill")
    mine = attrs.evolve(box, sandbox=sandbox)
    assert await mine.says("echo x > .config/novacode/spill/out.txt") == (0, "")
    assert (await mine.says("echo x > .config/novacode/config.toml"))[0] != 0
    assert (await mine.says("mv .config other"))[0] != 0
    assert sorted(path.name for path in home.iterdir()) == ["spill"]


# What decides about later stays as it is.


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize(
    "line",
    [
        "echo 'touch pwned' > .git/hooks/pre-commit",
        "git config core.fsmonitor ./evil",
        "echo '[core]' >> .git/config",
        "mv .git other && cp -r other .git && echo evil > .git/hooks/pre-commit",
        "rm -rf .git/hooks; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
        "ln -sfn /dev/shm .git/hooks",
        "echo '[permissions]' > .novacode/config.toml",
        "mv .novacode other; mkdir .novacode; echo 'x = 1' > .novacode/config.toml",
    ],
)
async def test_it_guards_git_and_its_own_settings(box: Box, line: str) -> None:
    git(box.work, "init", "-q")
    shutil.rmtree(box.work / ".git" / "hooks", ignore_errors=True)
    (box.work / ".novacode").mkdir()
    config = (box.work / ".git" / "config").read_bytes()
    mine = attrs.evolve(box, sandbox=attrs.evolve(box.sandbox, ground=ground_of([box.work])))
    code, _ = await mine.says(line)
    assert code != 0
    assert (box.work / ".git" / "config").read_bytes() == config
    assert list((box.work / ".git" / "hooks").iterdir()) == []
    assert not (box.work / ".git" / "hooks").is_symlink()
    assert list((box.work / ".novacode").iterdir()) == []


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_git_can_commit_also_in_a_worktree(box: Box) -> None:
    """A worktree's objects are in the repository it belongs to, which is outside of it."""
    main = box.root / "beside"
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(box.work / "tree"))
    tree = box.work / "tree"
    sandbox = attrs.evolve(box.sandbox, ground=ground_of([tree]))
    heard = Heard()
    commit = "echo x > f && git add f && git -c user.name=A -c user.email=a@example.org commit -qm two"
    done = await RealProcesses(GRACE, sandbox=sandbox).run(shell(commit, tree), heard)
    assert (done, heard.data) == (Exit(0, (), confined=True), b"")
    admin = main / ".git" / "worktrees" / "tree"
    for place in (
        tree / ".git",
        main / ".git" / "hooks" / "post-commit",
        admin / "commondir",
        main / ".git" / "config",
    ):
        before = _content(place)
        evil = await RealProcesses(GRACE, sandbox=sandbox).run(shell(f"rm -f {place}; echo x > {place}", tree), heard)
        assert evil.code != 0
        assert _content(place) == before


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def test_a_git_file_that_names_a_strange_folder_opens_nothing(tmp_path: Path) -> None:
    """A command could have written it. Believed is only a repository that names the worktree itself."""
    root, strange = tmp_path / "work", tmp_path / "strange"
    for folder in (root, strange / "worktrees" / "work"):
        folder.mkdir(parents=True)
    (strange / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git").write_text(f"gitdir: {strange}/worktrees/work\n")
    (strange / "worktrees" / "work" / "commondir").write_text("../..\n")
    assert ground_of([root]).writable == (root,)
    (strange / "worktrees" / "work" / "gitdir").write_text(f"{root}/.git\n")
    assert ground_of([root]).writable == (root, strange)


def test_a_link_is_never_mounted(tmp_path: Path) -> None:
    """What a link names would be writable, and a command of an earlier session may have made it."""
    root = tmp_path.resolve() / "work"
    root.mkdir()
    (root / ".git").symlink_to(tmp_path)
    (root / ".novacode").symlink_to(tmp_path)
    (tmp_path / "config").write_text("")
    assert ground_of([root]) == Ground((root,))


# What it can see and reach.


async def test_there_is_no_network_unless_it_is_allowed(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        code, text = await box.says(line)
        assert code != 0
        assert "reached" not in text
        open_one = attrs.evolve(box, sandbox=attrs.evolve(box.sandbox, network=True))
        assert await open_one.says(line) == (0, "reached\n")


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("place", ["beside", "work/inner"])
async def test_a_daemon_outside_cannot_be_asked_to_do_it(box: Box, place: str, network: bool) -> None:
    """A read-only mount lets a socket be connected to: that of docker, say, which starts anything as root."""
    folder = box.root / place
    folder.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(folder / "daemon.sock"))
        daemon.listen()
        ground = ground_of([box.work], sockets=bound_sockets())
        mine = attrs.evolve(box, sandbox=attrs.evolve(box.sandbox, ground=ground, network=network))
        assert "reached" not in (await mine.says(_asking(folder)))[1].splitlines()
        await mine.says(f"mv {folder} {folder}-moved")
        assert "reached" not in (await mine.says(_asking(folder)))[1].splitlines()
        assert not Path(f"{folder}-moved").exists()
        outside = Heard()
        await RealProcesses(GRACE).run(shell(_asking(folder)), outside)
        assert outside.data == b"reached\n"


def _asking(folder: Path) -> str:
    connect = f'socket.socket(socket.AF_UNIX).connect("{folder}/daemon.sock")'
    return f"{sys.executable} -c 'import socket; {connect}; print(\"reached\")'"


async def test_commands_can_talk_to_each_other_in_the_workspace(box: Box) -> None:
    """A socket that a job has made is no daemon's from outside."""
    made = "import socket; made = socket.socket(socket.AF_UNIX)"
    serve = f"{made}; made.bind('own.sock'); made.listen(); print('up', flush=True); made.accept()"
    heard = Heard()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(box.processes().run, shell(f'{sys.executable} -c "{serve}"', box.work), heard)
            await heard.text(b"up")
            ask = f"{made}; made.connect('own.sock'); print('reached')"
            assert await box.says(f'{sys.executable} -c "{ask}"') == (0, "reached\n")


async def test_other_processes_are_not_seen_and_not_signalled(box: Box) -> None:
    token = unique()
    with started("sleep", token) as other:
        code, text = await box.says(f"ls /proc; cat /proc/[0-9]*/comm; kill -9 {other.pid}")
        assert code != 0
        assert "sleep" not in text
        assert other.poll() is None
        other.kill()


async def test_keys_are_dropped_there_too(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere")
    assert "sk-secret" not in (await box.says("env; cat /proc/*/environ | tr '\\0' '\\n'"))[1]
    assert await box.says("echo ${SSH_AUTH_SOCK:-none}") == (0, "none\n")


# What goes on as it does without one.


@pytest.mark.parametrize(("line", "code"), [("exit 7", 7), ("true", 0), ("kill -KILL $$", 137), ("kill -TERM $$", 143)])
async def test_the_exit_code_is_told_and_a_signal_as_a_shell_does(box: Box, line: str, code: int) -> None:
    assert await box.says(line) == (code, "")


async def test_both_streams_and_stdin_are_the_commands_own(box: Box) -> None:
    assert await box.says("echo a; echo b >&2; echo c") == (0, "a\nb\nc\n")
    assert await box.says("cat", stdin=b"x" * 300_000) == (0, "x" * 300_000)
    assert await box.says("wc -c") == (0, "0\n")
    out, err = Heard(), Heard()
    await box.processes().run(shell("echo out; echo err >&2", box.work), out, err)
    assert (out.data, err.data) == (b"out\n", b"err\n")


async def test_a_command_that_is_not_confined_runs_outside(box: Box) -> None:
    ended = await box.processes().run(shell(f": > {box.root}/beside/new", box.work, confined=False), Heard())
    assert ended == Exit(0)
    assert (box.root / "beside" / "new").exists()


async def test_many_at_a_time_do_not_mix(box: Box) -> None:
    heard = [Heard() for _ in range(8)]
    processes = box.processes()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for number, each in enumerate(heard):
                nursery.start_soon(processes.run, shell(f"echo {number}; sleep 0.05; echo {number}", box.work), each)
    assert [each.data for each in heard] == [f"{number}\n{number}\n".encode() for number in range(8)]


# Nothing outlives it.


@pytest.mark.parametrize(
    "line",
    [
        "nohup sleep {0} >/dev/null 2>&1 &",
        "nohup sleep {0} &",
        "(setsid sleep {0} &)",
        "(env -i setsid sleep {0} >/dev/null 2>&1 &)",
        "(trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; sleep {0}; :' &)",
        "for i in $(seq 10); do (setsid sleep {0} &); done",
    ],
)
async def test_what_a_command_leaves_running_ends_with_it(box: Box, line: str) -> None:
    """Not only at the end of the run: the process namespace ends, and nobody has to find anybody."""
    token = unique()
    processes = box.processes()
    heard = Heard()
    with trio.fail_after(20):
        ended = await processes.run(shell(f"{line.format(token)}\necho said", box.work), heard)
    assert (ended, heard.data) == (Exit(0, (), confined=True), b"said\n")
    assert alive(token) == []
    assert (processes.reaped.processes, processes.reaped.survivors) == (0, ())


@pytest.mark.parametrize(
    "line",
    [
        "sleep {0} & nohup sleep {0} & (setsid sleep {0} &); echo ready; sleep {0}",
        "(env -i setsid sleep {0} &); sleep 0.1; echo ready; sleep {0}",
        "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep {0}' &); echo ready; while :; do sleep {0}; done",
        "sleep {0} & kill -STOP $!; echo ready; kill -STOP $$",
        "echo ready; sleep {0} | cat; : {0}",
    ],
    ids=["daemons", "cleared", "deaf", "stopped", "pipeline"],
)
async def test_nothing_of_a_cancelled_command_is_alive(box: Box, line: str) -> None:
    token = unique()
    processes = box.processes()
    heard = await stopped(processes, line.format(token), box.work)
    assert heard.startswith(b"ready\n")
    assert alive(token) == []
    assert processes.reaped.survivors == ()
    assert processes.waiting_for() == ()


async def test_a_command_that_obeys_is_not_killed(box: Box) -> None:
    """The program that holds the sandbox up is not asked to stop: with it all would be killed at once."""
    processes = box.processes(PATIENT)
    line = "trap 'sleep 0.1; echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done"
    heard = await stopped(processes, line, box.work)
    assert heard.replace(b"Terminated\n", b"") == b"ready\nbye\n"
    assert processes.reaped.escalated == 0


async def test_a_child_keeps_its_grace_after_the_command_has_ended(box: Box) -> None:
    """`docker compose up` behind `cd x &&`: the shell ends at once, and what it has started still cleans up."""
    processes = box.processes(PATIENT)
    line = "(trap 'sleep 0.3; echo bye > done; exit' TERM; echo ready; while :; do sleep 0.01; done); echo never"
    await stopped(processes, line, box.work)
    assert (box.work / "done").read_text() == "bye\n"
    assert processes.reaped.escalated == 0


async def test_the_second_interrupt_skips_the_grace_there_too(box: Box) -> None:
    token = unique()
    processes = box.processes(PATIENT)
    heard = Heard()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(processes.run, shell(f"trap '' TERM; echo ready; sleep {token}; :", box.work), heard)
            await heard.text(b"ready")
            nursery.cancel_scope.cancel()
            nursery.start_soon(_hurry_when_stopping, processes)
    assert alive(token) == []


async def _hurry_when_stopping(processes: RealProcesses) -> None:
    with trio.CancelScope(shield=True):
        for _ in range(1000):
            if processes.waiting_for():
                break
            await trio.sleep(0.01)
        assert not any("bwrap" in line for line in processes.waiting_for())
        processes.hurry()


async def test_a_timeout_keeps_what_was_said(box: Box) -> None:
    token = unique()
    heard = Heard()
    with trio.move_on_after(1) as scope:
        await box.processes().run(shell(f"echo part; (setsid sleep {token} &); sleep {token}", box.work), heard)
    assert scope.cancelled_caught
    assert heard.data == b"part\n"
    assert alive(token) == []


_KILLED = """
import sys, trio
from pathlib import Path
from novacode.values.ids import CallId
from novacode.workspace.base import Command
from novacode.workspace.processes import RealProcesses
from novacode.workspace.sandbox import Sandbox
from novacode.workspace.sandbox_places import ground_of

work, private, program, line = sys.argv[1:]
sandbox = Sandbox(program, "", ground_of([Path(work)]), Path(private))
trio.run(RealProcesses(sandbox=sandbox).run, Command(("bash", "-c", line), Path(work), CallId("c")), lambda _: None)
"""


async def test_nothing_is_left_when_novacode_itself_is_killed(box: Box) -> None:
    """Without a sandbox nobody could: there is no process left that would."""
    token = unique()
    words = [sys.executable, "-c", _KILLED, str(box.work), str(box.root / "private"), _PROGRAM or ""]
    with started(*words, f"(env -i setsid sleep {token} &); nohup sleep {token} & sleep {token}") as killed:
        assert await present(f"sleep {token}", 3)
        killed.send_signal(signal.SIGKILL)
    assert await gone(f"sleep {token}")


@pytest.mark.slow
async def test_a_command_outlives_the_thread_that_an_idle_worker_was(box: Box) -> None:
    """The kernel takes the thread that forked for the parent; Trio's workers end after ten idle seconds."""
    heard = Heard()
    with trio.fail_after(30):
        ended = await box.processes().run(shell("sleep 12; echo end", box.work), heard)
    assert (ended, heard.data) == (Exit(0, (), confined=True), b"end\n")


# Whether there is one.


def _program(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions to create new namespace"),
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "the file system is not read-only in it"),
    ],
    ids=["forbidden", "pretended"],
)
async def test_one_that_does_not_hold_is_an_error_with_what_to_do(box: Box, text: str, said: str) -> None:
    """Believed is what the kernel shows inside, not that a program called bwrap ended with 0."""
    program = _program(box.root / "bin", text)
    with pytest.raises(SettingsError, match=said) as caught:
        await probe(attrs.evolve(box.sandbox, program=program))
    assert "run without --sandbox" in str(caught.value)


def test_a_program_in_the_workspace_is_not_taken_for_bubblewrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command could have put it there, or into a folder that a relative entry of the PATH names."""
    ours = _program(tmp_path / "ours", "exit 0")
    _program(tmp_path / "work", "exit 0")
    monkeypatch.chdir(tmp_path / "work")
    path = {"PATH": f".:{tmp_path / 'work'}:{tmp_path / 'ours'}"}
    assert find_bwrap(path, [tmp_path / "work"]) == ours
