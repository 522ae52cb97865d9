"""The policy in force, and the one place where it changes while a session goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from novacode.authority.approvals import Scope
from novacode.authority.policy import Mode, Policy, Verdict
from novacode.authority.rules import Decision, parse_rule
from novacode.tools.base import Effects
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["Permissions"]


class Permissions:
    """Judges calls by the policy in force at that moment; what a person allows for longer changes it.

    `store` writes a rule that is to hold always, and returns where it was stored; without it such a rule holds for
    the session.
    """

    def __init__(self, policy: Policy, store: Callable[[str], str] | None = None) -> None:
        self.policy = policy
        self._store = store

    def judge(self, call: ToolCall, effects: Effects, workspace: Workspace) -> Verdict:
        """Return what the policy in force says of `call`. Synchronous, no effect."""
        return self.policy.judge(call, effects, workspace)

    def unreadable(self, tool: str, workspace: Workspace) -> Callable[[Path], bool] | None:
        """Return what tells the files that `tool` must leave out where it goes through a folder; `None` for none.

        A rule that asks counts as one that denies: nobody can be asked about each file of a search.
        """
        rules = [rule for rule in self.policy.rules if rule.decision is not Decision.ALLOW and rule.concerns(tool)]
        if not rules:
            return None
        return lambda path: any(rule.matches_path(path, workspace) for rule in rules)

    def set_mode(self, mode: Mode) -> None:
        """Change the mode; calls that are authorised from now on are judged by it."""
        self.policy = self.policy.with_mode(mode)

    def remember(self, rules: tuple[str, ...], scope: Scope) -> None:
        """Keep `rules` as allow rules for `scope`.

        Raises `SettingsError` where one cannot be read, and then keeps none; where one cannot be stored, the ones
        before it are kept.
        """
        if scope is Scope.ONCE:
            return
        for rule in tuple(parse_rule(text, Decision.ALLOW, "this session") for text in rules):
            if scope is Scope.ALWAYS and self._store is not None:
                rule = attrs.evolve(rule, source=self._store(rule.text))
            self.policy = self.policy.with_rule(rule)
