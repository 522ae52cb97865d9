"""Carrying a run of an asyncio executor out, striking it at a step, and judging what is left."""

from __future__ import annotations

import asyncio  # noqa: TID251 - what trio is compared with runs on it
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import attrs

from novacode.lab.asyncio_loop import VirtualLoop
from novacode.lab.asyncio_reference import Reference, Settled
from novacode.lab.asyncio_stage import World
from novacode.lab.asyncio_variants import VARIANTS
from novacode.lab.phases import PHASES
from novacode.lab.point import Violation
from novacode.lab.scripted import Blueprint

__all__ = ["AsyncioTrial", "carry_out_asyncio", "judge_asyncio"]

_BETWEEN = 2  # steps from the first request to stop to the second


@attrs.define(eq=False)
class AsyncioTrial:
    """What such a run came to. The counts `…_at_end` are taken when it has returned; what it left goes on after that.

    `quiet_at` is when the last task of it ended, `None` where one never does.
    """

    world: World
    executor: Reference
    steps: int = 0
    hung: bool = False
    status: str = "none"
    raised: BaseException | None = None
    cancelled: bool = False
    struck: bool = False
    struck_at: float | None = None
    phase: str = ""
    written_at_strike: int = 0
    quiet_at: float | None = None
    orphans: tuple[str, ...] = ()
    alive_at_end: int = 0
    written_at_end: int = 0

    @property
    def results(self) -> list[Settled]:
        """The results in history, in its order."""
        return [settled for turn in self.executor.history for settled in turn]

    @property
    def late_effects(self) -> int:
        """How many effects landed after the request to stop."""
        return len(self.world.written) - self.written_at_strike if self.struck else 0

    @property
    def trace(self) -> str:
        """A hash of everything that happened: the same for the same run on the same version of Python."""
        told = (self.world.log, self.results, self.status, self.struck_at, self.quiet_at)
        return hashlib.blake2b(repr(told).encode("utf-8", "replace"), digest_size=8).hexdigest()


def carry_out_asyncio(blueprint: Blueprint, name: str, step: int | None, *, twice: bool = False) -> AsyncioTrial:
    """Run the executor `name` over `blueprint`, and ask it to stop before `step`; `twice`: and again soon after."""
    acts: dict[int, Callable[[], object]] = {}
    loop = VirtualLoop(acts)
    world = World(blueprint, loop)
    trial = AsyncioTrial(world, VARIANTS[name](world))
    run = loop.create_task(trial.executor.run(), name="run")
    if step is not None:
        acts[step] = lambda: _strike(trial, run)
        if twice:
            acts[step + _BETWEEN] = run.cancel
    loop.play(run.done)
    _take_stock(trial, loop, run)
    loop.play(lambda: not loop.unfinished)
    trial.quiet_at = None if loop.unfinished else loop.time()
    loop.put_away()
    return trial


def _strike(trial: AsyncioTrial, run: asyncio.Task[str]) -> None:
    if run.done():
        return
    world = trial.world
    trial.struck, trial.struck_at, trial.phase = True, world.loop.time(), _phase(trial)
    trial.written_at_strike = len(world.written)
    world.log.append("strike")
    run.cancel()


def _phase(trial: AsyncioTrial) -> str:
    """Return what the run is at, in the words of the lab's rows."""
    world = trial.world
    calls = {task.get_name() for task in world.loop.unfinished} & set(trial.executor.opened)
    at = {
        "cleanup": bool(world.cleaning) or "sweep begins" in world.log,
        "running": bool(world.alive),
        "asking": bool(world.asking),
        "queued": bool(calls),
        "streaming": trial.executor.streaming,
    }
    return next((phase for phase in PHASES if at.get(phase)), "between")


def _take_stock(trial: AsyncioTrial, loop: VirtualLoop, run: asyncio.Task[str]) -> None:
    trial.steps, trial.hung = loop.steps, not run.done()
    trial.orphans = tuple(sorted(task.get_name() for task in loop.unfinished if task is not run))
    trial.alive_at_end, trial.written_at_end = len(trial.world.alive), len(trial.world.written)
    if not run.done():
        return
    trial.cancelled = run.cancelled()
    if not run.cancelled():
        trial.raised = run.exception()
        trial.status = "raised" if trial.raised is not None else run.result()
    else:
        trial.status = "cancelled"


def judge_asyncio(trial: AsyncioTrial) -> tuple[Violation, ...]:
    """Return what `trial` broke: those of the lab's invariants that can be stated of any executor."""
    if trial.hung:
        return (Violation("hang", "it came to no end"),)
    return tuple(Violation(kind, text) for kind, check in _CHECKS.items() for text in check(trial))


def _crash(trial: AsyncioTrial) -> Iterator[str]:
    if trial.raised is not None:
        yield f"the run raised {type(trial.raised).__name__}: {trial.raised}"


def _pairing(trial: AsyncioTrial) -> Iterator[str]:
    opened, settled = Counter(trial.executor.opened), Counter(result.call_id for result in trial.results)
    if opened != settled:
        yield f"calls {sorted(opened.elements())}, but results {sorted(settled.elements())}"


def _order(trial: AsyncioTrial) -> Iterator[str]:
    results = [result.call_id for result in trial.results]
    known = [call_id for call_id in trial.executor.opened if call_id in results]
    if results != known:
        yield f"calls in the order {known}, but history in the order {results}"


def _executed(trial: AsyncioTrial) -> Iterator[str]:
    entered = trial.world.entered
    if len(entered) != len(set(entered)):
        yield f"a call ran twice: {entered}"
    for result in trial.results:
        if result.began != (result.call_id in entered):
            yield f"{result.call_id} says began={result.began}, entered were {entered}"


def _alive(trial: AsyncioTrial) -> Iterator[str]:
    if trial.orphans:
        yield f"alive after the run: {list(trial.orphans)}"


def _went_on(trial: AsyncioTrial) -> Iterator[str]:
    log = trial.world.log
    after = log[log.index("strike") + 1 :] if "strike" in log else []
    if "model" in after:
        yield "the model was asked after the cancel"
    if begun := [entry for entry in after if entry.startswith("begin ")]:
        yield f"a tool was entered after the cancel: {begun}"


def _swallowed(trial: AsyncioTrial) -> Iterator[str]:
    # Struck in its last step a run may end by itself: nothing was awaited any more that could have been cancelled.
    if trial.struck and not trial.cancelled and trial.raised is None and trial.phase != "between":
        yield f"CancelledError did not go on upwards: the run ended as {trial.status}"


def _effect(trial: AsyncioTrial) -> Iterator[str]:
    if late := trial.world.written[trial.written_at_end :]:
        yield f"written after the run was over: {late}"


_CHECKS: Mapping[str, Callable[[AsyncioTrial], Iterator[str]]] = {
    "crash": _crash,
    "pairing": _pairing,
    "order": _order,
    "executed": _executed,
    "alive": _alive,
    "went-on": _went_on,
    "swallowed": _swallowed,
    "effect": _effect,
}
