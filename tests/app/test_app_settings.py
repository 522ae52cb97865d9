"""Settings: which source decides, what is refused and with which words, and what a project may not do by itself."""

from pathlib import Path

import attrs
import pytest

from novacode.app.settings import Places, Settings, home_folder, load_settings, project_folder
from novacode.app.trust import TrustedFolders
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hooks import HookEvent
from novacode.authority.modes import Mode
from novacode.authority.rules import Decision, Rule
from novacode.errors import SettingsError, UsageError


@pytest.fixture
def places(tmp_path):
    for name in ("home", "work/.novacode"):
        (tmp_path / name).mkdir(parents=True)
    return Places(tmp_path / "home", tmp_path / "work")


def write(path, text):
    path.write_text(text)
    return path


def test_nothing_set_is_the_defaults(places):
    assert load_settings(places, {}) == Settings()


def test_later_sources_win_and_each_value_knows_where_it_came_from(places):
    project, local = places.project
    write(places.user, 'model = "user"\nretries = 1\noverlap = "all"\nidle_timeout = 10\nsystem_prompt = "u"\n')
    write(project, 'model = "project"\nretries = 2\noverlap = "none"\nidle_timeout = 20\n')
    write(local, 'model = "local"\nretries = 3\noverlap = "declared"\n')
    settings = load_settings(
        places, {"NOVACODE_MODEL": "environment", "NOVACODE_RETRIES": "4"}, {"model": "flag", "base_url": None}
    )
    assert settings == Settings(
        model="flag",
        retries=4,
        overlap="declared",
        idle_timeout=20.0,
        system_prompt="u",
        where={
            "model": "command line",
            "retries": "NOVACODE_RETRIES",
            "overlap": str(local),
            "idle_timeout": str(project),
            "system_prompt": str(places.user),
        },
    )


def test_limits_of_every_kind(places):
    write(places.user, "[limits]\nmax_turns = 5\nmax_seconds = 1.5\nmax_output_tokens = 100\nmax_budget_usd = 2\n")
    settings = load_settings(places, {"NOVACODE_LIMITS_MAX_TURNS": "7"})
    assert (settings.max_turns, settings.max_seconds) == (7, 1.5)
    assert (settings.max_output_tokens, settings.max_budget_usd) == (100, 2.0)


def test_rules_of_all_sources_count_with_file_and_line(places):
    TrustedFolders(places.home).add(places.cwd)
    (project, _) = places.project
    write(places.user, '[permissions]\nallow = [\n  "shell(git log:*)",\n  "read",\n]\n')
    write(project, '[permissions]\nmode = "acceptEdits"\ndeny = ["edit(secret/**)"]\n')
    settings = load_settings(places, {}, {"permissions.ask": ["shell(make)"]})
    assert settings.mode is Mode.ACCEPT_EDITS
    assert settings.rules == (
        Rule(Decision.ALLOW, "shell", "git log:*", f"{places.user}:3"),
        Rule(Decision.ALLOW, "read", None, f"{places.user}:4"),
        Rule(Decision.DENY, "edit", "secret/**", f"{project}:3"),
        Rule(Decision.ASK, "shell", "make", "--ask"),
    )


PROJECT = """
model = "m"
base_url = "https://elsewhere.example"
[permissions]
mode = "bypass"
allow = ["shell"]
ask = ["shell(make)"]
deny = ["shell(rm:*)"]
[env]
set = { LD_PRELOAD = "x.so" }
[[hooks]]
event = "PreToolUse"
command = "touch P"
"""


def test_an_untrusted_project_can_only_make_a_run_more_careful(places):
    (project, _) = places.project
    write(project, PROJECT)
    settings = load_settings(places, {})
    assert settings == Settings(
        model="m",
        rules=(
            Rule(Decision.ASK, "shell", "make", f"{project}:7"),
            Rule(Decision.DENY, "shell", "rm:*", f"{project}:8"),
        ),
        where={key: str(project) for key in ("model", "permissions.ask", "permissions.deny")},
        warnings=settings.warnings,
    )
    (warning,) = settings.warnings
    for key in ("base_url", "env.set", "hooks", "permissions.allow", "permissions.mode"):
        assert f"`{key}`" in warning
    assert f'{places.home / "trusted.toml"}: folders = ["{places.cwd}"]' in warning


def test_a_trusted_project_decides(places):
    TrustedFolders(places.home).add(places.cwd.parent)
    write(places.project[0], PROJECT)
    settings = load_settings(places, {})
    assert (settings.mode, settings.base_url, len(settings.rules)) == (Mode.BYPASS, "https://elsewhere.example", 3)
    assert settings.env_set == {"LD_PRELOAD": "x.so"}
    assert settings.hooks == (HookSpec(HookEvent.PRE_TOOL_USE, "touch P", source=str(places.project[0])),)
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("retries = -1", "`retries` is -1; it must be a whole number of 0 or more"),
        ("retries = true", "`retries` is True"),
        ('retries = "many"', "`retries` is 'many'"),
        ("[limits]\nmax_turns = 0", "`limits.max_turns` is 0; it must be a whole number of 1 or more"),
        ("[limits]\nmax_seconds = nan", "`limits.max_seconds` is nan"),
        ("model = 5", "`model` is 5"),
        ('base_url = "example.org"', "`base_url` is 'example.org'"),
        ('overlap = "some"', "declared, all or none"),
        ('[permissions]\nmode = "god"', "default, accept-edits, plan or bypass"),
        ('[permissions]\nallow = "((("', "'(((' is not a permission rule"),
        ("[permissions]\nallow = [1]", "`permissions.allow` is [1]"),
        ("hooks = 1", "`hooks` is 1"),
        ("[env]\nset = { A = 1 }", "`env.set` is {'A': 1}"),
        ("model = ", "is not valid TOML"),
    ],
)
def test_a_wrong_value_is_named_with_its_file_and_what_was_expected(places, text, words):
    write(places.user, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(places, {})
    assert str(places.user) in str(caught.value)
    assert words in str(caught.value)


def test_a_file_that_is_not_text_is_refused(places):
    places.user.write_bytes(b'model = "\xff"')
    with pytest.raises(SettingsError, match="not UTF-8 text: byte 9 is 0xff"):
        load_settings(places, {})


def test_a_byte_order_mark_is_no_mistake(places):
    places.user.write_bytes(b'\xef\xbb\xbfmodel = "m"\r\n')
    assert load_settings(places, {}).model == "m"


def test_wrong_variables_and_flags_are_told_apart(places):
    with pytest.raises(SettingsError, match="NOVACODE_RETRIES: `retries` is 'x'"):
        load_settings(places, {"NOVACODE_RETRIES": "x"})
    with pytest.raises(UsageError, match=r"command line: `limits\.max_turns` is 0"):
        load_settings(places, {}, {"limits.max_turns": 0})
    with pytest.raises(UsageError, match="--deny"):
        load_settings(places, {}, {"permissions.deny": ["("]})


def test_br_151_unknown_keys_are_warnings_with_the_nearest_one(places):
    write(places.user, 'modell = "m"\n[limits]\nmax_turn = 3\n[wholly]\nunheard = 1\n')
    settings = load_settings(places, {"NOVACODE_MODLE": "x", "NOVACODE_HOME": "/h", "NOVACODE_ELSE": "y"})
    assert settings.warnings == (
        f"{places.user}: `modell` is not a setting and is left out. Did you mean `model`?",
        f"{places.user}: `limits.max_turn` is not a setting and is left out. Did you mean `limits.max_turns`?",
        f"{places.user}: `wholly` is not a setting and is left out.",
        "NOVACODE_MODLE is not a setting. Did you mean `NOVACODE_MODEL`?",
    )


def test_br_151_a_file_that_cannot_be_read_is_a_warning(places):
    places.user.mkdir()
    settings = load_settings(places, {})
    assert settings == Settings(warnings=(f"{places.user} cannot be read and is left out: Is a directory",))


def test_an_empty_variable_sets_nothing(places):
    assert load_settings(places, {"NOVACODE_MODEL": ""}) == Settings()


def test_lists_and_tables_in_variables_are_json_or_one_text(places):
    settings = load_settings(
        places,
        {
            "NOVACODE_PERMISSIONS_ALLOW": '["read", "shell(ls)"]',
            "NOVACODE_PERMISSIONS_DENY": "fetch",
            "NOVACODE_ENV_SET": '{"A": "1"}',
        },
    )
    assert [rule.text for rule in settings.rules] == ["read", "shell(ls)", "fetch"]
    assert settings.env_set == {"A": "1"}


def test_the_project_is_found_from_below_up_to_its_repository(places):
    deep = places.cwd / "a" / "b"
    deep.mkdir(parents=True)
    assert project_folder(deep) == deep
    write(places.project[0], "")
    assert project_folder(deep) == places.cwd
    (deep / ".novacode").mkdir()
    assert project_folder(deep) == places.cwd, "an empty folder takes the place of none"
    (places.cwd / "a" / ".git").mkdir()
    assert project_folder(deep) == deep, "what is above the repository is another project"


def test_the_users_own_folder_is_no_project(tmp_path):
    (tmp_path / ".novacode").mkdir()
    write(tmp_path / ".novacode" / "config.toml", '[permissions]\nallow = ["read"]\n')
    settings = load_settings(Places(tmp_path / ".novacode", tmp_path), {})
    assert [rule.text for rule in settings.rules] == ["read"]
    assert settings.warnings == ()


def test_where_home_is(tmp_path):
    assert home_folder({"NOVACODE_HOME": str(tmp_path), "HOME": "/h"}) == tmp_path
    assert home_folder({"HOME": "/h"}) == Path("/h/.novacode")


def test_trust_covers_what_is_below_and_resolves_links(places, tmp_path):
    trusted = TrustedFolders(places.home)
    assert not trusted.trusts(places.cwd)
    trusted.add(places.cwd)
    trusted.add(places.cwd)
    link = tmp_path / "link"
    link.symlink_to(places.cwd)
    assert trusted.trusts(link / "below")
    assert not trusted.trusts(tmp_path)
    assert trusted.path.read_text().count(str(places.cwd)) == 1


@pytest.mark.parametrize("text", ["folders = 1", 'folders = ["relative"]', "folders ="])
def test_a_trust_list_that_cannot_be_understood_is_an_error(places, text):
    write(places.home / "trusted.toml", text)
    write(places.project[0], 'model = "m"')
    with pytest.raises(SettingsError, match=r"trusted\.toml"):
        load_settings(places, {})


def test_every_field_of_settings_can_be_set_or_is_derived():
    from novacode.app.settings import field_of
    from novacode.app.settings_keys import KEYS

    derived = {"mode", "rules", "where", "warnings"}
    settable = {field_of(key) for key in KEYS if not key.startswith("permissions.")}
    assert {field.name for field in attrs.fields(Settings)} == settable | derived
