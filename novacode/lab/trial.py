"""Carrying a point out: the run, the strike, the next run, and everything that is needed to judge them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, assert_never

import attrs
import trio

from novacode.authority.approvals import Answer, Receipt
from novacode.lab.mishaps import parse_mishap
from novacode.lab.phases import phase_of, under_way
from novacode.lab.point import How, Point
from novacode.lab.scenario import Scenario
from novacode.lab.schedule import Schedule, run_scheduled
from novacode.lab.stage import Stage
from novacode.sessions.fold import Fold
from novacode.sessions.lines import FORMAT
from novacode.sessions.loaded import Loaded
from novacode.sessions.record import Record, is_kept
from novacode.values.events import ApprovalAsked, ApprovalClosed, RunEnded, Stamped
from novacode.values.ids import CallId
from novacode.values.serial import VERSION, dump_stamped

__all__ = ["Trial", "carry_out", "folded", "phases_by_step"]

E = TypeVar("E")

_BETWEEN = 2  # steps from stopping a call to stopping its run, where both are stopped


@attrs.define(eq=False)
class Trial:
    """What a point came to. The counts `…_at_end` are taken when the first run is over and the next has not begun."""

    point: Point
    stage: Stage
    steps: int = 0
    hung: bool = False
    crash: BaseException | None = None
    ended: RunEnded | None = None
    raised: Exception | None = None
    caught: bool = False
    struck: bool = False
    struck_run: bool = False
    over_when_struck: bool = False
    struck_at: float | None = None
    struck_call: str = ""
    phase: str = ""
    written_at_strike: int = 0
    crashed_at: int | None = None
    first_is_over: bool = False
    quiet_at: float | None = None
    alive_at_end: tuple[str, ...] = ()
    tasks_left: int = 0
    pending_at_end: int = 0
    streams_at_end: int = 0
    log_at_end: int = 0
    events_at_end: int = 0
    written_at_end: int = 0
    unrecorded: list[Stamped] = attrs.field(factory=list)
    loaded: Loaded | None = None
    next_ended: RunEnded | None = None
    next_raised: Exception | None = None
    asked_again: bool = False
    receipts: list[Receipt] = attrs.field(factory=list)
    _kinds: dict[type[Any], list[tuple[float, Any]]] | None = None

    @property
    def log(self) -> list[str]:
        """What happened, in order."""
        return self.stage.log

    @property
    def events(self) -> Sequence[Stamped]:
        """What was said, in order."""
        return self.stage.events

    @property
    def first_log(self) -> Sequence[str]:
        """What happened until the first run was over."""
        return self.log[: self.log_at_end]

    @property
    def first_events(self) -> Sequence[Stamped]:
        """What was said until then."""
        return self.events[: self.events_at_end]

    def timed(self, kind: type[E]) -> list[tuple[float, E]]:
        """Return the events of one class with their times, in order."""
        if self._kinds is None:
            self._kinds = {}
            for stamped in self.events:
                self._kinds.setdefault(type(stamped.event), []).append((stamped.at, stamped.event))
        return self._kinds.get(kind, [])

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class, in order."""
        return [event for _, event in self.timed(kind)]

    @property
    def trace(self) -> str:
        """A hash of everything that happened and was said, with its times: the same for the same point, always."""
        said = [(stamped.seq, stamped.run_id, stamped.at, stamped.event) for stamped in self.events]
        return hashlib.blake2b(repr((self.log, said)).encode("utf-8", "replace"), digest_size=8).hexdigest()


def carry_out(scenario: Scenario, point: Point) -> Trial:
    """Do what `point` says, and return what it came to. Only what cannot even be set up is raised."""
    mishap = parse_mishap(point.mishap)
    # Made outside of trio's run: what cannot be made is then the caller's to know, and no step is spent on it.
    trial = Trial(point, scenario.stage(mishap))
    outside = trio.CancelScope()
    main = functools.partial(_play, trial, outside)
    try:
        ran = run_scheduled(main, Schedule(point.schedule, point.seed), _acts(trial, outside))
    except (Exception, trio.TrioInternalError) as crash:  # noqa: BLE001 - the runtime under test failed; it is judged
        trial.crash = crash
    else:
        trial.steps, trial.hung = ran.steps, ran.hung
    return trial


def phases_by_step(scenario: Scenario, point: Point, most: int = 20_000) -> list[str]:
    """Return what the run of `point`, with nobody stopping it, is at before each of its steps; empty after its end."""
    trial = Trial(point, scenario.stage(parse_mishap(point.mishap)))
    phases: list[str] = []

    def look() -> None:
        phases.append("" if trial.first_is_over else phase_of(trial.stage))

    ran = run_scheduled(
        functools.partial(_play, trial, trio.CancelScope()),
        Schedule(point.schedule, point.seed),
        dict.fromkeys(range(1, most), look),
    )
    return phases[: ran.steps]


def _acts(trial: Trial, outside: trio.CancelScope) -> dict[int, Callable[[], object]]:
    step = trial.point.step
    if step is None:
        return {}
    acts: dict[int, Callable[[], object]] = {step: functools.partial(_strike, trial, outside)}
    if trial.point.how is How.BOTH:
        acts[step + _BETWEEN] = functools.partial(_strike_run, trial)
    return acts


def _strike(trial: Trial, outside: trio.CancelScope) -> None:
    """Do to the run what the point says, where there is something left that it can be done to."""
    if trial.first_is_over:
        return
    how = trial.point.how
    chosen = _chosen(trial) if how in (How.CALL, How.BOTH) else ""
    phase = phase_of(trial.stage, chosen)
    match how:
        case How.CALL | How.BOTH:
            hit = _strike_call(trial, chosen)
        case How.RUN:
            hit = _strike_run(trial)
        case How.OUTSIDE | How.CRASH:
            trial.crashed_at = len(trial.events) if how is How.CRASH else None
            hit = _note_strike(trial)
            outside.cancel()
        case _:
            assert_never(how)
    if hit:
        trial.written_at_strike = len(trial.stage.written)
        trial.struck, trial.struck_at, trial.phase, trial.struck_call = True, trio.current_time(), phase, chosen


def _strike_call(trial: Trial, call_id: str) -> bool:
    active = trial.stage.agent.active
    if active is None or not call_id:
        return False
    trial.log.append(f"strike {call_id}")
    return active.stop_call(CallId(call_id))


def _strike_run(trial: Trial) -> bool:
    return not trial.first_is_over and trial.stage.agent.active is not None and _note_strike(trial, cancel=True)


def _note_strike(trial: Trial, *, cancel: bool = False) -> bool:
    trial.struck_run = True
    trial.over_when_struck = "run ended" in trial.log
    trial.log.append("strike")
    if cancel:
        trial.stage.agent.cancel("the lab")
    return True


def _chosen(trial: Trial) -> str:
    going = under_way(trial.stage.events)
    if trial.point.call:
        return trial.point.call if trial.point.call in going else ""
    return going[(trial.point.step or 0) % len(going)] if going else ""


async def _play(trial: Trial, outside: trio.CancelScope) -> None:
    stage = trial.stage
    stage.agent.bus.subscribe(functools.partial(_look, trial))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.person)
        before = trio.lowlevel.current_statistics().tasks_living
        try:
            with outside:
                trial.ended = await stage.agent.run(stage.prompt)
        except Exception as error:  # noqa: BLE001 - judged like everything else
            trial.raised = _alone(error)
        _take_stock(trial, before)
        trial.caught = outside.cancelled_caught
        if trial.point.step is not None:
            await _play_on(trial)
        nursery.cancel_scope.cancel()


def _alone(error: Exception) -> Exception:
    """Return an error that was beside a cancellation without the group it came in."""
    return error.exceptions[0] if isinstance(error, ExceptionGroup) and len(error.exceptions) == 1 else error


def _look(trial: Trial, stamped: Stamped) -> None:
    """See an event as a face does: whatever a face sees must be on record by then."""
    events = trial.stage.events
    if not events or events[-1] is not stamped:
        trial.unrecorded.append(stamped)


def _take_stock(trial: Trial, tasks_before: int) -> None:
    stage = trial.stage
    trial.first_is_over = True
    trial.quiet_at = trio.current_time()
    trial.alive_at_end = tuple(sorted(stage.alive))
    trial.tasks_left = trio.lowlevel.current_statistics().tasks_living - tasks_before
    closed = {stamped.event.approval_id for stamped in stage.events if isinstance(stamped.event, ApprovalClosed)}
    trial.pending_at_end = sum(approval_id not in closed for _, approval_id in _questions(stage.events))
    trial.streams_at_end = stage.streams
    trial.log_at_end = len(stage.log)
    trial.events_at_end = len(stage.events)
    trial.written_at_end = len(stage.written)


def _questions(events: Sequence[Stamped]) -> list[tuple[str, str]]:
    return [
        (stamped.run_id, stamped.event.approval_id) for stamped in events if isinstance(stamped.event, ApprovalAsked)
    ]


async def _play_on(trial: Trial) -> None:
    """Start a new run on the same conversation; while its question is open, answer the old ones late."""
    stage = trial.stage
    if trial.crashed_at is not None:
        trial.loaded = folded(stage.events[: trial.crashed_at])
        stage.agent.talk.history = trial.loaded.history
    old = _questions(stage.events)
    trial.asked_again = bool(old)
    prompt = stage.next_act(asking=trial.asked_again)
    asked = trio.Event()

    def on(stamped: Stamped) -> None:
        if isinstance(stamped.event, ApprovalAsked):
            asked.set()

    stage.agent.bus.subscribe(on)
    async with trio.open_nursery() as nursery:
        if trial.asked_again:
            nursery.start_soon(_click_late, trial, old, asked)
        try:
            trial.next_ended = await stage.agent.run(prompt)
        except Exception as error:  # noqa: BLE001 - judged like everything else
            trial.next_raised = error
        nursery.cancel_scope.cancel()


async def _click_late(trial: Trial, old: Sequence[tuple[str, str]], asked: trio.Event) -> None:
    await asked.wait()
    agent = trial.stage.agent
    for run_id, approval_id in old:
        trial.receipts.append(agent.answer(run_id, approval_id, Answer(allowed=True, by="an old page")))
    run_id, approval_id = _questions(trial.stage.events)[-1]
    agent.answer(run_id, approval_id, Answer(allowed=False, by="the right page"))


def folded(events: Sequence[Stamped]) -> Loaded:
    """Return what a session would be read back as whose journal was kept of `events`."""
    fold = Fold("the lab's journal")
    fold.feed(Record(1, "", {"format": FORMAT, "version": VERSION}))
    for line, stamped in enumerate(events, 2):
        if is_kept(stamped.event):
            data = dump_stamped(stamped)
            fold.feed(Record(line, str(data["type"]), data))
    return fold.close()
