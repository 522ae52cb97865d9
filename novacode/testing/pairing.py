"""Calls and results one to one: asserting it of histories, events, session files and messages of other agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from novacode.sessions.check import Report, check_session, is_session
from novacode.sessions.transcripts import judge, read_transcript
from novacode.values.events import CallBroken, CallReady, CallSettled, Stamped
from novacode.values.history import History

__all__ = ["assert_paired"]


def assert_paired(what: object) -> None:
    """Fail, naming the places, unless every call in `what` has exactly one result.

    `what` is a `History`, events (`Stamped`), anything that has `events` and `history` (a `Played`), the path of a
    session or of a transcript, or a list of messages as the Anthropic or OpenAI APIs take them.
    """
    __tracebackhide__ = True
    problems = _problems(what)
    if problems:
        raise AssertionError("calls and results are not one to one:\n" + "\n".join(f"  {text}" for text in problems))


def _problems(what: object) -> list[str]:
    if isinstance(what, History):
        return []  # it cannot be built otherwise
    if isinstance(what, str | Path):
        return _told(_report(Path(what)))
    if hasattr(what, "events") and hasattr(what, "history"):
        return _problems(what.history) + _in_events(what.events)
    if isinstance(what, Iterable):
        items = list(what)
        if items and all(isinstance(item, Stamped) for item in items):
            return _in_events(items)
        if all(isinstance(item, Mapping) for item in items):
            return _in_messages(items)
    raise TypeError(f"{what!r} is nothing that has calls and results: a History, events, messages, or a path")


def _report(path: Path) -> Report:
    return check_session(path) if is_session(path) else judge(read_transcript(path))


def _told(report: Report) -> list[str]:
    return [f"{problem.place}: {problem.text}" for problem in report.problems]


def _in_events(events: Sequence[Stamped]) -> list[str]:
    made = Counter(s.event.call.id for s in events if isinstance(s.event, CallReady | CallBroken))
    settled = Counter(s.event.result.call_id for s in events if isinstance(s.event, CallSettled))
    return [
        f"{call_id}: {made[call_id]} calls and {settled[call_id]} results"
        for call_id in dict.fromkeys((*made, *settled))
        if made[call_id] != settled[call_id]
    ]


def _in_messages(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "messages.json"
        path.write_text(json.dumps(messages), encoding="utf-8")
        return _told(judge(read_transcript(path)))
