"""What overlapped in a run, and what its stop cost: one lane for each stream and each call, from the journal's events.

Pure. Times are seconds from the beginning of the run.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs

from novacode.values import events
from novacode.values.events import Phase, RunStatus, Stamped
from novacode.values.ids import CallId, RunId

__all__ = ["Kind", "Lane", "Span", "Timeline", "timelines"]


class Kind(enum.StrEnum):
    """What a task was doing."""

    ASKED = "asked"  # the model was asked and has not begun to answer
    STREAM = "stream"
    WAITING = "waiting"  # hooks, rules, a snapshot
    HOOK = "hook"
    ASKING = "asking"  # a person
    QUEUED = "queued"  # behind a call that touches the same
    RUNNING = "running"
    STOPPING = "stopping"  # between the request to stop and the end


@attrs.frozen
class Span:
    """A stretch of time in which a task did one thing."""

    kind: Kind
    begin: float
    end: float


@attrs.frozen
class Lane:
    """One task. `outcome` is how it ended, empty where that is not known."""

    title: str
    spans: tuple[Span, ...]
    outcome: str = ""
    detail: str = ""

    def of(self, kind: Kind) -> float:
        """Return how many seconds it spent so."""
        return sum(span.end - span.begin for span in self.spans if span.kind is kind)


@attrs.frozen
class Timeline:
    """One run. `stop_at` is when it was asked to stop; `None` where it was not."""

    run_id: RunId
    prompt: str
    began_at: float
    seconds: float
    lanes: tuple[Lane, ...]
    status: str = ""
    reason: str = ""
    stop_at: float | None = None


def timelines(stamped: Iterable[Stamped]) -> tuple[Timeline, ...]:
    """Return a time-line for each run in `stamped`, in order."""
    made: list[_Run] = []
    for one in stamped:
        if isinstance(one.event, events.RunBegan) or not made or made[-1].run_id != one.run_id:
            made.append(_Run(one.run_id, one.at))
        made[-1].take(one)
    return tuple(run.close() for run in made)


@attrs.define
class _Task:
    """A lane in the making: it is in `kind` since `since`."""

    title: str
    kind: Kind
    since: float
    spans: list[Span] = attrs.field(factory=list)
    outcome: str = ""
    detail: str = ""
    over: bool = False

    def to(self, kind: Kind, at: float) -> None:
        self._close(at)
        self.kind = kind

    def end(self, at: float, outcome: str) -> None:
        if not self.over:
            self._close(at)
            if not self.spans:  # it took no time and still was there
                self.spans.append(Span(self.kind, at, at))
            self.over, self.outcome = True, outcome

    def _close(self, at: float) -> None:
        if at > self.since:
            self.spans.append(Span(self.kind, self.since, at))
        self.since = at


class _Run:
    def __init__(self, run_id: RunId, began_at: float) -> None:
        self.run_id = run_id
        self._began = self._now = began_at
        self._prompt = ""
        self._tasks: list[_Task] = []
        self._calls: dict[CallId, _Task] = {}
        self._stream: _Task | None = None
        self._ended: events.RunEnded | None = None

    def take(self, stamped: Stamped) -> None:
        self._now = at = max(self._now, stamped.at)
        match stamped.event:
            case events.RunBegan(prompt=prompt):
                self._prompt = prompt.text
            case events.TurnBegan(number=number):
                self._end_stream("")
                self._stream = _Task(f"turn {number}", Kind.ASKED, at)
                self._tasks.append(self._stream)
            case events.RunEnded() as ended:
                self._end_stream("")
                self._ended = ended
            case _ if self._stream is not None and not self._stream.over:
                self._take_stream(stamped, self._stream)
            case _:
                pass
        self._take_call(stamped)

    def _take_stream(self, stamped: Stamped, stream: _Task) -> None:
        at = stamped.at
        match stamped.event:
            case events.Started(model=model):
                stream.to(Kind.STREAM, at)
                stream.detail = model
            case events.Finished(stop=stop):
                stream.end(at, stop.value)
            case events.AttemptDropped():
                stream.to(Kind.ASKED, at)
            case events.TurnCommitted():
                self._end_stream("broke off")
            case _:
                pass

    def _take_call(self, stamped: Stamped) -> None:
        at = self._now
        match stamped.event:
            case events.CallReady(call=call):
                self._open(call.id, call.name, at)
            case events.CallBroken(call=call):
                self._open(call.id, call.name, at).end(at, "broken")
            case events.ApprovalAsked(call=call) if call.id in self._calls:
                self._calls[call.id].to(Kind.ASKING, at)
            case events.ApprovalClosed(call_id=call_id) if call_id in self._calls:
                self._calls[call_id].to(Kind.WAITING, at)
            case events.CallMoved(call_id=call_id, phase=Phase.QUEUED) if call_id in self._calls:
                self._calls[call_id].to(Kind.QUEUED, at)
            case events.CallMoved(call_id=call_id, phase=Phase.RUNNING) if call_id in self._calls:
                self._calls[call_id].to(Kind.RUNNING, at)
            case events.HookRan(call_id=call_id, seconds=seconds) if call_id in self._calls:
                task = self._calls[call_id]
                kind = task.kind
                task.to(Kind.HOOK, max(task.since, at - seconds))
                task.to(kind, at)
            case events.CallSettled(result=result) if result.call_id in self._calls:
                self._calls[result.call_id].end(at, result.outcome.value)
            case _:
                pass

    def _open(self, call_id: CallId, name: str, at: float) -> _Task:
        task = self._calls[call_id] = _Task(f"{name} {call_id}", Kind.WAITING, at)
        self._tasks.append(task)
        return task

    def _end_stream(self, outcome: str) -> None:
        if self._stream is not None:
            self._stream.end(self._now, outcome)

    def close(self) -> Timeline:
        for task in self._tasks:
            task.end(self._now, "")
        stop_at = self._stop_at()
        return Timeline(
            self.run_id,
            self._prompt,
            self._began,
            self._now - self._began,
            tuple(self._lane(task, stop_at) for task in self._tasks),
            self._ended.status.value if self._ended else "",
            self._ended.reason if self._ended else "",
            None if stop_at is None else stop_at - self._began,
        )

    def _stop_at(self) -> float | None:
        """Return when the run was asked to stop, on the clock of the stamps. Its end tells how long before that was."""
        ended = self._ended
        if ended is None or (ended.status is not RunStatus.CANCELLED and not ended.reaped.ms):
            return None
        return max(self._began, self._now - ended.reaped.ms / 1000)

    def _lane(self, task: _Task, stop_at: float | None) -> Lane:
        spans: list[Span] = []
        for span in task.spans:
            begin, end = span.begin - self._began, span.end - self._began
            stop = end if stop_at is None else stop_at - self._began
            if begin < min(end, stop) or begin == end:
                spans.append(Span(span.kind, begin, min(end, stop)))
            if max(begin, stop) < end:
                spans.append(Span(Kind.STOPPING, max(begin, stop), end))
        return Lane(task.title, tuple(spans), task.outcome, task.detail)
