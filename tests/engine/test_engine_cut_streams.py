"""The connection cut after every byte of a reply: no call runs twice, the history stays paired, the run goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest
import trio
from doubles.checking_wire import CheckingWire, codec_of
from doubles.spoken import PROTOCOLS, Asks, Lost, Say, Think, body
from doubles.world import World
from protocols.recorded_streams import recorded

from novacode.models.client import ModelClient
from novacode.tools.base import Claims, Effects, Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.toolset import Toolset
from novacode.values.events import AttemptDropped, RunStatus
from novacode.values.history import History
from novacode.values.ids import CallIds
from novacode.values.parts import JSON
from novacode.values.request import ModelRequest
from novacode.workspace.paths import Workspace

RECORDED = (
    "anthropic/claude-sonnet35-text-then-two-tools",
    "openai_chat/openai-parallel-tools",
    "openai_responses/openai-tool-no-sequence-numbers",
    "gemini/gemini35-thinking-parallel-tools",
)


@attrs.frozen
class Body:
    """A reply with calls, and the calls in it."""

    protocol: str
    data: bytes
    calls: tuple[tuple[str, str], ...]


def bodies() -> Iterator[Any]:
    """Yield replies written by hand in every protocol, and recorded ones where they are at hand."""
    pieces = [
        Think("hm"),
        Say("Caf\u00e9."),
        Asks("c1", "once", {"a": "1"}),
        Say("And"),
        Asks("c2", "once", {"a": "2"}),
    ]
    for protocol in PROTOCOLS:
        frames = b"".join(frame for frame in body(protocol, pieces, "tool_use") if isinstance(frame, bytes))
        yield pytest.param(Body(protocol, frames, (_key("once", {"a": "1"}), _key("once", {"a": "2"}))), id=protocol)
    found = recorded()
    for parameter in found:
        [stream] = parameter.values
        if stream is None:
            yield parameter
        elif stream.name in RECORDED:
            calls = tuple(_key(call["name"], call["arguments"]) for call in stream.expected["tool_calls"])
            yield pytest.param(Body(stream.protocol, stream.body, calls), id=stream.name)


def _key(name: str, arguments: Mapping[str, JSON]) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True)


class Once:
    """A tool whose effect is counted."""

    def __init__(self, name: str, fields: Sequence[str], effects: Counter[tuple[str, str]]) -> None:
        made = {field: attrs.field(default="", type=str) for field in fields}
        self.spec = ToolSpec(name, "Has an effect.", attrs.make_class("Args", made))
        self._effects = effects

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        return Claims()

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        return Effects(self.spec.name)

    def limit(self, args: Any) -> float | None:
        return None

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        self._effects[_key(permit.call.name, permit.call.arguments)] += 1
        await trio.lowlevel.checkpoint()
        return ToolOutput.of("done")


class CutWire(CheckingWire):
    """Answers the first request with a beginning of a reply, and the same request a second time with all of it.

    Any other request is answered with a text.
    """

    def __init__(self, reply: Body, cut: int, *, clean: bool) -> None:
        super().__init__(reply.protocol)
        self._whole = reply.data
        self._plain = body(reply.protocol, [Say("Done.")], "end")
        self.replies = [[reply.data[:cut]] if clean else [reply.data[:cut], Lost()]]

    def open(self, request: Any) -> Any:
        if self.bodies:
            self.replies = [[self._whole]] if request.body == self.bodies[0] else [self._plain]
        return super().open(request)


async def run_cut(reply: Body, cut: int, *, clean: bool) -> list[str]:
    """Run with the reply cut and return what is wrong with what came of it."""
    effects: Counter[tuple[str, str]] = Counter()
    fields = sorted({field for _, arguments in reply.calls for field in json.loads(arguments)})
    tools = Toolset([Once(name, fields, effects) for name in sorted({name for name, _ in reply.calls})])
    wire = CutWire(reply, cut, clean=clean)

    def request(history: History, output_left: int | None) -> ModelRequest:
        return ModelRequest("m", "", history, tools.offers(), output_left)

    model = ModelClient(codec_of(reply.protocol), wire, CallIds())
    world = World(services={"model": model, "tools": tools, "request": request})
    ended = await world.agent.run("go")
    wrong = [f"refused: {wire.refused}"] if wire.refused else []
    if (ended.status, ended.text[-5:]) != (RunStatus.COMPLETED, "Done."):
        wrong.append(f"ended {ended.status} {ended.reason} {ended.text!r}")
    planned = Counter(reply.calls)
    if effects - planned:
        wrong.append(f"ran too often: {effects - planned}")
    if world.of(AttemptDropped) and effects != planned:
        wrong.append(f"asked again and did not run {planned - effects}")
    settled = [result.call_id for exchange in world.talk.history.exchanges for result in exchange.results]
    if len(settled) != len(set(settled)) or len(settled) < effects.total():
        wrong.append(f"{effects.total()} effects, and results {settled}")
    return [f"cut after {cut} bytes, {'clean' if clean else 'reset'}: {text}" for text in wrong]


async def check_cuts(reply: Body, cuts: range) -> None:
    wrong = [text for cut in cuts for clean in (False, True) for text in await run_cut(reply, cut, clean=clean)]
    assert wrong == []


@pytest.mark.parametrize("reply", list(bodies()))
async def test_br_095_cut_here_and_there(reply: Body, autojump_clock: Any) -> None:
    """At sixty places, spread so that no frame is cut at the same place in two bodies."""
    await check_cuts(reply, range(len(reply.data) % 7, len(reply.data), max(1, len(reply.data) // 60)))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("reply", list(bodies()))
async def test_br_095_cut_after_every_byte(reply: Body, part: int, autojump_clock: Any) -> None:
    await check_cuts(reply, range(part, len(reply.data), 8))
