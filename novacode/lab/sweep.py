"""Carrying an experiment out, and handing over what it came to in order, whatever dies meanwhile."""

from __future__ import annotations

import contextlib
import random  # noqa: TID251 - which step is struck is drawn with the seed of the run
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import AbstractContextManager

import attrs

from novacode.errors import NovaError
from novacode.lab.experiment import ANY, NONE, SweepPoint, Swept
from novacode.lab.perform import perform
from novacode.lab.point import How, Point
from novacode.lab.real import do_real_batch
from novacode.lab.scenario import find_scenario
from novacode.lab.trial import phases_by_step

__all__ = ["WorkersLost", "do_batch", "sweep"]

_BATCH = 25  # points that a worker does before it hands over

Take = Callable[[Sequence[Swept]], None]
MakeExecutor = Callable[[], AbstractContextManager[Executor]]


class WorkersLost(NovaError):
    """Workers died again and again. What was handed over is done; the same command, with the same file, goes on."""


def do_batch(points: Sequence[SweepPoint]) -> list[Swept]:
    """Carry `points` out. The job of one worker; the same points give the same rows in any process.

    Those in real time do not: they take as long as they take.
    """
    if points and points[0].real:
        return do_real_batch(points)
    return [_do(point) for point in points]


def _do(point: SweepPoint) -> Swept:
    scenario = find_scenario(point.name)
    whole = Point(point.name, point.seed, point.schedule, How.RUN)
    step = None
    if point.phase != NONE:
        phases = phases_by_step(scenario, whole)
        fitting = [at for at, phase in enumerate(phases, 1) if phase and point.phase in (ANY, phase)]
        step = random.Random(point.seed).choice(fitting) if fitting else None
    struck = whole if step is None else attrs.evolve(whole, how=point.how, step=step)
    return Swept(point, perform(struck, scenario))


def sweep(points: Sequence[SweepPoint], take: Take, make_executor: MakeExecutor, tries: int = 3) -> None:
    """Do `points` on the executors that `make_executor` makes, and hand what they came to over in their order.

    Where a worker dies, what it had not handed over is done again, on a new executor; after `tries` of them in which
    nothing was done that was not done before, `WorkersLost` is raised. Interrupted, what is under way is given up and
    what was handed over stays.
    """
    size = 1 if points and points[0].real else _BATCH
    batches = [points[at : at + size] for at in range(0, len(points), size)]
    order = _Order(take, len(batches))
    fruitless = 0
    while waiting := order.waiting:
        before = len(waiting)
        # An executor may also say so as it is left: what it had done by then was handed over.
        with contextlib.suppress(BrokenExecutor), make_executor() as executor:
            for number, swept in _done(executor, {number: batches[number] for number in waiting}):
                order.add(number, swept)
        fruitless = 0 if len(order.waiting) < before else fruitless + 1
        if fruitless >= tries:
            at = batches[waiting[0]][0]
            raise WorkersLost(
                f"workers died {tries} times without finishing anything; next were seeds {at.seed} and on of {at.name}."
                " What was done before is kept"
            )


class _Order:
    """Takes batches as they are done, and hands them over as they were wanted."""

    def __init__(self, take: Take, wanted: int) -> None:
        self._take = take
        self._wanted = wanted
        self._handed = 0
        self._early: dict[int, list[Swept]] = {}

    @property
    def waiting(self) -> list[int]:
        """The batches that have not come."""
        return [number for number in range(self._handed, self._wanted) if number not in self._early]

    def add(self, number: int, swept: list[Swept]) -> None:
        """One has come; whatever is its turn now is handed over."""
        self._early[number] = swept
        while self._handed in self._early:
            self._take(self._early.pop(self._handed))
            self._handed += 1


def _done(executor: Executor, batches: Mapping[int, Sequence[SweepPoint]]) -> Iterator[tuple[int, list[Swept]]]:
    """Yield batches as they are done; end where a worker has died."""
    numbers: dict[Future[list[Swept]], int] = {}
    try:
        for number, batch in batches.items():
            numbers[executor.submit(do_batch, batch)] = number
        for future in as_completed(numbers):
            if not future.cancelled():  # as its worker's death may have made it
                swept = future.result()
                yield numbers.pop(future), swept
    except BrokenExecutor:
        for future, number in numbers.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield number, future.result()
    finally:
        for future in numbers:
            future.cancel()
