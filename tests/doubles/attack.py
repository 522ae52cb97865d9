"""Cancel a run at every scheduling step, and judge what is left from the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import trio
from doubles.fake_model import Break, Pause, broken, call, end, say
from doubles.schedule import run_seeded
from doubles.world import World

from novacode.authority.approvals import Answer, Receipt
from novacode.engine.limits import Limits
from novacode.values.events import (
    ApprovalAsked,
    ApprovalClosed,
    CallBroken,
    CallMoved,
    CallReady,
    CallSettled,
    Phase,
    RunEnded,
    Stamped,
    TurnCommitted,
)
from novacode.values.history import Exchange
from novacode.values.request import StopReason
from novacode.values.results import REFUSED, Outcome

__all__ = ["SCENARIOS", "Attack", "attacks", "perform"]

_TOOL_USE = end(StopReason.TOOL_USE)


def _plain() -> World:
    return World([[say("one "), say("two"), end()]])


def _parallel() -> World:
    first = [
        say("working"),
        call("a", "work", 1, takes=3, writes=["x"]),
        Pause(1),
        call("b", "work", 2, takes=1),
        call("c", "work", 3, takes=2, writes=["x"], prints="some output"),
        Pause(1),
        call("d", "denied", 4),
        call("e", "nothing", 5),
        call("f", "work", 6, takes="long"),
        _TOOL_USE,
    ]
    return World([first, [say("done"), end()]])


def _asking() -> World:
    first = [
        call("a", "asks", 1, takes=1),
        call("b", "work", 2, takes=2),
        Pause(1),
        call("c", "asks", 3, takes=1),
        _TOOL_USE,
    ]
    world = World([first, [say("done"), end()]])
    world.answer_all(allowed=True)
    return world


def _unanswered() -> World:
    first = [call("a", "asks", 1), call("b", "work", 2, takes=1), _TOOL_USE]
    return World([first, [say("done"), end()]], limits=Limits(max_seconds=5))


def _broken() -> World:
    first = [call("a", "work", 1, takes=1), broken("b", "work", 2), end(StopReason.OUTPUT_LIMIT)]
    return World([first, [call("c", "work", 1), _TOOL_USE], [say("done"), end()]])


def _cut() -> World:
    return World([[say("first half"), end(StopReason.OUTPUT_LIMIT)], [say("second half"), end()]])


def _lost_before() -> World:
    return World([[say("partial"), Pause(1), Break()], [say("whole"), end()]])


def _lost_after() -> World:
    return World([[say("p"), call("a", "work", 1, takes=2), Pause(1), Break()], [say("went on"), end()]])


def _failing() -> World:
    first = [
        call("a", "work", 1, fails="tool"),
        call("b", "work", 2, fails="bug", takes=1),
        call("c", "work", 3, fails="exit"),
        call("d", "work", 4, fails="group", takes=1),
        _TOOL_USE,
    ]
    return World([first, [say("done"), end()]])


def _slow_cleanup() -> World:
    first = [
        call("a", "work", 1, takes=3, cleanup=2),
        call("b", "slow", 2, takes=3, cleanup=5),
        Pause(1),
        call("c", "work", 3, takes=3, fails="group", cleanup=1),
        _TOOL_USE,
    ]
    return World([first, [say("done"), end()]])


def _swallowing() -> World:
    first = [call("a", "work", 1, takes=3, fails="swallow"), call("b", "work", 2, takes=1), _TOOL_USE]
    return World([first, [call("c", "work", 1, takes=1), _TOOL_USE], [say("done"), end()]])


def _timing_out() -> World:
    first = [call("a", "slow", 1, takes=9, prints="tick"), call("b", "work", 2, takes=1), _TOOL_USE]
    return World([first, [say("done"), end()]], timeout=2.0)


SCENARIOS: dict[str, Callable[[], World]] = {
    "plain": _plain,
    "parallel": _parallel,
    "asking": _asking,
    "unanswered": _unanswered,
    "broken call": _broken,
    "output limit": _cut,
    "stream lost before a call": _lost_before,
    "stream lost after a call": _lost_after,
    "failing tools": _failing,
    "slow clean-up": _slow_cleanup,
    "swallowing tool": _swallowing,
    "timeout": _timing_out,
}


@attrs.frozen
class Attack:
    """One point of attack. `how` is `run` (as Ctrl-C does), `outside` (a scope around the run), or `call`."""

    scenario: str
    seed: int
    step: int | None
    how: str


@attrs.define
class _Run:
    world: World
    ended: RunEnded | None = None
    caught: bool = False
    struck: bool = False
    first_is_over: bool = False
    over_when_struck: bool = False
    alive_at_end: set[str] = attrs.field(factory=set)
    pending_at_end: int = 0
    next_ended: RunEnded | None = None
    stale: list[Receipt] = attrs.field(factory=list)
    log_at_end: int = 0


def attacks(scenario: str, seed: int, hows: tuple[str, ...] = ("run", "outside", "call")) -> Iterator[Attack]:
    """Yield every point at which a run of `scenario` under `seed` can be attacked."""
    steps = _measure(scenario, seed)
    for how in hows:
        for step in range(1, steps + 1):
            yield Attack(scenario, seed, step, how)


def perform(attack: Attack) -> list[str]:
    """Carry one attack out and return what it broke: nothing, if all is well."""
    run = _carry_out(attack)
    return list(_violations(run, attack))


def _measure(scenario: str, seed: int) -> int:
    steps: list[int] = []

    async def main() -> None:
        world = SCENARIOS[scenario]()
        await world.agent.run("go")

    steps.append(run_seeded(main, seed))
    return steps[0]


def _carry_out(attack: Attack) -> _Run:
    made: list[_Run] = []
    outside: list[trio.CancelScope] = []

    def strike() -> None:
        run = made[0]
        run.struck = True
        run.over_when_struck = run.world.agent.active is None or bool(run.world.of(RunEnded))
        run.world.log.append("strike")
        active = run.world.agent.active
        if attack.how == "outside":
            outside[0].cancel()
        elif active is not None and attack.how == "run":
            active.cancel("attack")
        elif active is not None:
            _stop_one_call(run.world, attack)

    async def main() -> None:
        run = _Run(SCENARIOS[attack.scenario]())
        made.append(run)
        with trio.CancelScope() as scope:
            outside.append(scope)
            run.ended = await run.world.agent.run("go")
        run.first_is_over = True
        run.caught = scope.cancelled_caught
        run.alive_at_end = set(run.world.alive)
        run.pending_at_end = len(_pending(run.world))
        run.log_at_end = len(run.world.log)
        await _next_run(run)

    def act() -> None:
        if made and outside and not made[0].first_is_over:
            strike()

    run_seeded(main, attack.seed, attack.step, act)
    return made[0]


def _stop_one_call(world: World, attack: Attack) -> None:
    active = world.agent.active
    assert active is not None
    settled = {event.result.call_id for event in world.of(CallSettled)}
    under_way = [event.call.id for event in world.of(CallReady) if event.call.id not in settled]
    if under_way:
        active.stop_call(under_way[(attack.step or 0) % len(under_way)])


def _pending(world: World) -> list[str]:
    asked = [event.approval_id for event in world.of(ApprovalAsked)]
    closed = {event.approval_id for event in world.of(ApprovalClosed)}
    return [approval for approval in asked if approval not in closed]


async def _next_run(run: _Run) -> None:
    """Start a new run on the same conversation; while its question is open, answer the old ones late."""
    world = run.world
    world.unsubscribe_answers()
    old = [(stamped.run_id, stamped.event.approval_id) for stamped in world.events if _is_question(stamped)]
    world.model.replies = [[call("next", "asks", 1), end(StopReason.TOOL_USE)], [say("fine"), end()]]

    def click(run_id: str, approval_id: str) -> None:
        for old_run, old_approval in old:
            run.stale.append(world.agent.answer(old_run, old_approval, Answer(allowed=True, by="an old page")))
        world.agent.answer(run_id, approval_id, Answer(allowed=False, by="the right page"))

    def on(stamped: Stamped) -> None:
        if _is_question(stamped):
            trio.lowlevel.current_trio_token().run_sync_soon(click, stamped.run_id, stamped.event.approval_id)

    world.bus.subscribe(on)
    run.next_ended = await world.agent.run("again")


def _is_question(stamped: Stamped) -> bool:
    return isinstance(stamped.event, ApprovalAsked)


def _violations(run: _Run, attack: Attack) -> Iterator[str]:
    world = run.world
    yield from _pairing(world)
    yield from _nothing_denied_ran(world)
    if run.alive_at_end:
        yield f"alive after the run: {run.alive_at_end}"
    if run.pending_at_end:
        yield "a question is still open after the run"
    if world.model.open:
        yield "a model stream is still open"
    ended = world.of(RunEnded)
    if len(ended) != 2:
        yield f"{len(ended)} runs ended, 2 were started"
    if run.next_ended is None or run.next_ended.status != "completed":
        yield f"the next run did not work: {run.next_ended}"
    if any(receipt is Receipt.ACCEPTED for receipt in run.stale):
        yield f"an old answer was taken: {run.stale}"
    if "begin next" in world.log:
        yield "the next run's call ran, though it was refused"
    yield from _order(world)
    if run.struck and not run.over_when_struck and attack.how in ("run", "outside"):
        yield from _stopped(run, attack)
    elif attack.how == "outside" and run.caught and not run.struck:
        yield "a cancellation nobody asked for"


def _stopped(run: _Run, attack: Attack) -> Iterator[str]:
    world = run.world
    after = world.log[world.log.index("strike") : run.log_at_end]
    if "model" in after:
        yield f"the model was asked after the cancel: {after}"
    if any(entry.startswith("begin") for entry in after):
        yield f"a tool was entered after the cancel: {after}"
    if attack.how == "outside" and not run.caught and run.ended is None:
        yield "Cancelled did not go on upwards"
    status = world.of(RunEnded)[0].status
    last_step = status == "completed" or run.ended is not None
    if status not in ("cancelled", "completed", "failed", "limit") or (
        run.caught and last_step and run.ended is not None
    ):
        yield f"a cancelled run ended as {status}"


def _order(world: World) -> Iterator[str]:
    log = world.log
    ready = [event.call for event in world.of(CallReady)]
    for later in range(len(ready)):
        for earlier in range(later):
            one, other = ready[earlier], ready[later]
            shared = set(one.arguments.get("writes", ())) & set(other.arguments.get("writes", ()))
            both = f"begin {one.id}" in log and f"begin {other.id}" in log
            if shared and both and log.index(f"begin {other.id}") < log.index(f"end {one.id}"):
                yield f"{other.id} began before {one.id} had ended, and both write {shared}"
    for position, entry in enumerate(log):
        if entry == "run ended" and log[position - 1] != "sweep ends":
            yield "a run ended before everything was reaped"


def _pairing(world: World) -> Iterator[str]:
    opened = [event.call.id for event in _submitted(world)]
    settled = [event.result.call_id for event in world.of(CallSettled)]
    if sorted(opened) != sorted(settled):
        yield f"calls {opened}, but results {settled}"
    committed = [
        result.call_id for item in world.talk.history.items if isinstance(item, Exchange) for result in item.results
    ]
    if committed != opened:
        yield f"calls in the order {opened}, but history in the order {committed}"
    told = [event.exchange for event in world.of(TurnCommitted)]
    if told != list(world.talk.history.exchanges):
        yield "the events tell another history than the one that is kept"
    for request in world.model.requests:
        paired = [item for item in request.history.items if isinstance(item, Exchange)]
        if any(len(item.message.calls) != len(item.results) for item in paired):
            yield "a request carried an unpaired exchange"


def _submitted(world: World) -> list[Any]:
    return [stamped.event for stamped in world.events if isinstance(stamped.event, CallReady | CallBroken)]


def _nothing_denied_ran(world: World) -> Iterator[str]:
    entered = [entry.removeprefix("begin ") for entry in world.log if entry.startswith("begin ")]
    if len(entered) != len(set(entered)):
        yield f"a call ran twice: {entered}"
    for event in world.of(CallSettled):
        result = event.result
        if result.began != (result.call_id in entered):
            yield f"{result.call_id} says began={result.began}, entered were {entered}"
        if result.outcome in REFUSED and result.call_id in entered:
            yield f"{result.call_id} is {result.outcome} and was executed"
        if result.outcome is Outcome.DENIED and f"take {result.call_id}" in world.log:
            yield f"{result.call_id} was denied and a snapshot was taken"
    running = {event.call_id for event in world.of(CallMoved) if event.phase is Phase.RUNNING}
    if running != set(entered):
        yield f"events say {running} ran, entered were {set(entered)}"
