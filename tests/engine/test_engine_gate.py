"""Which calls may run at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from doubles.fake_model import call
from doubles.records import DONE, TOOL_USE, Hook
from doubles.schedule import run_seeded
from doubles.world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from novacode.engine.gate import Gate, Overlap, Ticket, conflict
from novacode.tools.base import EVERYTHING, Claims
from novacode.values.ids import CallId


def claims(reads: str = "", writes: str = "") -> Claims:
    return Claims(frozenset(map(Path, reads.split())), frozenset(map(Path, writes.split())))


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (claims(reads="/a"), claims(reads="/a"), False),
        (claims(reads="/a"), claims(writes="/a"), True),
        (claims(writes="/a"), claims(writes="/a"), True),
        (claims(writes="/a"), claims(writes="/b"), False),
        (claims(writes="/a"), claims(reads="/a/b/c"), True),
        (claims(reads="/a"), claims(writes="/a/b/c"), True),
        (claims(writes="/a"), claims(writes="/ab"), False),
        (Claims(writes=frozenset({EVERYTHING})), claims(reads="/x/y"), True),
        (Claims(writes=frozenset({EVERYTHING})), claims(), False),
        (claims(reads="/a /b", writes="/c"), claims(reads="/d /c/x"), True),
    ],
)
def test_conflicts(one: Claims, other: Claims, meet: bool) -> None:
    assert conflict(one, other) is meet
    assert conflict(other, one) is meet


def take(gate: Gate, name: str, **what: str) -> Ticket:
    return gate.take(CallId(name), claims(**what))


def names(tickets: tuple[Ticket, ...]) -> list[str]:
    return [ticket.call_id for ticket in tickets]


@pytest.mark.parametrize(
    ("overlap", "held_up"), [(Overlap.ALL, []), (Overlap.DECLARED, ["a"]), (Overlap.NONE, ["a", "b"])]
)
def test_only_earlier_conflicting_tickets_hold_one_up(overlap: Overlap, held_up: list[str]) -> None:
    gate = Gate(overlap)
    take(gate, "a", writes="/x")
    take(gate, "b", writes="/y")
    mine = take(gate, "c", writes="/x")
    take(gate, "d", writes="/x")
    assert names(gate.blockers(mine)) == held_up


async def test_giving_up_a_place_twice_is_harmless() -> None:
    gate = Gate()
    first, second = take(gate, "a", writes="/x"), take(gate, "b", writes="/x")
    gate.release(first)
    gate.release(first)
    await gate.wait(second)
    assert gate.blockers(second) == ()


async def test_replaced_claims_keep_the_place(autojump_clock: Any) -> None:
    gate = Gate()
    first, second = take(gate, "a", writes="/x"), take(gate, "b", writes="/y")
    first.claims = claims(writes="/y")
    assert names(gate.blockers(second)) == ["a"]
    assert gate.blockers(first) == ()
    with trio.move_on_after(1) as scope:
        await gate.wait(second)
    assert scope.cancelled_caught
    assert not second.passed


async def test_a_call_that_went_ahead_is_waited_for(autojump_clock: Any) -> None:
    """`b` passed while `a` still claimed something else; `a` must not write the same file meanwhile."""
    gate = Gate()
    first, second = take(gate, "a", writes="/x"), take(gate, "b", writes="/y")
    await gate.wait(second)
    first.claims = claims(writes="/y")
    assert names(gate.blockers(first)) == ["b"]
    gate.release(second)
    await gate.wait(first)


async def test_a_rewrite_while_another_call_runs_never_writes_beside_it(autojump_clock: Any) -> None:
    """The same through the pipeline: the slow hook of `a` turns it to the file that `b` is writing."""
    calls = [call("a", "work", 1, takes=1, writes=["x"]), call("b", "work", 2, takes=3, writes=["y"])]
    world = World([[*calls, call("c", "work", 3, takes=1, writes=["y"]), TOOL_USE], DONE])
    services = world.services
    hook = Hook(world.log, rewrite={"takes": 1, "writes": ["y"]}, seconds=1, only=["a"])
    world.agent.services = attrs.evolve(services, hooks=hook)
    await world.agent.run("go")
    order = [entry for entry in world.log if entry.startswith(("begin", "end"))]
    assert order == ["begin b", "end b", "begin a", "end a", "begin c", "end c"]


_paths = st.frozensets(st.sampled_from([Path("/a"), Path("/a/b"), Path("/c"), EVERYTHING]), max_size=2)
_claims = st.builds(Claims, _paths, _paths)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_claims, st.integers(0, 3)), min_size=1, max_size=8), st.integers(0, 99))
def test_any_queue_ends_and_never_overlaps_what_conflicts(works: list[tuple[Claims, int]], seed: int) -> None:
    """No cycle whatever the claims; conflicting work is apart, and in the order of the tickets."""
    gate = Gate()
    spans: dict[int, tuple[float, float]] = {}

    async def work(number: int, ticket: Ticket, seconds: int) -> None:
        await gate.wait(ticket)
        began = trio.current_time()
        await trio.sleep(seconds)
        spans[number] = (began, trio.current_time())
        gate.release(ticket)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number, (what, seconds) in enumerate(works):
                nursery.start_soon(work, number, gate.take(CallId(str(number)), what), seconds)

    run_seeded(main, seed)
    assert len(spans) == len(works)
    for later in range(len(works)):
        for earlier in range(later):
            if conflict(works[earlier][0], works[later][0]):
                assert spans[earlier][1] <= spans[later][0]
