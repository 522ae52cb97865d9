"""Recordings whose frames were dropped, repeated, reordered and corrupted: results and the two errors, nothing else."""

import resource
from collections import defaultdict

import pytest
from codec_checks import check_order, decode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_streams import recorded
from test_protocols_fuzz import _BODIES

from novacode.protocols.summary import PROTOCOLS

_LONGEST = 12_000  # bytes: the short recordings show every shape the long ones do
_GROWTH = 64 * 1024  # kB of memory that hundreds of broken replies together may leave behind

_recordings = defaultdict(list)
for _param in recorded():
    if _param.values[0] is not None and len(_param.values[0].body) <= _LONGEST:
        _recordings[_param.values[0].protocol].append(_param.values[0].body)

_mutations = st.lists(
    st.tuples(
        st.sampled_from(["drop", "repeat", "swap", "corrupt", "cut"]),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.sampled_from(b'\x00\xff{}[]",:\\\n\r 0aZ'),
    ),
    min_size=1,
    max_size=5,
)


def _frames(protocol, body):
    separator = b"\n" if protocol == "ollama" else b"\n\n"
    return [frame + separator for frame in body.replace(b"\r\n", b"\n").split(separator) if frame]


def _mutate(frames, kind, one, other, byte):
    frames[:] = [frame for frame in frames if frame]
    if not frames:
        return
    at, to = one % len(frames), other % len(frames)
    match kind:
        case "drop":
            del frames[at]
        case "repeat":
            frames.insert(to, frames[at])
        case "swap":
            frames[at], frames[to] = frames[to], frames[at]
        case "corrupt":
            hurt = bytearray(frames[at])
            hurt[other % len(hurt)] = byte
            frames[at] = bytes(hurt)
        case "cut":
            frames[at] = frames[at][: other % len(frames[at])]


def _fuzz(protocol, examples):
    """Feed `examples` mutated recordings; where there are none, the hand-written body of the protocol."""
    bodies = _recordings[protocol] or [_BODIES[protocol]]

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(bodies), _mutations)
    def attack(body, mutations):
        frames = _frames(protocol, body)
        for mutation in mutations:
            _mutate(frames, *mutation)
        check_order(*decode(protocol, b"".join(frames)))

    attack()
    # Not around the above: hypothesis itself remembers what it has tried, about 2.5 kB an input.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for body in bodies * (1 + 500 // len(bodies)):
        decode(protocol, body[: len(body) // 2], body)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _GROWTH


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.timeout(180)
def test_two_thousand_hurt_replies(protocol):
    _fuzz(protocol, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_hurt_replies(protocol):
    _fuzz(protocol, 100_000)
