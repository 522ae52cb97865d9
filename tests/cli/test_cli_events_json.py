"""The events output: all events as they came, or in an order that does not depend on how calls overlapped."""

import itertools
import json
import random

import attrs
import pytest
from cli_events import BEGIN, ENDED, answer, committed, edit_work, moves, shell_work, speech, stamped, whole_run
from hypothesis import given
from hypothesis import strategies as st

from novacode.cli.events_json import EventsJson
from novacode.values.events import CallMoved, CallOutput, Level, Notice, Phase
from novacode.values.ids import CallId
from novacode.values.serial import dump_stamped, load_stamped


def lines_of(events, *, canonical):
    written = []
    sink = EventsJson(written.append, canonical=canonical)
    for one in events:
        sink(one)
    return written


def test_plainly_every_event_is_a_line_as_it_came():
    lines = lines_of(whole_run(), canonical=False)
    assert [json.loads(line) for line in lines] == [json.loads(json.dumps(dump_stamped(one))) for one in whole_run()]


def interleaved(seed):
    """The same run with what its calls did mixed into each other and into the end of the stream."""
    chance = random.Random(seed)
    queues = [[speech()[-2], speech()[-1]], shell_work(), edit_work()]
    mixed = []
    while any(queues):
        mixed.append(chance.choice([queue for queue in queues if queue]).pop(0))
    return [*BEGIN, *speech()[:-2], *mixed, committed(), *answer()]


@given(st.integers(0, 10**6))
def test_in_canonical_order_overlap_makes_no_difference(seed):
    fixed = [attrs.evolve(one, at=1.0) for one in stamped(interleaved(seed))]
    plain = [attrs.evolve(one, at=1.0) for one in stamped(interleaved(0))]
    assert lines_of(fixed, canonical=True) == lines_of(plain, canonical=True)


def test_model_events_come_at_once_and_calls_in_call_order_before_the_commit():
    events = [*BEGIN, *speech(), *edit_work(), *shell_work(), committed(), *answer()]
    told = [json.loads(line) for line in lines_of(stamped(events), canonical=True)]
    assert [one["type"] for one in told[:13]] == ["run_began", "turn_began"] + [
        dump_stamped(one)["type"] for one in stamped(speech())
    ]
    work = [(one["type"], one.get("call_id") or one["result"]["call_id"], one.get("phase")) for one in told[13:22]]
    assert work == [
        ("call_moved", "c1", "submitted"),
        ("call_moved", "c1", "authorising"),
        ("call_moved", "c1", "queued"),
        ("call_moved", "c1", "running"),
        ("call_output", "c1", None),
        ("call_settled", "c1", None),
        ("call_moved", "c2", "submitted"),
        ("call_moved", "c2", "authorising"),
        ("call_settled", "c2", None),
    ]
    assert told[22]["type"] == "turn_committed"
    assert [one["seq"] for one in told] == list(range(1, len(told) + 1))
    assert all(a["at"] <= b["at"] for a, b in itertools.pairwise(told))


def test_nothing_but_overlap_is_left_out():
    told = [load_stamped(json.loads(line)).event for line in lines_of(whole_run(), canonical=True)]
    given_ = [one.event for one in whole_run()]
    assert [one for one in given_ if one not in told] == [
        CallOutput(CallId("c1"), "shell", "a."),
        CallOutput(CallId("c1"), "shell", "py\n"),
    ]
    assert CallOutput(CallId("c1"), "shell", "a.py\n") in told


def test_whom_a_call_waited_for_is_timing_and_left_out():
    shell = speech()[6].call
    waits = CallMoved(shell.id, "shell", Phase.QUEUED, (CallId("x"),))
    events = [*BEGIN, *speech()[:7], *moves(shell, Phase.SUBMITTED), waits, waits, ENDED]
    told = [json.loads(line) for line in lines_of(stamped(events), canonical=True)]
    assert [one.get("waits_for", "none") for one in told if one.get("phase") == "queued"] == ["none"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_notices_among_calls_are_ordered_by_their_words(order):
    notices = [Notice(Level.INFO, "b"), Notice(Level.INFO, "a")]
    events = [*BEGIN, Notice(Level.INFO, "z"), *speech(), *(notices[place] for place in order), ENDED]
    told = [json.loads(line) for line in lines_of(stamped(events), canonical=True)]
    assert [one["text"] for one in told if one["type"] == "notice"] == ["z", "a", "b"]


def test_a_run_that_ends_without_a_commit_loses_nothing():
    events = [*BEGIN, *speech(), *shell_work(), ENDED]
    told = [json.loads(line)["type"] for line in lines_of(stamped(events), canonical=True)]
    assert told[-2:] == ["call_settled", "run_ended"]


def test_a_resumed_session_goes_on_counting():
    told = [json.loads(line) for line in lines_of(stamped([*BEGIN, ENDED], first=41), canonical=True)]
    assert [one["seq"] for one in told] == [41, 42, 43]
