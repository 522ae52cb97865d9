"""Identities come from counters and are never used twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.values.ids import CallIds, IdSource, SessionId


def test_runs_and_approvals_are_counted() -> None:
    ids = IdSource(SessionId("s"))
    run = ids.run()
    assert (run, ids.approval(run), ids.approval(run)) == ("s-r1", "s-r1-a1", "s-r1-a2")
    run = ids.run()
    assert (run, ids.approval(run)) == ("s-r2", "s-r2-a1")


def test_a_resumed_session_goes_on_counting() -> None:
    assert IdSource(SessionId("s"), runs=7).run() == "s-r8"


@pytest.mark.parametrize("wire_id", ["toolu_01", "call-1", "a.b:c/d", "x" * 64])
def test_a_usable_id_is_kept(wire_id: str) -> None:
    assert CallIds().claim(wire_id) == wire_id


@pytest.mark.parametrize("wire_id", [None, "", "x" * 65, "two words", "ü", "a\nb", "\x7f"])
def test_an_unusable_id_is_replaced(wire_id: str | None) -> None:
    assert CallIds().claim(wire_id) == "call_1"


def test_repeated_ids_are_replaced_also_those_of_earlier_turns() -> None:
    ids = CallIds(taken=["read_file:0"])
    assert [ids.claim("read_file:0"), ids.claim("b"), ids.claim("b")] == ["call_1", "b", "call_2"]


def test_a_fresh_id_is_not_one_that_is_taken() -> None:
    ids = CallIds(taken=["call_1"])
    assert [ids.claim("call_2"), ids.claim(None), ids.claim("call_3")] == ["call_2", "call_3", "call_4"]


@given(st.lists(st.none() | st.sampled_from(["", "a", "b", "call_1", "call_2"]) | st.text(max_size=70)))
def test_no_id_is_given_twice(wire_ids: list[str | None]) -> None:
    ids = CallIds()
    given_out = [ids.claim(wire_id) for wire_id in wire_ids]
    assert len(set(given_out)) == len(given_out)
    assert all(0 < len(one) <= 64 and one.isascii() and one.isprintable() and " " not in one for one in given_out)
