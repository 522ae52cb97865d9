"""The packaged scenarios: every outcome, every way out of a run, the same every time."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from novacode.errors import InputError, UsageError
from novacode.lab.mishaps import Mishap, MishapKind, parse_mishap
from novacode.lab.perform import perform
from novacode.lab.plan import mishaps_of
from novacode.lab.point import How, Point, Row
from novacode.lab.scenario import find_scenario, packaged, scripted_scenario
from novacode.lab.schedule import Kind
from novacode.values.results import Outcome

WAYS_OUT = {
    "completed/completed",
    "completed/unknown_stop",
    "refused/refusal",
    "failed/authentication",
    "failed/empty_reply",
    "failed/server",
    "limit/max_seconds",
    "limit/max_turns",
    "limit/output_limit",
}


def test_they_cover_every_outcome_and_every_way_out() -> None:
    """Runs that nobody stops show every outcome but one and every ending but two; the rest takes a stop and a crash."""
    assert len(packaged()) >= 12
    rows = [perform(Point(name)) for name in packaged()]
    assert [row for row in rows if row.violations] == []
    assert {f"{row.status}/{row.reason}" for row in rows} >= WAYS_OUT
    stopped, crashed = (_struck_while_running(how) for how in (How.RUN, How.CRASH))
    assert (stopped.status, stopped.reason, crashed.status) == ("cancelled", "the lab", "crashed")
    outcomes = {outcome for row in (*rows, stopped, crashed) for outcome in row.outcomes}
    assert outcomes == {outcome.value for outcome in Outcome}


def _struck_while_running(how: How) -> Row:
    rows = (perform(Point("br-001-interrupted-shell", how=how, step=step)) for step in range(10, 60))
    return next(row for row in rows if row.phase == "running")


@pytest.mark.parametrize("kind", Kind)
def test_history_is_the_same_under_every_schedule(kind: Kind) -> None:
    """Which call ends first depends on nothing but time; so outcomes and endings do not depend on the seed."""
    for name in ("parallel", "refused", "rewritten", "failing-tools", "timeout"):
        rows = [perform(Point(name, seed, kind)) for seed in range(4)]
        assert len({(row.status, row.reason, tuple(row.outcomes.items())) for row in rows}) == 1
        assert all(row.violations == () for row in rows)


def test_the_same_point_gives_the_same_row() -> None:
    for kind in Kind:
        point = Point("parallel", 3, kind, How.RUN, 80)
        assert perform(point) == perform(point)
        assert len({perform(attrs.evolve(point, seed=seed)).trace for seed in range(8)}) > 1


def test_phases_are_told_as_they_are() -> None:
    """Stopped at each step, a run with a question and tools is found in every phase, and only in those."""
    names = ("asking", "slow-cleanup", "parallel", "timeout")
    phases: Counter[str] = Counter()
    for name in names:
        steps = perform(Point(name)).steps
        phases.update(perform(Point(name, step=step)).phase for step in range(1, steps + 1, 2))
    assert set(phases) == {"cleanup", "running", "asking", "queued", "streaming", "between", ""}


def test_latency_is_that_of_the_slowest_clean_up() -> None:
    """Three seconds of one tool, one of another, and half a second of reaping after them."""
    steps = perform(Point("slow-cleanup")).steps
    rows = [perform(Point("slow-cleanup", step=step)) for step in range(1, steps + 1)]
    latencies = {row.latency_s for row in rows if row.phase == "running"}
    assert 3.5 in latencies
    assert max(latency for latency in latencies if latency is not None) == 3.5


def test_a_chosen_call_is_the_one_that_is_stopped() -> None:
    rows = [perform(Point("parallel", how=How.CALL, call="call_s1_7", step=step)) for step in range(1, 80)]
    assert {row.struck_call for row in rows} == {"", "call_s1_7"}
    assert any(row.outcomes == {"cancelled": 1, "ok": 4} for row in rows)


@pytest.mark.parametrize("kind", [kind for kind in MishapKind if kind])
def test_mishaps_change_what_happens_and_break_nothing(kind: MishapKind) -> None:
    """Each kind has an effect somewhere, and no invariant breaks by it, nobody stopping the run or somebody."""
    effect = False
    for name in ("parallel", "slow-cleanup", "timeout"):
        plain = {step: perform(Point(name, step=step)) for step in (None, 30)}
        named = [mishap for mishap in mishaps_of(name) if parse_mishap(mishap).kind is kind]
        assert named
        for mishap in named[:: max(1, len(named) // 6)]:
            for step, without in plain.items():
                row = perform(Point(name, step=step, mishap=mishap))
                assert row.violations == (), row.point
                effect = effect or row.trace != without.trace
    assert effect


@pytest.mark.parametrize("text", ["cut", "cut@0", "cut@x", "slow-cleanup@1", "bad", "tool-raises@-1"])
def test_a_mishap_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_mishap(text)
    assert parse_mishap("cut@3") == Mishap(MishapKind.CUT, 3)


def test_a_scenario_that_is_none_says_what_was_looked_for() -> None:
    with pytest.raises(InputError, match="not one of asking"):
        find_scenario("no-such-thing")
    with pytest.raises(InputError, match="cannot be imported"):
        find_scenario("no_such_module:make")
    with pytest.raises(InputError, match="`answers` is 'perhaps'"):
        scripted_scenario("x", '[[turn]]\nsteps=[]\n[simulate.person]\nanswers = "perhaps"\n')
