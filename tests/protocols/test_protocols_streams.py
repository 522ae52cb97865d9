"""Every recorded stream decodes to what it is known to hold, however it is cut."""

import random

import pytest
from codec_checks import check_ends, check_splits, decode
from recorded_streams import recorded

from novacode.protocols.summary import PROTOCOLS, summarise

STREAMS = [stream for stream in recorded() if stream.values[0] is None or stream.values[0].protocol in PROTOCOLS]
_KEYS = ("text", "reasoning", "usage", "server_tools", "error")


@pytest.mark.parametrize("stream", STREAMS)
def test_the_content_is_what_was_recorded(stream):
    expected = stream.expected
    got = summarise(*decode(stream.protocol, stream.body))
    assert {key: got[key] for key in _KEYS} == {key: expected[key] for key in _KEYS}
    assert got["stop_raw"] == expected["stop"]
    assert got["signatures"] == expected.get("signatures", [])
    assert got.get("refusal") == expected.get("refusal")
    assert len(got["tool_calls"]) == len(expected["tool_calls"])
    for call, wanted in zip(got["tool_calls"], expected["tool_calls"], strict=True):
        problem = call.pop("broken", None)
        assert (problem is not None) == (wanted["arguments"] is None)
        identity = call.pop("id")
        assert identity == wanted["id"] if wanted["id"] is not None else identity.startswith("call_")
        assert call == {key: value for key, value in wanted.items() if key != "id"}


@pytest.mark.parametrize("stream", STREAMS)
def test_any_cut_gives_the_same_events(stream):
    check_splits(stream.protocol, stream.body, times=200 if len(stream.body) < 50_000 else 20)


@pytest.mark.parametrize("stream", STREAMS)
def test_an_early_end_gives_a_result_or_an_error(stream):
    rng = random.Random(stream.name)
    check_ends(stream.protocol, stream.body, [rng.randrange(len(stream.body)) for _ in range(40)])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stream", [s for s in STREAMS if s.values[0] is not None and len(s.values[0].body) < 20_000])
def test_an_early_end_anywhere_gives_a_result_or_an_error(stream):
    check_ends(stream.protocol, stream.body, range(len(stream.body)))
