"""Servers as `novacode run` has them, from the settings to the end of the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).with_name("mcp_fake_server.py")


def started(folder: Path, call: str, **wish: Any) -> subprocess.Popen[bytes]:
    """Start a run of one call, with the server `f` that does what `wish` says."""
    home, work, script = folder / "home", folder / "work", folder / "script.toml"
    home.mkdir()
    work.mkdir()
    args = json.dumps(["-S", "-E", str(SERVER), json.dumps(wish)])
    (home / "config.toml").write_text(
        f"[mcp_servers.f]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\nstartup_timeout = 60\n"
    )
    script.write_text(f'[[turn]]\nsteps = [{{ {call} }}]\n[[turn]]\nsteps = [{{ text = "Done." }}]\n')
    argv = [sys.executable, "-m", "novacode", "run", "-m", f"script:{script}", "--output-format", "stream-json"]
    return subprocess.Popen(
        [*argv, "--allow", "mcp__f", "--allow", "shell", "go"],
        cwd=work,
        env={**os.environ, "NOVACODE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_a_run_offers_and_calls_the_tools_of_a_server(tmp_path: Path) -> None:
    run = started(tmp_path, 'call = "mcp__f__echo", arguments = { x = "you" }')
    out, _ = run.communicate(timeout=60)
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[0]["mcp_servers"] == [{"name": "f", "status": "connected"}]
    assert "mcp__f__echo" in lines[0]["tools"]
    assert lines[2]["message"]["content"][0]["content"] == "echo: you"
    assert (run.returncode, lines[-1]["calls"]["ok"]) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_br_013_a_signal_ends_the_program_and_a_server_that_ignores_everything(
    tmp_path: Path, number: signal.Signals
) -> None:
    pid = tmp_path / "pid"
    run = started(tmp_path, 'call = "shell", arguments = { command = "sleep 60" }', stubborn=True, pid=str(pid))
    assert run.stdout is not None
    run.stdout.readline()  # the first line comes once the server is known
    run.send_signal(number)
    run.communicate(timeout=30)
    assert run.returncode == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
