"""Examples that stand beside a rule, `match` and `not_match`: whether the rule does with them what its author thinks.

A rule that denies less than was meant, or allows more, is found when settings load and not when it matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never
from urllib.parse import urlsplit

from novacode.authority.analysis import Analysis
from novacode.authority.explain import parse_call
from novacode.authority.policy import Allow, Ask, Deny, Mode, Policy, Verdict
from novacode.authority.rules import Rule
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["Judge", "wrong_example"]

Judge = Callable[[str], Analysis]
"""Takes a shell line apart."""

_WRITING = frozenset({"edit", "write"})
_READING = frozenset({"read", "glob", "grep"})


def wrong_example(rule: Rule, text: str, workspace: Workspace, analyse: Judge, *, should_match: bool) -> str | None:
    """Return why `text` is a wrong example of `rule`, with the verdict that it comes to; `None` for a right one.

    `text` is the main argument of the rule's tool: a command line, a path, an address. For a rule that names other
    tools it is the name of one. It is judged in the default mode, with this rule and no other: a deny or ask rule
    matches where it decides, an allow rule where the call is allowed and the rule covers a part of it.
    """
    call, effects = _call(rule, text, workspace)
    verdict = Policy(Mode.DEFAULT, (rule,), analyse).judge(call, effects, workspace)
    if _decides(rule, verdict, call, effects, workspace, analyse) is should_match:
        return None
    wanted = "must match, and does not" if should_match else "must not match, and does"
    return f"{text!r} {wanted}: {_told(verdict)}"


def _call(rule: Rule, text: str, workspace: Workspace) -> tuple[ToolCall, Effects]:
    if rule.tool == "shell":
        return parse_call("shell"), Effects("", command=text)
    if rule.tool in _WRITING:
        return parse_call(rule.tool), Effects("", writes=(workspace.resolve(text),))
    if rule.tool in _READING:
        return parse_call(rule.tool), Effects("", reads=(workspace.resolve(text),))
    if rule.tool == "fetch":
        host = urlsplit(text).hostname if "://" in text else text.removeprefix("domain:")
        return parse_call("fetch"), Effects("", hosts=(host or text,))
    return ToolCall(CallId("example"), 0, text, {}), Effects("")


def _decides(
    rule: Rule, verdict: Verdict, call: ToolCall, effects: Effects, workspace: Workspace, analyse: Judge
) -> bool:
    match verdict:
        case Deny() | Ask():
            return verdict.rule == rule.text
        case Allow():
            # What is known to read only is allowed by itself, and the rule is not named then.
            return rule in verdict.rules or _covers(rule, call, effects, workspace, analyse)
        case _:
            assert_never(verdict)


def _covers(rule: Rule, call: ToolCall, effects: Effects, workspace: Workspace, analyse: Judge) -> bool:
    commands = () if effects.command is None else analyse(effects.command).commands
    return rule.concerns(call.name) and (
        any(rule.matches_command(command) for command in commands)
        or any(rule.matches_path(path, workspace) for path in (*effects.reads, *effects.writes))
    )


def _told(verdict: Verdict) -> str:
    match verdict:
        case Allow():
            return f"it comes to allow ({verdict.granted_by})"
        case Deny():
            return f"it comes to deny ({verdict.reason})"
        case Ask():
            return f"it comes to ask ({verdict.reason})"
        case _:
            assert_never(verdict)
