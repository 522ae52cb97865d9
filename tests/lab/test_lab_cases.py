"""Faults that users met in other agents, as scenarios: right where nobody stops them, and at every step where they are.

docs/lab-cases.md lists all of them, and says of those that are no scenario why.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from novacode.lab.explore import explore
from novacode.lab.perform import perform
from novacode.lab.plan import Plan, blocks_of
from novacode.lab.point import How, Point, Row
from novacode.lab.scenario import packaged

ENDS = {
    "br-001-interrupted-shell": ("completed/completed", "ok=1"),
    "br-002-lost-behind-a-call": ("completed/completed", "ok=1"),
    "br-003-killed-in-a-call": ("completed/completed", "ok=2"),
    "br-004-began-or-denied": ("completed/completed", "denied=1 ok=1"),
    "br-005-refused-first": ("completed/completed", "hook_denied=1 ok=1 unknown_tool=1"),
    "br-006-finished-stay-finished": ("completed/completed", "ok=3"),
    "br-007-question-left-open": ("limit/max_seconds", "ok=1 skipped=1"),
    "br-014-stop-what-is-stubborn": ("completed/completed", "ok=2"),
    "br-015-stopped-at-the-same-time": ("limit/max_seconds", "cancelled=6"),
    "br-016-left-in-mid-stream": ("completed/completed", "ok=1"),
    "br-017-fails-while-stopped": ("completed/completed", "error=2"),
    "br-018-stopped-while-asking": ("completed/completed", "ok=1"),
    "br-023-cancellation-swallowed": ("completed/completed", "error=1 ok=2"),
    "br-029-no-arguments": ("completed/completed", "invalid=1 ok=1"),
    "br-031-end-with-a-call": ("completed/completed", "ok=1"),
    "br-032-no-json": ("completed/completed", "broken=1 ok=1"),
    "br-033-the-same-id-each-turn": ("completed/completed", "ok=3"),
    "br-035-unknown-tool": ("completed/completed", "ok=1 unknown_tool=1"),
    "br-042-joined-to-an-allowed-prefix": ("completed/completed", "denied=8 ok=2"),
    "br-043-wrapped-denied-command": ("completed/completed", "denied=10 ok=2"),
    "br-044-assignment-in-front": ("completed/completed", "denied=5 ok=2"),
    "br-045-substitutions": ("completed/completed", "denied=6 ok=2"),
    "br-046-options-that-write": ("completed/completed", "denied=10 ok=3"),
    "br-048-outside-the-workspace": ("completed/completed", "denied=2 ok=2"),
    "br-049-the-hook-says-no": ("completed/completed", "hook_denied=1 ok=2"),
    "br-058-answer-to-an-old-run": ("limit/max_seconds", "skipped=1"),
    "br-059-two-questions": ("completed/completed", "ok=2"),
    "br-060-answered-once": ("completed/completed", "ok=2"),
    "br-061-lost-while-asking": ("limit/max_seconds", "skipped=1"),
    "br-070-cut-write": ("completed/completed", "broken=1 ok=1"),
    "br-071-missing-key": ("completed/completed", "invalid=1"),
    "br-072-cut-without-a-word": ("completed/completed", "broken=2 ok=2"),
    "br-073-paused": ("completed/completed", ""),
    "br-074-refusal": ("refused/refusal", ""),
    "br-075-malformed-each-time": ("failed/server", ""),
    "br-076-reasoning-kept": ("completed/completed", "ok=1"),
    "br-079-empty-replies": ("failed/empty_reply", ""),
    "br-080-unknown-stop": ("completed/unknown_stop", "ok=1"),
    "br-085-nothing-said": ("completed/completed", "ok=1"),
    "br-088-separators-in-text": ("completed/completed", "ok=2"),
    "br-090-error-in-the-stream": ("completed/completed", ""),
    "br-092-cut-in-the-body": ("failed/network", "ok=2"),
    "br-093-silent-stream": ("completed/completed", "ok=1"),
    "br-094-retry-after": ("completed/completed", ""),
    "br-095-lost-after-an-effect": ("completed/completed", "ok=2"),
    "br-107-edits-of-one-file": ("completed/completed", "ok=5"),
    "br-118-time-limit": ("completed/completed", "timeout=1"),
    "br-147-turned-away-each-time": ("failed/rate_limit", ""),
    "br-148-denied-and-said-so": ("completed/completed", "denied=1 ok=1"),
    "br-149-no-one-to-ask": ("completed/completed", "denied=1"),
}
"""Scenario -> how it ends where nobody stops it, and how many of its calls ended in which outcome."""

CASES = Path(__file__).parents[2] / "docs" / "lab-cases.md"
STOPS = (How.RUN, How.CRASH, How.BOTH)


@pytest.mark.parametrize("name", ENDS)
def test_it_ends_as_it_should(name: str) -> None:
    """What its script expects of the results is met, too: else the model refuses, and the row has a violation."""
    row = perform(Point(name))
    outcomes = " ".join(f"{outcome}={number}" for outcome, number in sorted(row.outcomes.items()))
    assert (f"{row.status}/{row.reason}", outcomes) == ENDS[name]
    assert row.violations == ()


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.timeout(120)
def test_no_step_is_a_bad_one_to_stop_at(name: str) -> None:
    """Stopped as a person does, killed, and one call and then the run: each way at every step of its own schedule."""
    rows: list[Row] = []
    for seed, how in enumerate(STOPS):
        explore(list(blocks_of(Plan((name,), (seed,), hows=(how,)))), rows.extend, 1)
    assert [row for row in rows if row.violations] == []
    assert len(rows) > len(STOPS)


def test_the_page_names_each_scenario_once() -> None:
    named = re.findall(r"`(br-\d{3}-[a-z-]+)` \|", CASES.read_text())
    assert sorted(named) == sorted(ENDS) == sorted(name for name in packaged() if name.startswith("br-"))


def test_the_page_has_a_reason_for_each_of_the_others() -> None:
    """A case is one row; the tests that hold it are there, and name it."""
    rows = [row.strip("| ").split(" | ") for row in CASES.read_text().splitlines() if row.startswith("| BR-")]
    assert len({case for case, *_ in rows}) == len(rows) == 120
    for case, *_, reason, tests in (row for row in rows if "`br-" not in row[2]):
        assert len(reason) > 10, case
        number = case.removeprefix("BR-")
        for file in re.findall(r"`(test_\w+\.py)`", tests):
            (found,) = Path(__file__).parents[1].rglob(file)
            assert re.search(rf"br_{number}|BR-{number}", found.read_text()), (case, file)
