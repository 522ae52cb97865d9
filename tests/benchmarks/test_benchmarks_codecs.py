"""What a codec costs beside the reading of its JSON: the ratio to `json.loads` of the same payloads."""

import json
import math
import sys
import time
from pathlib import Path

import pytest

from novacode.errors import NovaError
from novacode.protocols import jsonio
from novacode.protocols.summary import codec_for
from novacode.values.ids import CallIds

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "protocols"))

from recorded_streams import recorded

FEWEST = 15
TARGET = 1.5


def payloads(stream):
    lines = stream.body.replace(b"\r", b"").split(b"\n")
    data = (line.removeprefix(b"data:").strip() for line in lines if not line.startswith((b"event:", b":")))
    return [payload for payload in data if payload.startswith(b"{") and payload.endswith(b"}")]


def fastest(act, repeats=7):
    best = math.inf
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(20):
            act()
        best = min(best, time.perf_counter() - began)
    return best / 20


def whole(codec, body):
    decoder = codec.decoder(CallIds())
    try:
        decoder.feed(body)
        decoder.close()
    except NovaError:
        pass  # some recordings end with the provider's error


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_codec_costs_little_more_than_its_json():
    streams = [param.values[0] for param in recorded() if param.values[0] is not None]
    if not streams or jsonio._fast is None:
        pytest.skip("needs the recorded streams and orjson")
    ratios = []
    for stream in streams:
        messages = payloads(stream)
        if len(messages) < FEWEST:
            continue
        codec = codec_for(stream.protocol)
        ours = fastest(lambda codec=codec, stream=stream: whole(codec, stream.body))
        base = fastest(lambda messages=messages: [json.loads(message) for message in messages])
        ratios.append(ours / base)
        print(
            f"{ours / base:5.2f}  {len(messages):4d} messages  {ours / len(messages) * 1e6:5.1f} µs each  {stream.name}"
        )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{mean:5.2f}  geometric mean of {len(ratios)} streams")
    assert mean <= TARGET
