"""The policy in force, and what a person's word changes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from novacode.authority.approvals import Scope
from novacode.authority.permissions import Permissions
from novacode.authority.policy import Allow, Ask, Deny, Mode, Policy
from novacode.authority.rules import Decision, Rule, parse_rule
from novacode.errors import SettingsError
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

WORKSPACE = Workspace(Path("/world"))


def no_shell(line: str) -> Any:
    raise AssertionError(f"nothing here is a shell line: {line}")


class Kept:
    """A store of rules that can be full after `room` of them."""

    def __init__(self, room: int = 99) -> None:
        self.rules: list[str] = []
        self._room = room

    def add(self, rule: str) -> str:
        if len(self.rules) >= self._room:
            raise SettingsError("the file cannot be written")
        self.rules.append(rule)
        return "/home/you/rules.toml"


def made(store: Kept | None = None, *rules: Rule, mode: Mode = Mode.DEFAULT) -> Permissions:
    return Permissions(Policy(mode, rules, no_shell), store.add if store else None)


def judge(permissions: Permissions, path: str = "/world/src/a.py") -> Any:
    call = ToolCall(CallId("a"), 0, "edit", {"path": path})
    return permissions.judge(call, Effects("edit", writes=(Path(path),)), WORKSPACE)


def test_an_edit_is_asked_for_until_it_is_allowed_for_the_session() -> None:
    permissions = made()
    assert isinstance(judge(permissions), Ask)
    permissions.remember(("edit(src/**)",), Scope.SESSION)
    assert isinstance(judge(permissions), Allow)
    assert [rule.source for rule in permissions.policy.rules] == ["this session"]
    assert isinstance(judge(permissions, "/world/other.py"), Ask)


def test_once_is_not_kept() -> None:
    permissions, store = made(kept := Kept()), kept
    before = permissions.policy
    permissions.remember(("edit(src/**)",), Scope.ONCE)
    assert (permissions.policy, store.rules) == (before, [])


def test_always_is_stored_and_says_where() -> None:
    store = Kept()
    permissions = made(store)
    permissions.remember(("Edit(src/**)", "edit(docs/**)"), Scope.ALWAYS)
    assert store.rules == ["edit(src/**)", "edit(docs/**)"]
    assert isinstance(judge(permissions), Allow)
    assert [rule.source for rule in permissions.policy.rules] == ["/home/you/rules.toml"] * 2


def test_always_without_a_store_holds_for_the_session() -> None:
    permissions = made()
    permissions.remember(("edit(src/**)",), Scope.ALWAYS)
    assert permissions.policy.rules == (parse_rule("edit(src/**)", Decision.ALLOW, "this session"),)


def test_a_session_rule_is_never_stored() -> None:
    store = Kept()
    made(store).remember(("edit(src/**)",), Scope.SESSION)
    assert store.rules == []


def test_of_rules_with_a_bad_one_none_is_kept() -> None:
    store = Kept()
    permissions = made(store)
    with pytest.raises(SettingsError, match="is not a permission rule"):
        permissions.remember(("edit(src/**)", "((("), Scope.ALWAYS)
    assert (permissions.policy.rules, store.rules) == ((), [])


def test_what_cannot_be_stored_is_not_in_force_either() -> None:
    store = Kept(room=1)
    permissions = made(store)
    with pytest.raises(SettingsError, match="cannot be written"):
        permissions.remember(("edit(src/**)", "edit(docs/**)"), Scope.ALWAYS)
    assert [rule.text for rule in permissions.policy.rules] == store.rules == ["edit(src/**)"]


def test_an_allowance_never_beats_a_deny_rule() -> None:
    permissions = made(None, parse_rule("edit(src/**)", Decision.DENY, "the project"))
    permissions.remember(("edit",), Scope.SESSION)
    assert isinstance(judge(permissions), Deny)


def test_br_022_the_mode_in_force_counts() -> None:
    """Changing it changes the next verdict, back and forth, and keeps what was allowed meanwhile (BR-052)."""
    permissions = made()
    permissions.remember(("edit(docs/**)",), Scope.SESSION)
    permissions.set_mode(Mode.ACCEPT_EDITS)
    assert isinstance(judge(permissions), Allow)
    permissions.set_mode(Mode.DEFAULT)
    assert isinstance(judge(permissions), Ask)
    assert isinstance(judge(permissions, "/world/docs/x.md"), Allow)
    permissions.set_mode(Mode.PLAN)
    assert isinstance(judge(permissions), Deny)
