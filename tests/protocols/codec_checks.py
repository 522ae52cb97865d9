"""What must hold for every codec, to be run on any body."""

from __future__ import annotations

import itertools
import random

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols.summary import codec_for, summarise
from novacode.values.events import (
    CallBroken,
    CallDelta,
    CallOpened,
    CallReady,
    Finished,
    Notice,
    PartDone,
    Started,
    TextDelta,
    ThinkingDelta,
    UsageSeen,
)
from novacode.values.ids import CallIds

EVENTS = (
    Started,
    TextDelta,
    ThinkingDelta,
    CallOpened,
    CallDelta,
    CallReady,
    CallBroken,
    PartDone,
    UsageSeen,
    Finished,
    Notice,
)


def decode(protocol, *chunks, ids=None, decoder=None):
    """Return the events of a body and the error it ended with, keeping the contract of a reader."""
    decoder = decoder or codec_for(protocol).decoder(ids or CallIds())
    events, raised = [], None
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        events += decoder.close()
    except (RemoteProtocolError, ModelFailed) as error:
        raised = error
    assert raised is None or raised is decoder.error
    return events, decoder.error


def summary(protocol, body, **more):
    return summarise(*decode(protocol, body, **more))


def cut(body, positions):
    edges = [0, *sorted(positions), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(edges)]


def seen(result):
    """Make the outcome of `decode` comparable: errors have no equality."""
    events, error = result
    return events, (type(error), str(error)) if error is not None else None


def check_order(events, error):
    """Check what every list of events promises, whatever the body."""
    assert all(isinstance(event, EVENTS) for event in events)
    finishes = [event for event in events if isinstance(event, Finished)]
    assert len(finishes) == (error is None), (finishes, error)
    if finishes:
        assert events[-1] is finishes[0]
    for event in events:
        if isinstance(event, UsageSeen):
            counts = [
                getattr(event.usage, name) for name in ("input", "output", "cache_read", "cache_write", "reasoning")
            ]
            assert all(type(count) in {int, type(None)} for count in counts), counts
    opened, settled = {}, set()
    for event in events:
        match event:
            case CallOpened(index, identity, name):
                assert index not in opened
                assert identity
                opened[index] = (identity, name)
            case CallDelta(index, identity, name, fragment):
                assert opened[index] == (identity, name)
                assert fragment
                assert index not in settled
            case CallReady(index, call) | CallBroken(index, call):
                assert opened[index] == (call.id, call.name)
                assert call.index == index
                assert index not in settled
                settled.add(index)
            case TextDelta(_, text) | ThinkingDelta(_, text):
                assert isinstance(text, str)
                assert text
    assert len({identity for identity, _ in opened.values()}) == len(opened)
    if error is None:
        assert settled == set(opened), "a call without an end"


def check_splits(protocol, body, *, times=200, seed=0):
    """Any split of the bytes gives the same events and the same error."""
    whole = seen(decode(protocol, body))
    assert seen(decode(protocol, *[body[i : i + 1] for i in range(len(body))])) == whole
    rng = random.Random(seed)
    for _ in range(times):
        positions = [rng.randrange(len(body) + 1) for _ in range(rng.randrange(1, 12))]
        assert seen(decode(protocol, *cut(body, positions))) == whole, positions
    check_order(*decode(protocol, body))


def check_ends(protocol, body, offsets):
    """The end of the body at any offset gives a result or one of the two errors, and calls that ran stay the same."""
    whole, _ = decode(protocol, body)
    ready = [event for event in whole if isinstance(event, CallReady)]
    for offset in offsets:
        events, error = decode(protocol, body[:offset])
        check_order(events, error)
        assert all(event in ready for event in events if isinstance(event, CallReady)), offset
