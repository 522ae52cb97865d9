"""Which rule decides about a call, for people and programs that ask before anything runs."""

from __future__ import annotations

import re
import shlex
from typing import assert_never

from novacode.authority.policy import Allow, Ask, Deny, Policy, Verdict
from novacode.authority.rules import ALIASES
from novacode.errors import UsageError
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import JSON, ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["explain", "explain_text", "parse_call"]

_FORM = re.compile(r"(?P<tool>[A-Za-z_][\w.-]*)(?:\((?P<text>.*)\))?", re.DOTALL)
_ARGUMENT = {
    "shell": "command",
    "read": "path",
    "edit": "path",
    "write": "path",
    "fetch": "url",
    "glob": "pattern",
    "grep": "pattern",
}


def parse_call(text: str) -> ToolCall:
    """Return the call that `text` speaks of, `shell(git push)` for instance. Raises `UsageError`.

    The text in parentheses is the tool's main argument: the command, path, address or pattern.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{text!r} is not a call; write `tool(text)`, for example `shell(git push)` or `edit(src/a.py)`"
        )
    tool = ALIASES.get(found["tool"].casefold(), found["tool"])
    arguments: dict[str, JSON] = {}
    if found["text"] is not None:
        arguments[_ARGUMENT.get(tool, "input")] = found["text"]
    return ToolCall(CallId("explain"), 0, tool, arguments)


def explain(policy: Policy, call: ToolCall, effects: Effects, workspace: Workspace) -> dict[str, JSON]:
    """Return what `permissions explain --json` prints: decision, rule, source, commands, writes, and the reason.

    `rule` is the text of the rule that decides, `None` where the mode does; for an ask it is an ask rule, and `stores`
    are the rules an "always" would keep.
    """
    verdict = policy.judge(call, effects, workspace)
    rule, source = _deciding(policy, verdict)
    analysis = None if effects.command is None else policy.analyse(effects.command)
    writes = [workspace.display(path) for path in effects.writes] + list(analysis.writes if analysis else ())
    commands: list[JSON] = (
        []
        if analysis is None
        else [
            {"text": command.text, "read_only": command.read_only, "reason": command.reason}
            for command in analysis.commands
        ]
    )
    return {
        "decision": _decision(verdict),
        "rule": rule,
        "source": source,
        "reason": verdict.granted_by if isinstance(verdict, Allow) else verdict.reason,
        "stores": [item.text for item in verdict.rule_to_store] if isinstance(verdict, Ask) else [],
        "commands": commands,
        "writes": writes,
    }


def explain_text(policy: Policy, call: ToolCall, effects: Effects, workspace: Workspace) -> str:
    """Return the same for people, a few lines without the last line's end."""
    told = explain(policy, call, effects, workspace)
    lines = [f"{told['decision']}: {told['reason']}"]
    lines.append(f"  decided by {told['rule'] or 'mode ' + policy.mode} ({told['source']})")
    for command in told["commands"]:
        kind = "read-only" if command["read_only"] else f"not read-only: {command['reason']}"
        lines.append(f"  command  {command['text']}  ({kind})")
    lines += [f"  writes   {path}" for path in told["writes"]]
    if told["stores"]:
        lines.append("  allow it with " + " ".join(f"--allow {shlex.quote(text)}" for text in told["stores"]))
    return "\n".join(lines)


def _decision(verdict: Verdict) -> str:
    match verdict:
        case Allow():
            return "allow"
        case Deny():
            return "deny"
        case Ask():
            return "ask"
        case _:
            assert_never(verdict)


def _deciding(policy: Policy, verdict: Verdict) -> tuple[str | None, str]:
    mode = f"mode {policy.mode}"
    match verdict:
        case Deny() | Ask():
            return (verdict.rule, verdict.source) if verdict.rule else (None, mode)
        case Allow():
            return (verdict.rules[0].text, verdict.rules[0].source) if verdict.rules else (None, mode)
        case _:
            assert_never(verdict)
