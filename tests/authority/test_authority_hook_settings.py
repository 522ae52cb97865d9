"""Hooks as they are written down: both forms, which events they are for, and what is refused."""

from __future__ import annotations

import pytest

from novacode.authority.hook_settings import HookSpec, OnFailure, parse_hooks
from novacode.authority.hooks import HookEvent
from novacode.errors import SettingsError

PRE, POST = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE


def test_the_flat_form():
    tables = [
        {"event": "PreToolUse", "matcher": "Bash", "command": "./a", "timeout": 5, "on_failure": "continue"},
        {"event": "session_start", "command": "./b"},
    ]
    assert parse_hooks(tables, "f") == (
        (
            HookSpec(PRE, "./a", "Bash", 5.0, OnFailure.CONTINUE, "f"),
            HookSpec(HookEvent.SESSION_START, "./b", source="f"),
        ),
        (),
    )


def test_the_nested_form():
    nested = {
        "PreToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./a"}, {"command": "./b"}]},
            {"hooks": [{"type": "command", "command": "./c", "timeout": 0.5}]},
        ],
        "PostToolUse": [{"matcher": "*", "hooks": [{"command": "./d", "on_failure": "block"}]}],
    }
    assert parse_hooks(nested, "f") == (
        (
            HookSpec(PRE, "./a", "Edit|Write", source="f"),
            HookSpec(PRE, "./b", "Edit|Write", source="f"),
            HookSpec(PRE, "./c", timeout=0.5, source="f"),
            HookSpec(POST, "./d", source="f"),
        ),
        (),
    )


def test_what_only_other_agents_know_is_left_out_with_a_warning():
    nested = {
        "SubagentStop": [{"hooks": [{"type": "prompt", "prompt": "ok?"}]}],
        "Stop": [{"hooks": [{"command": "./a", "async": True}]}],
    }
    specs, warnings = parse_hooks(nested, "f")
    assert specs == (HookSpec(HookEvent.STOP, "./a", source="f"),)
    assert warnings == (
        "f: `SubagentStop`: there is no event 'SubagentStop' here; its hooks are left out",
        "f: `Stop` hook 1: `async` is not known and is left out",
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            [{"event": "PreToolUsee", "command": "x"}],
            "`event` is 'PreToolUsee', which is no event. Did you mean PreToo",
        ),
        ([{"command": "x"}], "`event` is None, which is no event. There are PreToolUse, PostToolUse"),
        ([{"event": "Stop"}], "hook 1: `command` is None; it must be a shell command"),
        ([{"event": "Stop", "command": " "}], "`command` is ' '"),
        ([{"event": "Stop", "command": ["./a"]}], "`command` is ['./a']"),
        ([{"event": "Stop", "command": "x", "timeout": 0}], "`timeout` is 0; it must be a number of seconds greater"),
        ([{"event": "Stop", "command": "x", "timeout": True}], "`timeout` is True"),
        ([{"event": "Stop", "command": "x", "timeout": float("inf")}], "`timeout` is inf"),
        (
            [{"event": "Stop", "command": "x", "on_failure": "ask"}],
            "`on_failure` is 'ask'; it must be deny or continue",
        ),
        ([{"event": "PreToolUse", "command": "x", "matcher": "*Edit"}], "`matcher` is '*Edit'; it is no regular expr"),
        ([{"event": "PreToolUse", "command": "x", "matcher": 3}], "`matcher` is 3; it must be a name"),
        ([{"event": "PreToolUse", "command": "x", "type": "http"}], "only hooks of type 'command' can be run"),
        (["x"], "hook 1 is 'x'; it must be a table"),
        ({"Stop": {"command": "x"}}, "`Stop` is {'command': 'x'}; it must be a list"),
        ({"Stop": [{"command": "x"}]}, "`hooks` of `Stop` is None; it must be a list"),
        ({"Stopp": [{"hooks": [{"command": "x"}]}]}, "Did you mean Stop?"),
    ],
)
def test_a_guard_is_not_lost_for_a_slip_of_the_pen(value, words):
    with pytest.raises(SettingsError) as caught:
        parse_hooks(value, "my.json")
    assert str(caught.value).startswith("my.json: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("matcher", "shell", "edit", "other"),
    [
        ("", True, True, True),
        ("*", True, True, True),
        ("Bash", True, False, False),
        ("shell", True, False, False),
        ("bash", True, False, False),
        ("Edit|Write", False, True, False),
        ("Write | MultiEdit", False, True, False),
        ("run_shell_command", True, False, False),
        ("Bas", False, False, False),
        ("Bash|mcp__git__push", True, False, True),
        ("mcp__.*", False, False, True),
        ("mcp__git.*push", False, False, True),
        ("^(Edit|Bash)$", True, True, False),
        (".*", True, True, True),
        ("^ell", False, False, False),
    ],
)
def test_matchers(matcher, shell, edit, other):
    spec = HookSpec(PRE, "x", matcher)
    subjects = (("Bash", "shell"), ("Edit", "edit"), ("mcp__git__push",))
    assert tuple(spec.matches(names) for names in subjects) == (shell, edit, other)


def test_a_matcher_means_nothing_for_events_about_nothing():
    assert HookSpec(HookEvent.STOP, "x", "Bash").matches(())
    assert not HookSpec(HookEvent.SESSION_START, "x", "resume").matches(("startup",))
