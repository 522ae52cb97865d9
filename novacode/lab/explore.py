"""Carrying out many points, in several processes, so that nothing done is lost."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import attrs

from novacode.errors import NovaError
from novacode.lab.executors import let_the_parent_decide
from novacode.lab.invariants import Invariant, load_invariant
from novacode.lab.perform import perform
from novacode.lab.plan import Block
from novacode.lab.point import How, Row, Violation
from novacode.lab.scenario import Scenario, find_scenario

__all__ = ["WorkerLost", "explore", "explore_block"]

_Take = Callable[[Sequence[Row]], None]


class WorkerLost(NovaError):
    """A worker process died. What was done before is done; the same command, with the same file, goes on from there."""


def explore(blocks: Sequence[Block], take: _Take, jobs: int = 1) -> None:
    """Do `blocks` in `jobs` processes and hand the rows of each to `take` as it is done, in this process.

    Where it is interrupted, the blocks under way in workers are finished and handed over, then `KeyboardInterrupt`
    goes on. Raises `WorkerLost` where a worker died, and what could not be set up as the block raised it.
    """
    if jobs <= 1 or len(blocks) <= 1:
        for block in blocks:
            take(explore_block(block))
        return
    # Spawned, not forked: a worker is a fresh interpreter, so its points are what a fresh process would give.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(blocks)), context, initializer=let_the_parent_decide) as pool:
        futures = [pool.submit(explore_block, block) for block in blocks]
        given: set[Future[list[Row]]] = set()
        try:
            for future in as_completed(futures):
                given.add(future)
                take(future.result())
        except BrokenProcessPool as broken:
            _hand_over(futures, given, take)
            raise WorkerLost(f"a worker process died ({broken}); what was done before is kept") from broken
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            _hand_over(futures, given, take)
            raise


def _hand_over(futures: Sequence[Future[list[Row]]], given: set[Future[list[Row]]], take: _Take) -> None:
    """Hand over what was finished and has not been handed over."""
    for future in futures:
        if future not in given and future.done() and not future.cancelled() and future.exception() is None:
            take(future.result())


def explore_block(block: Block) -> list[Row]:
    """Do every point of `block` that is not done yet, and return their rows. The job of one worker."""
    scenario = find_scenario(block.point.scenario)
    more = [load_invariant(name) for name in block.invariants]
    whole = perform(attrs.evolve(block.point, how=How.RUN, call=""), scenario, more)
    rows = [_checked_again(whole, scenario, more)] if block.whole else []
    if block.step is None:
        rows.extend(_at_every_step(block, whole.steps, scenario, more))
    elif block.step and block.step not in block.skip:
        point = attrs.evolve(block.point, step=block.step)
        rows.append(_checked_again(perform(point, scenario, more), scenario, more))
    return rows


_More = Sequence[tuple[str, Invariant]]


def _at_every_step(block: Block, steps: int, scenario: Scenario, more: _More) -> Iterator[Row]:
    middle = max(1, steps // 2)
    for step in range(1, steps + 1):
        if step in block.skip:
            continue
        row = perform(attrs.evolve(block.point, step=step), scenario, more)
        yield _checked_again(row, scenario, more) if step == middle else row


def _checked_again(row: Row, scenario: Scenario, more: _More) -> Row:
    """Carry the point out once more: if it does not give the same, nothing the lab says can be relied on."""
    again = perform(row.point, scenario, more)
    if again == row:
        return row
    text = f"the same point gave the trace {row.trace} and then {again.trace}"
    return attrs.evolve(row, violations=(*row.violations, Violation("nondeterminism", text)))
