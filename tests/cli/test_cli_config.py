"""`novacode config`: what holds, where it comes from, and what a project would switch on."""

import json

import pytest
from click.testing import CliRunner

from novacode.app.settings_keys import KEYS
from novacode.app.trust import TrustedFolders
from novacode.cli import config_cmd
from novacode.errors import SettingsError, UsageError

PROJECT = """\
model = "anthropic/m"
[permissions]
mode = "bypass"
allow = ["shell(make:*)"]
deny = ["read(secret/**)"]
[env]
set = { TOKEN = "t0psecret" }
[[hooks]]
event = "PreToolUse"
command = "echo \\u001b[2K"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("NOVACODE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NOVACODE_MODEL", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".novacode").mkdir(parents=True)
    (folder / ".novacode" / "config.toml").write_text(PROJECT)
    return folder


@pytest.fixture
def run(home):
    def invoke(*arguments, stdin=None, code=0):
        result = CliRunner().invoke(
            config_cmd.command,
            [str(one) for one in arguments],
            input=stdin,
            catch_exceptions=False,
            standalone_mode=False,
        )
        assert (result.return_value or 0) == code, result.output
        return result

    return invoke


def told(run, project):
    return json.loads(run("--json", "-C", project).stdout)


def test_every_setting_is_there_with_its_value_and_source(run, project, home, monkeypatch):
    (home / "config.toml").write_text('retries = 3\n[permissions]\nallow = ["shell(ls:*)"]\n')
    monkeypatch.setenv("NOVACODE_LIMITS_MAX_TURNS", "7")
    settings = told(run, project)["settings"]
    assert set(settings) == set(KEYS)
    assert settings["retries"] == {"value": 3, "source": str(home / "config.toml")}
    assert settings["limits.max_turns"] == {"value": 7, "source": "NOVACODE_LIMITS_MAX_TURNS"}
    assert settings["model"] == {"value": "anthropic/m", "source": str(project / ".novacode" / "config.toml")}
    assert settings["overlap"] == {"value": "declared", "source": "default"}
    assert settings["permissions.allow"]["value"] == [{"rule": "shell(ls:*)", "source": f"{home / 'config.toml'}:3"}]


def test_what_is_left_out_for_want_of_trust_is_named(run, project, home):
    before = told(run, project)
    file = str(project / ".novacode" / "config.toml")
    assert before["trust"] == {
        "folder": str(project),
        "trusted": False,
        "list": str(home / "trusted.toml"),
        "left_out": [
            {"file": file, "key": key} for key in ("permissions.mode", "permissions.allow", "env.set", "hooks")
        ],
    }
    assert before["settings"]["permissions.mode"]["value"] == "default"
    TrustedFolders(home).add(project)
    after = told(run, project)
    assert (after["trust"]["trusted"], after["trust"]["left_out"]) == (True, [])
    assert after["settings"]["permissions.mode"] == {"value": "bypass", "source": file}
    assert after["settings"]["hooks"]["value"][0]["event"] == "PreToolUse"


def test_the_values_of_variables_are_not_shown(run, project, home):
    TrustedFolders(home).add(project)
    for text in (run("--json", "-C", project).stdout, run("-C", project).stdout):
        assert "TOKEN" in text
        assert "t0psecret" not in text


def test_files_that_were_read(run, project, home):
    files = {one["path"]: one["found"] for one in told(run, project)["files"]}
    assert files[str(home / "config.toml")] is False
    assert files[str(project / ".novacode" / "config.toml")] is True
    assert files[str(project / ".novacode" / "config.local.toml")] is False


def test_for_people_with_everything_visible(run, project, home):
    TrustedFolders(home).add(project)
    text = run("-C", project).stdout
    assert f"anthropic/m  ({project / '.novacode' / 'config.toml'})" in text
    assert "PreToolUse: echo \\x1b[2K" in text
    assert "\x1b" not in text


def test_warnings_are_on_stderr(run, project):
    result = run("--json", "-C", project)
    json.loads(result.stdout)
    assert f"novacode config trust {project}" in result.stderr


def test_a_file_that_cannot_be_used_is_an_error(run, home):
    (home / "config.toml").write_text("retries = -1\n")
    with pytest.raises(SettingsError, match="`retries` is -1"):
        run()


def test_trust_shows_what_it_switches_on_and_adds_the_folder(run, project, home):
    text = run("trust", project, "--yes").stdout
    for words in ("permissions.mode\n    | bypass", '"shell(make:*)"', "echo \\u001b[2K", f"{project} is trusted"):
        assert words in text
    assert "deny" not in text
    assert TrustedFolders(home).trusts(project)
    assert "is trusted already" in run("trust", project).stdout


def test_trust_is_for_the_project_a_folder_belongs_to(run, project, home):
    (project / "deep").mkdir()
    run("trust", project / "deep", "-y")
    assert TrustedFolders(home).trusts(project)


def test_nobody_to_ask_means_no(run, project, home):
    with pytest.raises(UsageError, match="--yes"):
        run("trust", project, stdin="y\n")
    assert not TrustedFolders(home).trusts(project)


@pytest.mark.parametrize(("answer", "trusted"), [("y\n", True), ("\n", False), ("n\n", False)])
def test_a_person_is_asked(run, project, home, monkeypatch, answer, trusted):
    monkeypatch.setattr(config_cmd, "_is_asked", lambda: True)
    run("trust", project, stdin=answer, code=0 if trusted else 1)
    assert TrustedFolders(home).trusts(project) is trusted


def test_folders_that_hold_everything_are_not_trusted(run, tmp_path, home):
    for folder in ("/", tmp_path):
        with pytest.raises(UsageError, match="trust the project itself"):
            run("trust", folder, "--yes")
    assert not (home / "trusted.toml").exists()
