"""The open questions of a run, as clients see them, and what their answers come to.

An answer counts only where it names an open question of the active run. Looking and answering is one step without a
checkpoint, and the run's own desk has the last word.
"""

from __future__ import annotations

import attrs

from novacode.app.rule_store import personal_file
from novacode.app.setup import Setup
from novacode.app.shell_lines import analyse
from novacode.authority.approvals import Answer, Receipt, Scope
from novacode.authority.rules import Decision, parse_rule
from novacode.engine.agent import Agent
from novacode.engine.run import Run
from novacode.errors import NovaError
from novacode.remote.protocol import Cancel, PermissionResponse
from novacode.values.events import ApprovalAsked, ApprovalClosed
from novacode.values.parts import JSON
from novacode.values.serial import dump_event

__all__ = ["Questions", "ignored"]

_SCOPES = {"allow": Scope.ONCE, "allowSession": Scope.SESSION, "allowAlways": Scope.ALWAYS}
_EDITS = ("edit", "write")
_STALE = "It is for a run that is not under way: nothing was changed."
_WORDS = {
    "missing_run": "It names no run, and so none is meant: nothing was changed.",
    "missing_id": "It names no question: nothing was changed.",
    "stale_run": _STALE,
    "unknown": "This run has no such question: nothing was changed.",
}


@attrs.define
class Questions:
    """Of one run: what is known of those that are closed, and of those that are open what took time to find out."""

    _closed: dict[str, ApprovalClosed] = attrs.field(factory=dict)
    _items: dict[str, JSON] = attrs.field(factory=dict)

    def closed(self, event: ApprovalClosed) -> None:
        """Take note that a question is gone."""
        self._closed[event.approval_id] = event
        self._items.pop(event.approval_id, None)

    def items(self, run: Run, setup: Setup) -> list[JSON]:
        """Return what clients need to see of each open question, oldest first."""
        return [self._item(asked, run, setup) for asked in run.kit.desk.pending]

    def _item(self, asked: ApprovalAsked, run: Run, setup: Setup) -> JSON:
        if asked.approval_id not in self._items:
            self._items[asked.approval_id] = _item(asked, run, setup)
        return self._items[asked.approval_id]

    def answer(self, agent: Agent, given: PermissionResponse, by: str) -> dict[str, JSON]:
        """Take an answer and return the `receipt`, the `ignored` or the `error` for who sent it. Synchronous."""
        run = agent.active
        if not given.run_id:
            return ignored(given, "missing_run")
        if not given.id:
            return ignored(given, "missing_id")
        if run is None or run.id != given.run_id:
            return ignored(given, "stale_run")
        if given.id in self._closed:
            return self._already(given)
        asked = next((one for one in run.kit.desk.pending if one.approval_id == given.id), None)
        if asked is None:
            return ignored(given, "unknown")
        answer = _answer(asked, given, by)
        if isinstance(answer, dict):
            return answer
        match agent.answer(given.run_id, given.id, answer):
            case Receipt.ACCEPTED:
                return {
                    "type": "receipt",
                    "re": "permission_response",
                    "ref": given.ref,
                    "id": given.id,
                    "runId": given.run_id,
                    "decision": "allow" if answer.allowed else "deny",
                    "rules": list(answer.rules),
                }
            case Receipt.ALREADY:
                return self._already(given)
            case receipt:
                return ignored(given, receipt.value)

    def _already(self, given: PermissionResponse) -> dict[str, JSON]:
        closed = self._closed.get(given.id)
        decision, by = (closed.decision, closed.by) if closed is not None else ("", "")
        if decision == "abandoned":
            text = "This question was withdrawn, because its call or its run is being stopped: nothing was changed."
        else:
            text = f"This question was answered already: {decision}, by {by}. Nothing was changed."
        return {**ignored(given, "already"), "decision": decision, "by": by, "text": text}


def ignored(given: PermissionResponse | Cancel, reason: str) -> dict[str, JSON]:
    """Return the `ignored` message for something that changed nothing."""
    answer = isinstance(given, PermissionResponse)
    return {
        "type": "ignored",
        "re": "permission_response" if answer else "cancel",
        "ref": given.ref,
        "id": given.id if isinstance(given, PermissionResponse) else given.call_id,
        "runId": given.run_id,
        "reason": reason,
        "text": _WORDS.get(reason, _STALE),
    }


def _answer(asked: ApprovalAsked, given: PermissionResponse, by: str) -> Answer | dict[str, JSON]:
    """Return the decision that `given` is; an `error` where a rule is to be kept that cannot be. Unknown words deny."""
    scope = _SCOPES.get(given.response)
    if scope is None:
        return Answer(allowed=False, by=by, words=given.reason)
    if scope is Scope.ONCE:
        return Answer(allowed=True, by=by)
    rules = tuple(line.strip() for line in (given.rule or asked.rule).splitlines() if line.strip())
    if not rules:
        return _error(given, "no_rule", "no rule can be kept for this call; it can be allowed once, or denied")
    try:
        for rule in rules:
            parse_rule(rule, Decision.ALLOW, by)
    except NovaError as error:
        return _error(given, "bad_rule", f"{error} The question is still open.")
    return Answer(allowed=True, by=by, scope=scope, rules=rules)


def _error(given: PermissionResponse, code: str, text: str) -> dict[str, JSON]:
    return {"type": "error", "code": code, "text": text, "ref": given.ref, "fatal": False}


def _item(asked: ApprovalAsked, run: Run, setup: Setup) -> JSON:
    call = dump_event(asked)["call"]
    command = asked.call.arguments.get("command") if asked.call.name == "shell" else None
    stored = personal_file(setup.home, setup.rules_of or setup.cwd)
    return {
        "id": asked.approval_id,
        "runId": run.id,
        "call": call,
        "reason": asked.reason,
        "summary": asked.summary,
        "details": asked.details,
        "diff": asked.details if asked.call.name in _EDITS else "",
        "commands": [one.text for one in analyse(command).commands] if isinstance(command, str) else [],
        "rule": asked.rule,
        "storedIn": str(stored) if asked.rule else "",
    }
