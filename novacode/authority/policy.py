"""From a call, its effects, the mode and the rules to a verdict. Pure: it decides and does nothing.

Deny beats ask beats allow, whatever their source. What no rule decides, the mode does. The only look at the world is
the resolution of paths, which is what they are judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from novacode.authority.analysis import Analysis
from novacode.authority.modes import Mode, parse_mode
from novacode.authority.rules import Decision, Rule
from novacode.authority.suggest import would_allow
from novacode.tools.base import Effects
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

if TYPE_CHECKING:
    from novacode.authority.case import Need

__all__ = ["Allow", "Ask", "Deny", "Mode", "Policy", "Verdict", "parse_mode"]


@attrs.frozen
class Allow:
    """The call may run. `granted_by` names the rules and the mode in words, `rules` are the rules among them."""

    granted_by: str
    rules: tuple[Rule, ...] = ()


@attrs.frozen
class Deny:
    """The call must not run. `rule` is the text of the rule, empty where the mode decided."""

    reason: str
    rule: str = ""
    source: str = ""


@attrs.frozen
class Ask:
    """Somebody has to decide. `rule_to_store` are the narrowest rules that would cover the call; none may be able to.

    `would_allow` says so for a place where nobody can be asked, and is empty where no rule can allow the call.
    `rule` is the text of the ask rule, if one decided.
    """

    reason: str
    rule_to_store: tuple[Rule, ...] = ()
    would_allow: str = ""
    rule: str = ""
    source: str = ""


Verdict = Allow | Deny | Ask


@attrs.frozen(eq=False, repr=False)
class Policy:
    """The mode and the rules of a run. `changes` are the tools that change something; a shell line is seen as well.

    `analyse` takes a shell line apart; it is handed in because it may start a process to do so.
    """

    mode: Mode
    rules: tuple[Rule, ...]
    analyse: Callable[[str], Analysis]
    changes: frozenset[str] = frozenset({"edit", "write", "shell"})

    def with_rule(self, rule: Rule) -> Policy:
        """Return the policy with one more rule."""
        return attrs.evolve(self, rules=(*self.rules, rule))

    def with_mode(self, mode: Mode) -> Policy:
        """Return the policy in another mode."""
        return attrs.evolve(self, mode=mode)

    def judge(self, call: ToolCall, effects: Effects, workspace: Workspace) -> Verdict:
        """Decide about `call`, whose effects are `effects`. Raises nothing for odd arguments: what is unclear asks."""
        analysis = None if effects.command is None else self.analyse(effects.command)
        # Imported with the first call that is judged: a run without calls starts 10 ms sooner.
        from novacode.authority.case import Case, Need

        case = Case(self.mode, self.rules, self.changes, call, effects, workspace, analysis)
        denied = case.matched(Decision.DENY)
        if denied is not None:
            return Deny(f"denied by the rule {denied.text} ({denied.source})", denied.text, denied.source)
        if self.mode is Mode.PLAN and (changing := case.changing()):
            return Deny(f"plan mode changes nothing: {changing}")
        asked = case.matched(Decision.ASK)
        if asked is not None:
            return Ask(f"the rule {asked.text} asks ({asked.source})", rule=asked.text, source=asked.source)
        hidden = case.hidden()
        if self.mode is Mode.BYPASS and not hidden:
            return _settled([Need("mode bypass"), *case.opaque()])
        unclear = hidden or (analysis.unparsed if analysis is not None else None)
        return Ask(unclear) if unclear else _settled(case.needs())


def _settled(needs: Sequence[Need]) -> Verdict:
    """Allow where nothing is missing, else ask with the rules that would give all of it."""
    missing = [need for need in needs if need.missing]
    if not missing:
        used = dict.fromkeys(need.rule for need in needs if need.rule is not None)
        return Allow(", ".join(dict.fromkeys(need.grant for need in needs)), tuple(used))
    rules = tuple(need.rule for need in missing if need.rule is not None)
    if len(rules) < len(missing):
        rules = ()  # half of what is needed would not allow it, and must not be stored for nothing
    if any(len(rule.text.splitlines()) > 1 for rule in rules):
        rules = ()  # rules are shown and taken back one a line: a line break in a name would make it several
    rules = tuple(dict.fromkeys(rules))
    return Ask("; ".join(dict.fromkeys(need.missing for need in missing)), rules, would_allow(rules))
