"""A codec that has followed a conversation says the same as one that sees it for the first time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import histories

from novacode.protocols.summary import PROTOCOLS, codec_for
from novacode.values.history import Exchange, History
from novacode.values.parts import Assistant, Text, User
from novacode.values.request import ModelRequest


def body(codec, history):
    return codec.encode(ModelRequest("m", "be kind", history)).body


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(history=histories(), cuts=st.lists(st.integers(0, 6), max_size=4))
def test_requests_do_not_depend_on_those_before(protocol, history, cuts):
    """The history grows, shrinks and grows again, as far as each cut."""
    codec = codec_for(protocol)
    for cut in [*cuts, len(history.items)]:
        part = History(history.items[:cut])
        assert body(codec, part) == body(codec_for(protocol), part)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_beginning_is_noticed(protocol):
    """What a compaction does: other items in the place of the first ones."""
    codec = codec_for(protocol)
    body(codec, History((User.said("one"), User.said("two"))))
    other = History((User.said("a summary"), User.said("two"), User.said("three")))
    assert body(codec, other) == body(codec_for(protocol), other)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_sent_before_is_not_copied(protocol):
    """Of a body of megabytes the next request has all but the last piece as the same objects."""
    codec = codec_for(protocol)
    exchange = Exchange(Assistant((Text("also " * 20_000),)))
    items = tuple(item for _ in range(20) for item in (User.said("long " * 20_000), exchange))
    first, second = (
        codec.encode(ModelRequest("m", "", History((*items, *more)))) for more in ((), (User.said("and this"),))
    )
    kept = {id(piece) for piece in first.pieces}
    assert sum(len(piece) for piece in second.pieces if id(piece) not in kept) < first.size / 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_what_is_new_is_encoded(protocol, monkeypatch):
    """The second request of a conversation looks at no item of the first."""
    codec = codec_for(protocol)
    items = tuple(User.said(f"{number}") for number in range(50))
    body(codec, History(items))
    growing = getattr(codec, "_messages", None) or codec._items
    seen = []
    real = growing._encode
    monkeypatch.setattr(growing, "_encode", lambda item: seen.append(item) or real(item))
    new = User.said("new")
    body(codec, History((*items, new)))
    assert seen == [new]
