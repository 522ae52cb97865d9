"""Killed at any write, and gone on with: nothing acknowledged is lost, and the next start finds a whole session."""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from crashing import Zygote, acknowledged
from doubles.rules import violations

from novacode.protocols.summary import codec_for
from novacode.sessions.check import check_session
from novacode.sessions.fold import events_of, load
from novacode.sessions.store import Store
from novacode.values.events import CallMoved, CallSettled, Compacted, Phase, RunEnded
from novacode.values.history import Exchange
from novacode.values.request import ModelRequest
from novacode.values.results import Outcome

HOWS = ("before", "middle", "no line end", "after")
PROTOCOLS = ("anthropic", "openai-chat", "openai-responses", "gemini")


@pytest.fixture(scope="module")
def zygote():
    with Zygote() as made:
        yield made


@pytest.fixture(scope="module")
def writes(zygote, tmp_path_factory):
    """How many lines the whole run writes."""
    home = tmp_path_factory.mktemp("whole")
    answer = zygote.crash(home, 0)
    assert answer["status"] == 0
    [path] = (home / "sessions").glob("*/*.jsonl")
    assert check_session(path).problems == ()
    shortened = [one.event for one in events_of(path) if isinstance(one.event, Compacted)]
    assert {bool(event.summary) for event in shortened} == {False, True}, "outputs alone, and with a summary"
    return answer["writes"]


def refused(history):
    """Return what the services would refuse of a history, by protocol."""
    found = {name: violations(name, codec_for(name).encode(ModelRequest("m", "", history)).body) for name in PROTOCOLS}
    return {name: broken for name, broken in found.items() if broken}


def attacked(zygote, home, at, how):
    """Kill a run at one point, judge what is left, go on with it, and return what is wrong."""
    answer = zygote.crash(home, at, how)
    assert os.WIFSIGNALED(answer["status"])
    assert os.WTERMSIG(answer["status"]) == signal.SIGKILL
    files = list((home / "sessions").glob("*/*.jsonl"))
    if not files or not files[0].stat().st_size:
        return [] if not acknowledged(home) else ["the file is gone"]
    [path] = files
    problems = []
    before = list(events_of(path))
    if lost := set(acknowledged(home)) - {one.seq for one in before}:
        problems.append(f"acknowledged and lost: {sorted(lost)}")
    problems += repaired(home, path, before)
    again = zygote.crash(home, 0, resume=True)
    if again["status"] != 0:
        problems.append(f"the next run failed: {again}")
    problems += [str(one) for one in check_session(path).problems]
    loaded = load(path)
    problems += [f"after the next run: {refused(loaded.history)}"] if refused(loaded.history) else []
    ends = [one.event.reason for one in events_of(path) if isinstance(one.event, RunEnded)]
    if ends[-2:] != ["completed", "completed"] or loaded.notices or loaded.interrupted:
        problems.append(f"it did not go on: {ends}, {loaded.notices}")
    return problems


def repaired(home, path, before):
    """Open the session twice as the next start does; yield what is wrong with what is then on record."""
    store = Store(home, lambda: 1.9e9)
    store.open(path.stem).close()
    once = path.read_bytes()
    store.open(path.stem).close()
    if path.read_bytes() != once:
        yield "opening it a second time wrote something"
    yield from (str(one) for one in check_session(path).problems)
    sent, history = load(path).history, load(path, whole=True).history
    if refused(sent) or refused(history):
        yield f"after the repair: {refused(sent)}, {refused(history)}"
    if sent == history and any(isinstance(one.event, Compacted) for one in before):
        yield "it was shortened, and is not any more"
    begun = {
        one.event.call_id for one in before if isinstance(one.event, CallMoved) and one.event.phase is Phase.RUNNING
    }
    had = {one.event.result.call_id: one.event.result for one in before if isinstance(one.event, CallSettled)}
    results = [result for item in history.items if isinstance(item, Exchange) for result in item.results]
    for result in results:
        known = had.get(result.call_id)
        wanted = Outcome.LOST if result.call_id in begun else Outcome.SKIPPED
        if known is not None and known != result:
            yield f"{result.call_id} had a result and has another now: {known} {result}"
        elif known is None and result.outcome is not wanted and result.outcome is not Outcome.BROKEN:
            yield f"{result.call_id} is {result.outcome}; it should be {wanted}"
    if missing := set(had) - {result.call_id for result in results}:
        yield f"results that are in no exchange: {missing}"


def test_a_kill_at_some_points_of_a_run_loses_nothing(zygote, writes, tmp_path):
    """Every ninth write, the four ways in turn."""
    for number, at in enumerate(range(1, writes + 1, 9)):
        how = HOWS[number % len(HOWS)]
        home = tmp_path / f"{at}"
        home.mkdir()
        assert attacked(zygote, home, at, how) == [], f"write {at} of {writes}, {how}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", HOWS)
def test_a_kill_at_every_point_of_a_run_loses_nothing(zygote, writes, tmp_path, how):
    """The crash matrix: at every write, in each of four ways."""
    assert writes * len(HOWS) >= 300
    failed = {}
    for at in range(1, writes + 1):
        home = tmp_path / f"{at}"
        home.mkdir()
        if problems := attacked(zygote, home, at, how):
            failed[at] = problems
        shutil.rmtree(home)
    print(f"{writes} points, {how}: {len(failed)} failed")
    assert failed == {}
