"""Where hooks come from: settings, files of JSON, installed packages; and whose of them count."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from novacode.app.hook_plugins import plugin_hooks
from novacode.app.settings import Places, load_settings
from novacode.app.trust import TrustedFolders
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hooks import HookEvent
from novacode.errors import SettingsError

PRE = HookEvent.PRE_TOOL_USE


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("home", "work/.novacode"):
        (tmp_path / name).mkdir(parents=True)
    return Places(tmp_path / "home", tmp_path / "work")


def nested(*commands: str, event: str = "PreToolUse") -> dict:
    return {event: [{"matcher": "Bash", "hooks": [{"type": "command", "command": command} for command in commands]}]}


def test_hooks_of_all_sources_add_up_in_their_order(places: Places) -> None:
    """A file of another agent is read as it is: only what is below `hooks` is looked at."""
    TrustedFolders(places.home).add(places.cwd)
    (project_json,) = places.project_hooks
    places.user.write_text('[[hooks]]\nevent = "PreToolUse"\ncommand = "user toml"\n')
    places.hooks.write_text(json.dumps({"hooks": nested("user json"), "permissions": {"allow": ["Bash"]}}))
    places.project[0].write_text('[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = "project toml"\n')
    project_json.write_text(json.dumps(nested("project json")))
    settings = load_settings(places, {})
    assert settings.hooks == (
        HookSpec(PRE, "user toml", source=str(places.user)),
        HookSpec(PRE, "user json", "Bash", source=str(places.hooks)),
        HookSpec(PRE, "project toml", source=str(places.project[0])),
        HookSpec(PRE, "project json", "Bash", source=str(project_json)),
    )
    assert (settings.rules, settings.warnings) == ((), ())


def test_hooks_of_a_project_that_is_not_trusted_do_not_count(places: Places) -> None:
    (project_json,) = places.project_hooks
    project_json.write_text(json.dumps(nested("touch P")))
    settings = load_settings(places, {})
    assert settings.hooks == ()
    (warning,) = settings.warnings
    assert warning.startswith(f"{project_json}: `hooks` is left out, because the folder is not trusted.")


def test_what_other_agents_have_more_is_a_warning(places: Places) -> None:
    places.hooks.write_text(json.dumps(nested("x", event="SubagentStop")))
    settings = load_settings(places, {})
    assert (settings.hooks, len(settings.warnings)) == ((), 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not valid JSON"),
        ("[]", "it must be a JSON object"),
        ('{"hooks": {"PreToolUs": []}}', None),
        ('{"hooks": 5}', "`hooks` is 5"),
        ('{"hooks": {"PreToolUs": [{"hooks": [{"command": "x"}]}]}}', "Did you mean PreToolUse?"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(places: Places, text: str, words: str | None) -> None:
    places.hooks.write_text(text)
    if words is None:
        assert load_settings(places, {}).hooks == ()
        return
    with pytest.raises(SettingsError) as caught:
        load_settings(places, {})
    assert str(places.hooks) in str(caught.value)
    assert words in str(caught.value)


def installed(folder: Path, name: str, entries: str, code: str = "") -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / f"{name}.py").write_text(code)


def test_hooks_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sorted by name, and imported when they are first called, not before."""
    code = "async def guard(told):\n    return {'decision': 'block', 'reason': told['tool_name']}\n"
    entries = "[novacode.hooks]\nStop.b = novacode_guarding:gone\nPreToolUse.a = novacode_guarding:guard\n"
    installed(tmp_path, "novacode_guarding", entries, code)
    installed(tmp_path, "other", "[console_scripts]\nx = other:main\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    first, second = plugin_hooks([str(tmp_path)])
    assert (first.event, first.command, first.source) == (
        PRE,
        "novacode_guarding:guard",
        "entry point PreToolUse.a",
    )
    assert second.event is HookEvent.STOP
    assert "novacode_guarding" not in sys.modules
    assert first.function is not None
    assert second.function is not None
    with pytest.raises(StopIteration) as ended:
        first.function({"tool_name": "Bash"}).send(None)  # type: ignore[union-attr]
    assert ended.value.value == {"decision": "block", "reason": "Bash"}
    with pytest.raises(AttributeError):
        second.function({})
    sys.modules.pop("novacode_guarding")


def test_no_package_with_hooks_costs_no_import(tmp_path: Path) -> None:
    installed(tmp_path, "other", "[console_scripts]\nx = other:main\n")
    assert plugin_hooks([str(tmp_path), str(tmp_path / "missing")]) == ()


def test_an_entry_point_that_names_no_event_is_refused(tmp_path: Path) -> None:
    installed(tmp_path, "novacode_wrong", "[novacode.hooks]\nguard = novacode_wrong:guard\n")
    with pytest.raises(SettingsError, match=r"'guard' \(novacode_wrong:guard\) in the group novacode.hooks must be"):
        plugin_hooks([str(tmp_path)])
