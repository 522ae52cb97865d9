"""A history that is not paired cannot be built."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.errors import PairingError
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, BrokenCall, Image, Text, Thinking, ToolCall, User
from novacode.values.results import EXECUTED, REFUSED, Outcome, ToolResult


def call(name: str, index: int = 0) -> ToolCall:
    return ToolCall(CallId(name), index, f"tool_{name}", {})


def result(name: str) -> ToolResult:
    return ToolResult(CallId(name), f"tool_{name}", Outcome.DENIED, began=False, content=())


A, B = call("a"), call("b", 1)
TORN = BrokenCall(CallId("t"), 2, "tool_t", "{", "torn")


@pytest.mark.parametrize(
    ("parts", "results"),
    [
        ((Text("x"),), ()),
        ((A,), (result("a"),)),
        ((Thinking("hm"), A, Text("and"), B), (result("a"), result("b"))),
        ((A, TORN), (result("a"), result("t"))),
    ],
)
def test_what_is_paired_is_an_exchange(parts: tuple[object, ...], results: tuple[ToolResult, ...]) -> None:
    exchange = Exchange(Assistant(parts), results)  # type: ignore[arg-type]
    assert (exchange.message.parts, exchange.results) == (parts, results)


@pytest.mark.parametrize(
    ("parts", "results", "problem"),
    [
        ((), (), "this one has no parts"),
        ((A,), (), r"calls \[\('a', 'tool_a'\)\], results \[\]"),
        ((Text("x"),), (result("a"),), "one to one"),
        ((A, B), (result("b"), result("a")), "in order"),
        ((A, B), (result("a"),), "one to one"),
        ((A,), (result("a"), result("a")), "one to one"),
        ((A,), (attrs.evolve(result("a"), name="other"),), "one to one"),
        ((TORN,), (), "one to one"),
        ((A, A), (result("a"), result("a")), "two calls of one message share an id"),
    ],
)
def test_what_is_not_paired_is_refused(
    parts: tuple[object, ...], results: tuple[ToolResult, ...], problem: str
) -> None:
    with pytest.raises(PairingError, match=problem):
        Exchange(Assistant(parts), results)  # type: ignore[arg-type]


@given(st.permutations(["a", "b", "c"]), st.permutations(["a", "b", "c"]))
def test_only_one_order_of_results_is_right(calls: list[str], results: list[str]) -> None:
    message = Assistant(tuple(call(name, index) for index, name in enumerate(calls)))
    if calls == results:
        Exchange(message, tuple(map(result, results)))
    else:
        with pytest.raises(PairingError):
            Exchange(message, tuple(map(result, results)))


def test_growing_leaves_the_old_history_as_it_was() -> None:
    old = History().with_user(User.said("hello"))
    exchange = Exchange(Assistant((A, B)), (result("a"), result("b")))
    new = old.with_exchange(exchange).with_exchange(Exchange(Assistant((Text("x"),))))
    assert old.items == (User.said("hello"),)
    assert new.items[:2] == (User.said("hello"), exchange)
    assert list(new.exchanges) == list(new.items[1:])
    assert new.call_ids == {"a", "b"}


def test_texts_are_what_can_be_read() -> None:
    picture = Image("image/png", "AAAA")
    assert User((Text("a"), picture, Text("b"))).text == "ab"
    assert Assistant((Thinking("hm"), Text("a"), A, Text("b"))).text == "ab"
    assert Assistant((Text("x"), B, TORN, A)).calls == (B, TORN, A)
    assert ToolResult(CallId("a"), "x", Outcome.OK, began=True, content=(Text("a"), picture, Text("b"))).text == "ab"


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("began", [True, False])
def test_an_outcome_says_whether_anything_was_executed(outcome: Outcome, began: bool) -> None:
    """No result can claim that a refused call ran, or that one that ran did not."""
    wrong = (outcome in EXECUTED and not began) or (outcome in REFUSED and began)
    if wrong:
        with pytest.raises(ValueError, match=f"{outcome} needs began={not began}: a tool_a"):
            ToolResult.of(A, outcome, "x", began=began)
    else:
        made = ToolResult.of(A, outcome, "x", began=began)
        assert made == ToolResult(CallId("a"), "tool_a", outcome, began, (Text("x"),))


def test_every_outcome_is_of_one_kind() -> None:
    assert EXECUTED | REFUSED | {Outcome.CANCELLED} == set(Outcome)
    assert not EXECUTED & REFUSED
