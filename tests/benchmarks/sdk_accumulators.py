"""Run in an environment that has the vendors' SDKs: times their accumulators beside our codecs, in turn, on one body.

Prints one JSON object a stream: {"name", "messages", "ours", "theirs"} in seconds (the fastest of several rounds).
"""

import json
import math
import sys
import time
from pathlib import Path

import anthropic._streaming as anthropic_streaming
import openai._streaming as openai_streaming
from anthropic._models import construct_type as anthropic_construct
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from openai import omit
from openai._models import construct_type as openai_construct
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from novacode.protocols.summary import codec_for
from novacode.values.ids import CallIds

ROUNDS = 5


def by_anthropic(body):
    snapshot, buffers = None, {}
    for message in anthropic_streaming.SSEDecoder().iter_bytes(iter([body])):
        if message.event in ("ping", "error"):
            continue
        event = anthropic_construct(type_=RawMessageStreamEvent, value=message.json())
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)


def by_openai_chat(body):
    state = ChatCompletionStreamState()
    for message in openai_streaming.SSEDecoder().iter_bytes(iter([body])):
        if not message.data.startswith("[DONE]"):
            state.handle_chunk(openai_construct(type_=ChatCompletionChunk, value=message.json()))


def by_openai_responses(body):
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for message in openai_streaming.SSEDecoder().iter_bytes(iter([body])):
        state.handle_event(openai_construct(type_=ResponseStreamEvent, value=message.json()))


THEIRS = {"anthropic": by_anthropic, "openai_chat": by_openai_chat, "openai_responses": by_openai_responses}


def ours(protocol, body):
    decoder = codec_for(protocol.replace("_", "-")).decoder(CallIds())
    decoder.feed(body)
    decoder.close()


def seconds(act, *arguments):
    best = math.inf
    for _ in range(ROUNDS):
        began = time.perf_counter()
        act(*arguments)
        best = min(best, time.perf_counter() - began)
    return best


for path in sorted(Path(sys.argv[1]).glob("*/*.sse")):
    protocol, body = path.parent.name, path.read_bytes()
    messages = body.count(b"\ndata:") + body.startswith(b"data:")
    if protocol not in THEIRS or messages < 15:
        continue
    try:
        theirs = seconds(THEIRS[protocol], body)
        own = seconds(ours, protocol, body)
    except Exception as error:  # noqa: BLE001 - what one of the two cannot read is no measurement
        print(f"{path.name}: {type(error).__name__}: {error}", file=sys.stderr)
        continue
    print(json.dumps({"name": f"{protocol}/{path.stem}", "messages": messages, "ours": own, "theirs": theirs}))
