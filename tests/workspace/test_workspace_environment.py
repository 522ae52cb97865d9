"""What a command gets to see of our environment."""

from pathlib import Path

from doubles.os_processes import Heard, shell

from novacode.workspace.environment import QUIET, command_environment, is_provider_key
from novacode.workspace.processes import RealProcesses


def made(ours, extra=None, drop=is_provider_key):
    return command_environment(ours, extra or {}, cwd=Path("/here"), marker="1.2.3.4.call_1", drop=drop)


def test_ours_goes_on_and_the_quiet_settings_win():
    ours = {"PATH": "/bin", "PAGER": "less", "EDITOR": "vi", "TERM": "xterm-256color", "CI": ""}
    rest = {"PATH": "/bin", "CI": "", "PWD": "/here", "NOVACODE_CALL": "1.2.3.4.call_1"}
    assert made(ours) == {**QUIET, **rest}


def test_keys_of_providers_stay_with_us_unless_they_are_kept():
    ours = {"ANTHROPIC_API_KEY": "k", "openai_api_key": "k", "NOVACODE_TOKEN": "t", "MONKEY": "m"}
    assert made(ours).items() & ours.items() == {("MONKEY", "m")}
    assert made(ours, drop=lambda _: False).items() >= ours.items()


def test_a_key_that_a_caller_names_is_meant():
    assert made({}, {"X_API_KEY": "k"})["X_API_KEY"] == "k"


def test_a_caller_may_change_settings_but_not_the_marker():
    environment = made({}, {"PAGER": "less", "NOVACODE_CALL": "mine"})
    assert (environment["PAGER"], environment["NOVACODE_CALL"]) == ("less", "1.2.3.4.call_1")


def test_programs_that_ask_in_a_window_and_traces_of_a_terminal_are_gone():
    ours = dict.fromkeys(("SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS", "COLUMNS", "LINES", "FORCE_COLOR"), "x")
    assert made(ours).keys() & ours.keys() == set()


async def test_a_real_command_sees_it_and_ours_is_untouched(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("NOVACODE_CALL", "outer.1")
    heard = Heard()
    await RealProcesses().run(shell("env", cwd=tmp_path, env={"MINE": "1"}), heard)
    seen = dict(line.partition("=")[::2] for line in heard.data.decode().splitlines())
    assert seen["MINE"] == "1"
    assert seen["PWD"] == str(tmp_path)
    assert seen["PAGER"] == "cat"
    assert "SOME_API_KEY" not in seen
    # Below another NovaCode the marker begins with the outer one, which can so find what we leave.
    assert seen["NOVACODE_CALL"].startswith("outer.1/")
