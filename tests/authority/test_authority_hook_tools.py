"""Calls in the words that scripts for other agents expect, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.authority.hook_tools import familiar_input, familiar_name, own_arguments
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

ROOT = Workspace(Path("/nonexistent/w"))


def call(name, **arguments):
    return ToolCall(CallId("a"), 0, name, arguments)


@pytest.mark.parametrize(
    ("made", "name", "shown"),
    [
        (call("shell", command="ls", timeout=1.5), "Bash", {"command": "ls", "timeout": 1500}),
        (call("read", path="a", offset=2), "Read", {"file_path": "/nonexistent/w/a", "offset": 2}),
        (call("write", path="/x/a", content=""), "Write", {"file_path": "/x/a", "content": ""}),
        (
            call("edit", path="../a", old="o", new="n", replace_all=True),
            "Edit",
            {"file_path": "/nonexistent/a", "old_string": "o", "new_string": "n", "replace_all": True},
        ),
        (call("glob", pattern="*"), "Glob", {"pattern": "*"}),
        (
            call("grep", pattern="x", ignore_case=True, context=2, limit=3),
            "Grep",
            {"pattern": "x", "-i": True, "-C": 2, "head_limit": 3},
        ),
        (call("mcp__a__b", path="a", timeout=1), "mcp__a__b", {"path": "a", "timeout": 1}),
        (call("shell", command=3, timeout=float("inf")), "Bash", {"command": 3, "timeout": float("inf")}),
    ],
)
def test_a_call_in_familiar_words_and_back(made, name, shown):
    assert (familiar_name(made.name), familiar_input(made, ROOT)) == (name, shown)
    assert own_arguments(made, ROOT, shown) == made.arguments


def test_links_are_resolved_as_permission_does(tmp_path):
    """A guard that looks at the folder must see where the path really leads."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w/out").symlink_to("/etc")
    shown = familiar_input(call("read", path="out/passwd"), Workspace.at(tmp_path / "w"))
    assert shown == {"file_path": "/etc/passwd"}


def test_a_rewrite_is_the_whole_input_and_keeps_what_is_as_it_was():
    made = call("edit", path="a", old="o", new="n", replace_all=True)
    updated = {"file_path": "/nonexistent/w/a", "old_string": "o", "new_string": "better"}
    assert own_arguments(made, ROOT, updated) == {"path": "a", "old": "o", "new": "better"}


def test_a_rewrite_may_use_our_own_names():
    assert own_arguments(call("shell", command="x"), ROOT, {"command": "y", "timeout": 2000}) == {
        "command": "y",
        "timeout": 2.0,
    }
    assert own_arguments(call("read", path="a"), ROOT, {"path": "b"}) == {"path": "b"}


def test_a_parameter_under_two_names_is_no_rewrite():
    with pytest.raises(ValueError, match="gives `path` twice, also as `file_path`"):
        own_arguments(call("read", path="a"), ROOT, {"path": "b", "file_path": "c"})


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists)
NAMES = st.sampled_from(["shell", "read", "edit", "grep", "other"])


@given(NAMES, st.dictionaries(st.sampled_from(["command", "path", "timeout", "old", "x"]), JSON))
def test_what_a_hook_gives_back_unchanged_is_unchanged(name, arguments):
    made = call(name, **arguments)
    assert repr(own_arguments(made, ROOT, familiar_input(made, ROOT))) == repr(made.arguments)
