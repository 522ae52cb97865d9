"""Every event survives the way to JSON text and back, and the table of tags is whole."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import attrs
import pytest
from cattrs import BaseValidationError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novacode.errors import PairingError
from novacode.values import events, parts
from novacode.values.events import RunEvent, Stamped
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange
from novacode.values.parts import Assistant, BrokenCall, Image, ServerBlock, Text, Thinking, ToolCall, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import EXECUTED, REFUSED, Outcome, ToolResult
from novacode.values.serial import (
    TAGS,
    dump_event,
    dump_stamped,
    load_event,
    load_item,
    load_stamped,
)

_text = st.text(max_size=12)
_ids = st.text(min_size=1, max_size=6)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text | st.just("type"), inner, max_size=3),
    max_leaves=6,
)
_object = st.dictionaries(_text | st.just("type"), _json, max_size=3)
_seal = st.none() | _object
_count = st.none() | st.integers(0, 10**12)
_seconds = st.floats(0, 1e9, allow_nan=False)

_Text = st.builds(Text, _text, _seal)
_Image = st.builds(Image, _text, _text)
_Thinking = st.builds(Thinking, _text, _seal)
_ServerBlock = st.builds(ServerBlock, _text, _object)
_ToolCall = st.builds(ToolCall, _ids, st.integers(0, 99), _text, _object, _seal)
_BrokenCall = st.builds(BrokenCall, _ids, st.integers(0, 99), _text, _text, _text, _seal)
_User = st.builds(User, st.lists(_Text | _Image, max_size=3).map(tuple), st.sampled_from(["person", "runtime"]))
_Usage = st.builds(Usage, _count, _count, _count, _count, _count, st.booleans(), st.booleans())
_Failure = st.builds(
    Failure,
    st.sampled_from(FailureKind),
    _text,
    st.booleans(),
    st.none() | _seconds,
    _count,
    st.none() | _text,
    st.none() | _text,
)


@st.composite
def _result(draw: Any, call: Any = None) -> ToolResult:
    outcome = draw(st.sampled_from(Outcome))
    began = outcome in EXECUTED or (outcome not in REFUSED and draw(st.booleans()))
    return ToolResult(
        call.id if call else draw(_ids),
        call.name if call else draw(_text),
        outcome,
        began,
        tuple(draw(st.lists(_Text | _Image, max_size=2))),
        note=draw(_text),
        exit_code=draw(st.none() | st.integers(-64, 255)),
        diff=draw(_text),
    )


@st.composite
def _exchange(draw: Any) -> Exchange:
    some = st.lists(
        _Text | _Thinking | _ServerBlock | _ToolCall | _BrokenCall, min_size=1, max_size=4, unique_by=_identity
    )
    message = Assistant(tuple(draw(some)), draw(_text))
    return Exchange(message, tuple(draw(_result(call)) for call in message.calls))


def _identity(part: Any) -> Any:
    return part.id if isinstance(part, ToolCall | BrokenCall) else id(part)


_special: dict[type, st.SearchStrategy[Any]] = {
    events.PartDone: st.builds(events.PartDone, st.integers(0, 9), _Text | _Thinking | _ServerBlock),
    events.CallReady: st.builds(events.CallReady, st.integers(0, 9), _ToolCall),
    events.CallBroken: st.builds(events.CallBroken, st.integers(0, 9), _BrokenCall),
    events.UsageSeen: st.builds(events.UsageSeen, _Usage),
    events.RunBegan: st.builds(events.RunBegan, _User, _text),
    events.UserAdded: st.builds(events.UserAdded, _User),
    events.Compacted: st.builds(
        events.Compacted, st.integers(0, 99), _text, st.integers(0, 9), st.dictionaries(_ids, st.integers(0, 9999))
    ),
    events.AttemptDropped: st.builds(events.AttemptDropped, _Failure, st.integers(1, 9), _seconds),
    events.ApprovalAsked: st.builds(events.ApprovalAsked, _ids, _ToolCall, _text, _text, _text, _text),
    events.CallSettled: st.builds(events.CallSettled, _result(), _seconds),
    events.TurnCommitted: st.builds(
        events.TurnCommitted, _exchange(), _Usage, st.none() | st.sampled_from(StopReason), st.none() | _text
    ),
    events.CallMoved: st.builds(
        events.CallMoved, _ids, _text, st.sampled_from(events.Phase), st.lists(_ids, max_size=3).map(tuple)
    ),
    events.Finished: st.builds(events.Finished, st.sampled_from(StopReason), st.none() | _text, _text),
    events.RunEnded: st.builds(
        events.RunEnded,
        st.sampled_from(events.RunStatus),
        _text,
        text=_text,
        turns=st.integers(0, 99),
        usage=_Usage,
        cost_usd=st.none() | _seconds,
        failure=st.none() | _Failure,
        calls=st.dictionaries(_text, st.integers(0, 99), max_size=3),
        reaped=st.builds(
            events.Reaped,
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(0, 9),
            st.lists(st.integers(2, 99), max_size=2).map(tuple),
            st.integers(0, 9999),
        ),
    ),
}
_CLASSES = sorted(get_args(RunEvent), key=lambda cls: cls.__name__)


_PLAIN = {
    "int": st.integers(0, 9),
    "float": _seconds,
    "bool": st.booleans(),
    "str": _text,
    "CallId": _ids,
    "tuple[str, ...]": st.lists(_text, max_size=2).map(tuple),
    "CallId | None": st.none() | _ids,
    "ApprovalId": _ids,
    "Level": st.sampled_from(events.Level),
}


def _of(cls: type) -> st.SearchStrategy[Any]:
    """A strategy for one class of event; those of plain fields are made from their annotations."""
    if cls in _special:
        return _special[cls]
    return st.builds(cls, **{field.name: _PLAIN[cls.__annotations__[field.name]] for field in attrs.fields(cls)})


def through_text(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.parametrize("cls", _CLASSES, ids=lambda cls: cls.__name__)
def test_every_event_comes_back_as_it_was(cls: type) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_of(cls), st.integers(1, 2**53), _ids, _seconds)
    def check(event: Any, seq: int, run_id: str, at: float) -> None:
        data = through_text(dump_event(event))
        assert data["type"] == TAGS[cls]
        assert load_event(data) == event
        stamped = Stamped(seq, run_id, at, event)  # type: ignore[arg-type]
        flat = through_text(dump_stamped(stamped))
        assert list(flat)[:4] == ["seq", "run_id", "at", "type"]
        assert load_stamped(flat) == stamped

    check()


@settings(max_examples=60, deadline=None)
@given(_User | _exchange())
def test_every_item_of_a_history_comes_back_as_it_was(item: Any) -> None:
    whole = dump_event(_carrying(item))
    data = through_text(whole["prompt"] if isinstance(item, User) else whole["exchange"])
    assert load_item(data) == item


def _carrying(item: User | Exchange) -> Any:
    return events.RunBegan(item) if isinstance(item, User) else events.TurnCommitted(item)


def test_the_table_of_tags_is_whole_and_unambiguous() -> None:
    assert set(get_args(RunEvent)) <= set(TAGS)
    assert len(set(TAGS.values())) == len(TAGS)
    others = {parts.Text, Thinking, Image, ServerBlock, ToolCall, BrokenCall, User, Exchange}
    assert set(TAGS) == set(get_args(RunEvent)) | others


def test_no_field_of_an_event_is_in_the_way_of_the_stamp() -> None:
    """Stamped events are one flat object: `seq`, `run_id`, `at` and `type` belong to the stamp."""
    for cls in _CLASSES:
        assert not {"seq", "run_id", "at", "type"} & {field.name for field in attrs.fields(cls)}


def test_defaults_are_left_out() -> None:
    assert dump_event(events.Started()) == {"type": "started"}
    assert dump_event(events.TurnBegan(1)) == {"type": "turn_began", "number": 1}


def test_fields_of_a_newer_version_are_passed_over() -> None:
    assert load_event({"type": "turn_began", "number": 1, "colour": "red"}) == events.TurnBegan(1)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "nothing_of_ours"},
        {"type": 3},
        {"type": ["turn_began"]},
        {"type": "turn_began"},
        {"type": "turn_began", "number": "many"},
        {"type": "part_done", "index": 0, "part": {"type": "nothing"}},
        {"type": "part_done", "index": 0, "part": "text"},
        {"type": "finished", "stop": "brand_new"},
    ],
    ids=repr,
)
def test_anything_else_is_an_error(data: Any) -> None:
    with pytest.raises((ValueError, BaseValidationError)):
        load_event(data)


def test_an_unpaired_exchange_cannot_be_read() -> None:
    call = {"type": "tool_call", "id": "a", "index": 0, "name": "x", "arguments": {}}
    with pytest.raises(BaseValidationError) as caught:
        load_item({"type": "exchange", "message": {"parts": [call]}, "results": []})
    assert caught.group_contains(PairingError)


def test_a_number_that_json_has_not_is_refused_by_json_and_not_by_us() -> None:
    data = dump_event(events.CallReady(0, ToolCall("a", 0, "x", {"n": math.inf})))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="JSON"):
        json.dumps(data, allow_nan=False)
