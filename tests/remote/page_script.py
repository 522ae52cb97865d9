"""A session in messages of the wire, for the page: events are stamped one after another, and replies stand ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["Told"]

JSON = dict[str, Any]


@attrs.define
class Told:
    """Builds messages about one session. Every event method returns the `event` message to send."""

    session: str = "s-20260101-101500-a1b2c3"
    server: str = "server-1"
    runs: int = 1
    seq: int = 0
    at: float = 0.0
    events: list[JSON] = attrs.field(factory=list)
    mode: str = "default"
    title: str = "Fix the failing test"

    @property
    def run(self) -> str:
        """The id of the run under way."""
        return f"{self.session}-r{self.runs}"

    def event(self, type: str, **fields: Any) -> JSON:
        """Return an event of the run, and keep it for who comes later."""
        self.seq += 1
        made = {"seq": self.seq, "run_id": self.run, "at": self.at, "type": type, **fields}
        self.events.append(made)
        return {"type": "event", "session": self.session, "event": made}

    def began(self, prompt: str = "fix the failing test") -> JSON:
        """A run begins."""
        said = {"type": "user", "parts": [{"type": "text", "text": prompt}]}
        return self.event("run_began", prompt=said, model="demo")

    def turn(self, number: int = 1) -> JSON:
        """The model is asked."""
        return self.event("turn_began", number=number)

    def text(self, text: str, index: int = 0) -> JSON:
        """The model says some more."""
        return self.event("text_delta", index=index, text=text)

    def text_done(self, text: str, index: int = 0) -> JSON:
        """The model has said all of a part."""
        return self.event("part_done", index=index, part={"type": "text", "text": text})

    def ready(self, call_id: str, name: str, arguments: Mapping[str, Any], index: int = 1) -> JSON:
        """A call is complete."""
        call = {"type": "tool_call", "id": call_id, "index": index, "name": name, "arguments": dict(arguments)}
        return self.event("call_ready", index=index, call=call)

    def moved(self, call_id: str, name: str, phase: str) -> JSON:
        """A call enters a phase."""
        return self.event("call_moved", call_id=call_id, name=name, phase=phase)

    def output(self, call_id: str, name: str, text: str) -> JSON:
        """A running call says something."""
        return self.event("call_output", call_id=call_id, name=name, text=text)

    def settled(self, call_id: str, name: str, outcome: str, text: str, **fields: Any) -> JSON:
        """A call has its result."""
        began = fields.pop("began", outcome in ("ok", "error", "timeout"))
        content = [{"type": "text", "text": text}]
        result = {"call_id": call_id, "name": name, "outcome": outcome, "began": began, "content": content, **fields}
        return self.event("call_settled", result=result, seconds=0.2)

    def ended(self, status: str = "completed", **fields: Any) -> JSON:
        """The run is over."""
        return self.event("run_ended", status=status, reason=fields.pop("reason", status), turns=1, **fields)

    def state(self, running: bool = True, **fields: Any) -> JSON:
        """How the session stands."""
        limits = {"maxTurns": None, "maxSeconds": None, "maxOutputTokens": None, "maxBudgetUsd": None}
        run = {"runId": self.run, "prompt": self.title, "stopping": None} if running else None
        made = {
            "type": "state", "session": self.session, "title": self.title, "cwd": "/home/me/project",
            "model": "anthropic/claude", "mode": self.mode, "limits": limits, "open": True, "locked": "",
            "simulate": False, "costUsd": 0.0213, "watchers": 1, "lastSeq": self.seq, "notices": [], "run": run,
        }  # fmt: skip
        return made | fields

    def question(self, number: int, call_id: str, name: str, arguments: Mapping[str, Any], **fields: Any) -> JSON:
        """An open question."""
        call = {"type": "tool_call", "id": call_id, "index": 1, "name": name, "arguments": dict(arguments)}
        made = {
            "id": f"{self.run}-a{number}", "runId": self.run, "call": call, "reason": "no rule allows it",
            "summary": str(next(iter(arguments.values()), "")), "details": "", "diff": "", "commands": [],
            "rule": "", "storedIn": "",
        }  # fmt: skip
        return made | fields

    def approvals(self, *items: JSON) -> JSON:
        """The whole list of open questions."""
        return {"type": "approvals", "session": self.session, "items": list(items)}

    def hello(self, **fields: Any) -> JSON:
        """The greeting."""
        made = {
            "type": "hello", "version": 1, "server": self.server, "client": "client-1 (Chrome on Linux)",
            "novacode": "0.1.0", "session": self.session, "lastSeq": self.seq, "folder": "/home/me/project",
            "modes": ["default", "accept-edits", "plan", "bypass"], "simulate": False, "bounds": {},
        }  # fmt: skip
        return made | fields

    def sync(self, after: int = 0, *, reset: bool = True) -> list[JSON]:
        """Everything after `after`, as one who has been away gets it; `state` and `approvals` are not among it."""
        missed = [event for event in self.events if event["seq"] > after]
        head = {"type": "sync", "session": self.session, "reset": reset, "from": after}
        pieces = [missed[at : at + 300] for at in range(0, len(missed), 300)]
        told = [{"type": "events", "session": self.session, "events": piece} for piece in pieces]
        return [head, *told, {"type": "synced", "session": self.session, "lastSeq": self.seq}]

    def listed(self, **fields: Any) -> JSON:
        """The line of this session in the list."""
        made = {
            "session": self.session, "title": self.title, "cwd": "/home/me/project", "created": 1767262500.0,
            "last": 1767262999.0, "size": 18211, "open": True, "running": False, "approvals": 0, "watchers": 1,
        }  # fmt: skip
        return made | fields
