"""Every scenario of the engine over real codecs, against the rules of the real services, with switches in between.

A request that a service would refuse is answered 400, which ends the run: nothing here may end so.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import trio
from doubles.checking_wire import Switching
from doubles.spoken import PROOF, PROTOCOLS, Asks, Lost, Piece, Rest, Say, Think, Torn, body
from doubles.world import World

from novacode.engine.limits import Limits
from novacode.values.events import CallSettled, Notice, RunBegan, RunEnded, RunStatus, TurnCommitted, UserAdded
from novacode.values.history import Exchange, History
from novacode.values.parts import Assistant, Image, Text, Thinking, ToolCall, User
from novacode.values.request import ModelRequest
from novacode.values.results import EXECUTED, Outcome, ToolResult
from novacode.values.serial import dump_event, load_event

COMPLETED, LIMIT, REFUSED = RunStatus.COMPLETED, RunStatus.LIMIT, RunStatus.REFUSED

Reply = tuple[Sequence[Piece], str]


def whole(text: str = "Done.") -> Reply:
    return [Say(text)], "end"


def work(*pieces: Piece) -> Reply:
    return pieces, "tool_use"


@attrs.frozen
class Scenario:
    """Replies to one run, the outcomes of its calls in their order, and how it ends."""

    replies: Sequence[Reply]
    outcomes: Sequence[Outcome] = ()
    ends: RunStatus = COMPLETED
    text: str = "Done."
    limits: Limits | None = None
    cancel_at: float | None = None
    protocols: Sequence[str] = PROTOCOLS


OK, ERROR, BROKEN = Outcome.OK, Outcome.ERROR, Outcome.BROKEN
NOT_RUN = (Outcome.DENIED, Outcome.UNKNOWN_TOOL, Outcome.DISABLED, Outcome.INVALID, BROKEN)
REFUSALS = (
    Asks("c1", "denied"),
    Asks("c2", "no_such_tool", {"a": 1}),
    Asks("c3", "off"),
    Asks("c4", "work", {"takes": "long"}),
    Torn("c5", "work"),
)
FAILURES = (
    Asks("c1", "work", {"fails": "tool"}),
    Asks("c2", "work", {"fails": "bug"}),
    Asks("c3", "work", {"fails": "exit"}),
    Asks("c4", "slow", {"takes": 9}),
    Asks("c5", "work"),
)
PARALLEL = (
    Say("Working."),
    Asks("c1", "work", {"takes": 2, "writes": ["x"]}),
    Asks("c2", "work", {"takes": 1}),
    Asks("c3", "asks"),
)
RUNS = Asks("c1", "work", {"takes": 0})  # never without arguments: in Chat Completions `{}` waits for the finish
SAME_ID = Asks("work:0", "work")
LONG_ID = Asks("call " + "9" * 90, "work")

SCENARIOS = {
    "plain": Scenario([whole()]),
    "parallel calls": Scenario([work(*PARALLEL), whole()], (OK, OK, OK)),
    "calls that are not run": Scenario([work(*REFUSALS), whole()], NOT_RUN),
    "calls that fail": Scenario([work(*FAILURES), whole()], (ERROR, ERROR, ERROR, Outcome.TIMEOUT, OK)),
    "text cut": Scenario([([Say("one ")], "limit"), ([Say("two ")], "limit"), whole()], text="one two Done."),
    "call cut": Scenario([([Asks("c1", "work"), Torn("c2", "work")], "limit"), whole()], (OK, BROKEN)),
    "nothing but a cut call": Scenario([([Torn("c1", "work")], "limit"), whole()], (BROKEN,)),
    "all of it cut": Scenario([([Think("hm")], "limit"), whole()]),
    "thinking": Scenario(
        [work(Think("hm"), Say("So."), Think("hmm"), Asks("c1", "work"), Asks("c2", "work")), whole()], (OK, OK)
    ),
    "thinking at the end": Scenario([([Say("Done."), Think("hm")], "end")]),
    "paused": Scenario([([Say("Looking. ")], "paused"), whole()], protocols=("anthropic",)),
    "lost before a call": Scenario([work(Think("hm"), Say("half"), Lost()), whole()]),
    "lost after a call": Scenario([work(Think("hm"), RUNS, Say("x"), Lost()), whole()], (OK,)),
    "lost in the next call": Scenario([work(RUNS, Say("x"), Torn("c2", "work"), Lost()), whole()], (OK,)),
    "lost in reasoning": Scenario([work(RUNS, Say("x"), Think("hm"), Lost()), whole()], (OK,)),
    "nothing said": Scenario([([], "end"), ([Think("hm")], "end"), whole()]),
    "refused": Scenario([([Say("I ")], "refusal")], ends=REFUSED, text="I "),
    "refused at once": Scenario([([], "refusal")], ends=REFUSED, text=""),
    "refused after a call": Scenario([([Asks("c1", "work")], "refusal")], (OK,), REFUSED, ""),
    "an unknown stop": Scenario([([Say("Done.")], "brand_new")]),
    "an unknown stop after a call": Scenario([([Asks("c1", "work")], "brand_new"), whole()], (OK,)),
    "a normal stop after a call": Scenario([([Asks("c1", "work")], "end"), whole()], (OK,)),
    "ids again and again": Scenario([work(SAME_ID), work(SAME_ID, SAME_ID), work(LONG_ID), whole()], (OK,) * 4),
    "no ids": Scenario([work(Asks("", "work"), Asks("", "work")), work(Asks("", "work")), whole()], (OK,) * 3),
    "a limit": Scenario([work(Asks("c1", "work"))], (OK,), LIMIT, "", limits=Limits(max_turns=1)),
    "cancelled in a call": Scenario(
        [work(Think("hm"), Say("x"), RUNS, Asks("c2", "work", {"takes": 9}), Say("y"), Rest(9))],
        (OK, Outcome.CANCELLED),
        RunStatus.CANCELLED,
        "xy",
        cancel_at=1,
    ),
    "cancelled in text": Scenario(
        [([Think("hm"), Say("half"), Rest(9)], "end")], (), RunStatus.CANCELLED, "half", cancel_at=1
    ),
    "cancelled in reasoning": Scenario([([Think("hm"), Rest(9)], "end")], (), RunStatus.CANCELLED, "", cancel_at=1),
}
CASES = [
    pytest.param(protocol, scenario, id=f"{name}, {protocol}")
    for name, scenario in SCENARIOS.items()
    for protocol in scenario.protocols
]


class Talk:
    """A session over all providers."""

    def __init__(self, protocol: str, limits: Limits | None = None) -> None:
        self.model = Switching(protocol)
        self.world = World(limits=limits, timeout=3, services={"model": self.model, "request": self._request})
        self.world.answer_all(allowed=True)

    def _request(self, history: History, output_left: int | None) -> ModelRequest:
        return ModelRequest("m", "Be brief.", history, self.world.services.tools.offers(), output_left)

    async def run(self, *replies: Reply, prompt: User | str = "go", cancel_at: float | None = None) -> RunEnded:
        protocol = self.model.protocol
        self.model.wire.replies = [body(protocol, pieces, stop) for pieces, stop in replies]
        ended: list[RunEnded] = []

        async def run() -> None:
            ended.append(await self.world.agent.run(prompt))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            if cancel_at is not None:
                await trio.sleep(cancel_at)
                self.world.agent.cancel("enough")
        return ended[0]

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes in the history, in call order."""
        return [result.outcome for exchange in self.world.talk.history.exchanges for result in exchange.results]


@pytest.mark.parametrize(("protocol", "scenario"), CASES)
async def test_scenario(protocol: str, scenario: Scenario, autojump_clock: Any) -> None:
    """It ends the same in every protocol; then the session goes on, there and at every other provider and back."""
    talk = Talk(protocol, scenario.limits)
    ended = await talk.run(*scenario.replies, cancel_at=scenario.cancel_at)
    assert talk.model.refused == {}
    assert (ended.status, ended.text) == (scenario.ends, scenario.text), ended
    assert talk.outcomes == list(scenario.outcomes)
    assert talk.model.wire.replies == []
    for other in (protocol, *(name for name in PROTOCOLS if name != protocol), protocol):
        talk.model.protocol = other
        ended = await talk.run(work(Think("hm"), Asks("c1", "work")), whole("Still here."))
        assert talk.model.refused == {}
        if scenario.limits is None:
            assert (ended.status, ended.text) == (COMPLETED, "Still here.")
    settled = [event.result.call_id for event in talk.world.of(CallSettled)]
    assert len(set(settled)) == len(settled) == len(talk.outcomes)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_seals_go_back_to_their_issuer_and_to_nobody_else(protocol: str, autojump_clock: Any) -> None:
    """Chat Completions has no seals: there the reasoning itself goes back to the one who wants it."""
    proof = b"secret thought" if protocol == "openai-chat" else PROOF.encode()
    talk = Talk(protocol)
    await talk.run(work(Think("secret thought"), Asks("c1", "work")), whole())
    assert proof in talk.model.wire.bodies[-1]
    for other in PROTOCOLS:
        talk.model.protocol = other
        await talk.run(whole())
        assert (proof in talk.model.wire.bodies[-1]) is (other == protocol), other
    assert talk.model.refused == {}


def everything() -> History:
    """A history with every outcome there is, and pictures wherever one may stand."""
    calls = tuple(ToolCall(f"c{n}", n + 1, "work", {"takes": 0}) for n in range(len(Outcome)))
    results = tuple(
        ToolResult(call.id, call.name, outcome, outcome in EXECUTED, (Text("said"), Image("image/png", "aGk=")))
        for call, outcome in zip(calls, Outcome, strict=True)
    )
    shown = User((Text("look"), Image("image/png", "aGk=")))
    message = Assistant((Thinking("hm"), *calls), "elsewhere")
    return History((shown, Exchange(message, results), User((Image("image/jpeg", "aGk="),))))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_outcome_and_pictures_are_accepted(protocol: str, autojump_clock: Any) -> None:
    """Also those that no scripted run leaves behind: `lost`, after a crash, and `skipped`."""
    talk = Talk(protocol)
    talk.world.talk.history = everything()
    ended = await talk.run(whole(), prompt=User((Text("and this?"), Image("image/png", "aGk="))))
    assert (ended.status, talk.model.refused) == (COMPLETED, {})
    assert talk.model.wire.bodies[0].count(b"aGk=") == 4


async def test_br_073_a_pause_goes_back_as_the_last_message(autojump_clock: Any) -> None:
    """With what the provider was doing by itself, unchanged; no call of ours is run for it, no word is added."""
    search = b'{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}'
    start, *end = body("anthropic", [], "paused")
    opened = search.replace(b'{"query":"x"}', b"{}")
    block = [
        b'data: {"type":"content_block_start","index":0,"content_block":%b}\n\n' % opened,
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":'
        b'"{\\"query\\":\\"x\\"}"}}\n\n',
        b'data: {"type":"content_block_stop","index":0}\n\n',
    ]
    talk = Talk("anthropic")
    talk.model.wire.replies = [
        [start, *block, *end],
        body("anthropic", *whole("Found.")),
    ]
    ended = await talk.world.agent.run("search")
    assert (ended.status, ended.text, ended.calls) == (COMPLETED, "Found.", {"total": 0})
    assert talk.model.wire.bodies[1].endswith(b'{"role":"assistant","content":[%b]}]}' % search)
    talk.model.protocol = "openai-chat"
    assert (await talk.run(whole("Elsewhere."))).text == "Elsewhere."
    assert talk.model.refused == {}


@pytest.mark.parametrize("stop", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
@pytest.mark.parametrize("written", [(), (Asks("c1", "work"),)], ids=["nothing", "a call"])
async def test_br_075_a_call_nobody_could_read_is_asked_for_again(
    stop: str, written: Sequence[Piece], autojump_clock: Any
) -> None:
    """A bounded number of times, then the run has failed with that word. What stood beside it never runs."""
    chunk = b"".join(frame for frame in body("gemini", written, stop) if isinstance(frame, bytes))
    merged = _one_chunk(chunk)
    talk = Talk("gemini")
    talk.model.wire.replies = [[merged]] * 2 + [body("gemini", *whole())]
    assert ((await talk.world.agent.run("go")).text, talk.outcomes) == ("Done.", [])
    talk.model.wire.replies = [[merged]] * 9
    ended = await talk.world.agent.run("again")
    assert (ended.status, len(talk.model.wire.replies), talk.outcomes) == (RunStatus.FAILED, 6, [])
    assert ended.failure is not None
    assert ended.failure.raw_type == stop
    talk.model.wire.replies = []
    assert (await talk.run(whole())).status is COMPLETED
    assert talk.model.refused == {}


def _one_chunk(frames: bytes) -> bytes:
    """Put the parts of all chunks into the one that names the finish reason."""
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in frames.splitlines() if line.startswith(b"data: ")]
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    chunks[-1]["candidates"][0]["content"]["parts"] = parts
    return b"data: " + json.dumps(chunks[-1]).encode() + b"\n\n"


SAYINGS: Sequence[Callable[[random.Random], Piece]] = (
    lambda chance: Say(chance.choice(["x", " ", "\n\n", "Ünïcode \U0001f600", "a\u2028b"])),
    lambda chance: Think(chance.choice(["hm", "  \n"])),
    lambda chance: Asks(chance.choice(["c1", "work:0", "", "a b.c/d"]), chance.choice(["work", "denied", "nobody"])),
    lambda chance: Torn(chance.choice(["c9", ""]), "work"),
)


@pytest.mark.parametrize("seed", range(40))
async def test_a_long_session_that_changes_its_provider_all_the_time(seed: int, autojump_clock: Any) -> None:
    """Twelve runs of made-up replies, each at a provider of its own: no service refuses any request."""
    chance = random.Random(seed)
    talk = Talk("anthropic", Limits(max_turns=6))
    for _ in range(12):
        talk.model.protocol = chance.choice(PROTOCOLS)
        replies: list[Reply] = []
        for _ in range(8):
            pieces = [chance.choice(SAYINGS)(chance) for _ in range(chance.randrange(5))]
            pieces += [Lost()] if chance.random() < 0.15 else []
            replies.append((pieces, chance.choice(["end", "tool_use", "limit", "refusal", "brand_new"])))
        await talk.run(*replies, cancel_at=chance.choice([None, 0.5]))
        assert talk.model.refused == {}


def reread(talk: Talk) -> History:
    """The history as its journal gives it: every event written as JSON and read again."""
    items: list[User | Exchange] = []
    for stamped in talk.world.events:
        match stamped.event:
            case RunBegan() | UserAdded() | TurnCommitted():
                read = load_event(json.loads(json.dumps(dump_event(stamped.event))))
                items.append(getattr(read, {RunBegan: "prompt", UserAdded: "user"}.get(type(read), "exchange")))
            case _:
                pass
    return History(tuple(items))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_br_076_br_077_br_078_br_033_a_resumed_session_sends_the_same_bytes(
    protocol: str, autojump_clock: Any
) -> None:
    """Seals, reasoning with blanks around it, broken calls and ids that come again: all of it through the journal."""
    talk = Talk(protocol)
    thought = Think("  Step \u00e9 \U0001f600\n\n")
    await talk.run(work(thought, Say("So."), Think("hm"), SAME_ID, Torn("c2", "work")), work(SAME_ID), whole())
    resumed = Talk(protocol)
    resumed.world.talk.history = reread(talk)
    assert resumed.world.talk.history == talk.world.talk.history
    for session in (talk, resumed):
        await session.run(whole(), prompt="and now?")
    assert resumed.model.wire.bodies == talk.model.wire.bodies[-1:]
    if protocol in {"anthropic", "openai-chat"}:  # the others want proofs back, and no words
        written = json.dumps(thought.text, ensure_ascii=False).strip('"').encode()
        assert written in resumed.model.wire.bodies[0]
    assert len(resumed.world.talk.history.call_ids) == 3


@pytest.mark.parametrize(
    ("limits", "told"),
    [(Limits(), 0), (Limits(max_output_tokens=9), 1), (Limits(max_budget_usd=1), 1), (Limits(max_turns=9), 0)],
    ids=["none", "tokens", "cost", "turns"],
)
async def test_a_limit_that_the_provider_gives_no_counts_for_is_told_once(
    limits: Limits, told: int, autojump_clock: Any
) -> None:
    talk = Talk("openai-chat", limits)
    replies = [body("openai-chat", pieces, stop) for pieces, stop in (work(RUNS), work(RUNS), whole())]
    usage = b', "usage": {"prompt_tokens": 10, "completion_tokens": 20}'
    bare = [[frame.replace(usage, b"") for frame in reply if isinstance(frame, bytes)] for reply in replies]
    talk.model.wire.replies = list(bare)
    assert (await talk.world.agent.run("go")).status is COMPLETED
    assert sum("reports no token counts" in notice.text for notice in talk.world.of(Notice)) == told
