"""The scripted model: what its file may say, and what then comes through the real codec."""

import sys
from itertools import pairwise

import pytest
import trio

from novacode.errors import InputError, ModelFailed
from novacode.models.client import ModelClient
from novacode.models.script import ScriptWire, demo_script, load_script, parse_script, tour_script
from novacode.models.script_steps import CallStep, Expectation, Script, ScriptTurn, ScriptUsage, TextStep
from novacode.protocols.anthropic import AnthropicCodec
from novacode.values.events import (
    CallBroken,
    CallDelta,
    CallOpened,
    CallReady,
    Finished,
    PartDone,
    Started,
    TextDelta,
    ThinkingDelta,
    UsageSeen,
)
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange, History
from novacode.values.ids import CallIds
from novacode.values.parts import Assistant, BrokenCall, Text, ToolCall, User
from novacode.values.request import ModelRequest, StopReason
from novacode.values.results import Outcome, ToolResult

ASKED = History().with_user(User.said("do it"))


def turn(*lines):
    return "[[turn]]\n" + "\n".join(lines) + "\n"


def steps(*lines):
    return turn(f"steps = [{', '.join(lines)}]")


def answered(*texts):
    """A history in which the model made one call for each of `texts` and got it back."""
    calls = tuple(ToolCall(f"c{n}", n, "shell", {}) for n, _ in enumerate(texts))
    results = tuple(ToolResult.of(call, Outcome.OK, text, began=True) for call, text in zip(calls, texts, strict=True))
    return ASKED.with_exchange(Exchange(Assistant(calls), results))


def client_of(text, on_time=None):
    return ModelClient(AnthropicCodec(), ScriptWire(parse_script(text, "s.toml"), on_time), CallIds())


async def reads_of(client, history=ASKED, seen=None):
    """What each read of one reply brought; also kept in `seen`, for replies that fail."""
    reads = [] if seen is None else seen
    async with client.stream(ModelRequest("m", "", history)) as stream:
        while events := await stream.receive():
            reads.append(tuple(events))
    return reads


async def play(text, history=ASKED):
    """All the events of the first turn that are neither its start nor its usage."""
    events = [event for read in await reads_of(client_of(text), history) for event in read]
    return [event for event in events if not isinstance(event, Started | UsageSeen)]


async def failure_of(text, history=ASKED):
    with pytest.raises(ModelFailed) as caught:
        await reads_of(client_of(text), history)
    return caught.value.failure


# --- what a turn says ---------------------------------------------------------------------------------------------


async def test_text_and_a_call_come_through_the_codec():
    text = steps('{ text = "I look." }', '{ call = "shell", arguments = { command = "ls" }, fragments = 2 }')
    assert await play(text) == [
        TextDelta(0, "I look."),
        PartDone(0, Text("I look.")),
        CallOpened(1, "call_s1_2", "shell"),
        CallDelta(1, "call_s1_2", "shell", '{"comman'),
        CallDelta(1, "call_s1_2", "shell", 'd": "ls"}'),
        CallReady(1, ToolCall("call_s1_2", 1, "shell", {"command": "ls"})),
        Finished(StopReason.TOOL_USE, "tool_use"),
    ]


async def test_thinking_is_sealed():
    events = await play(steps('{ thinking = "hm", signature = "sig" }', '{ text = "ok" }'))
    assert events[0] == ThinkingDelta(0, "hm")
    assert isinstance(events[1], PartDone)
    assert "sig" in str(events[1].part.seal)


async def test_unicode_survives_being_cut_into_fragments():
    """There are never more fragments than characters, and none goes through a character."""
    events = await play(steps('{ text = "añ😀 é", fragments = 9 }'))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "ñ", "😀", " ", "é"]


async def test_every_delta_arrives_by_itself_and_others_run_in_between():
    """Dispatch while streaming can only be seen when the reply does not come in one piece."""
    client, ticks, seen_at = client_of(steps('{ text = "abcdef", fragments = 6 }')), [], []

    async def tick():
        while True:
            ticks.append(None)
            await trio.lowlevel.checkpoint()

    class Noting(list):
        def append(self, events):
            if isinstance(events[0], TextDelta):
                assert len(events) == 1
                seen_at.append(len(ticks))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await reads_of(client, seen=Noting())
        nursery.cancel_scope.cancel()
    assert len(seen_at) == 6
    assert all(before < after for before, after in pairwise(seen_at))


async def test_broken_arguments_are_a_broken_call():
    events = await play(steps('{ call = "shell", raw = \'{not json\', id = "x" }'))
    [broken] = [event for event in events if isinstance(event, CallBroken)]
    assert broken == CallBroken(0, BrokenCall("x", 0, "shell", "{not json", broken.call.problem))
    assert events[-1] == Finished(StopReason.TOOL_USE, "tool_use")


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ('{ cut = "arguments" }', "shell"),
        ('{ cut = "arguments", call = "write", arguments = { path = "a", content = "bbbb" } }', "write"),
        ('{ call = "write", arguments = { path = "a" }, cut = "arguments" }', "write"),
    ],
)
async def test_a_call_cut_in_half_ends_the_reply_at_the_output_limit(step, name):
    events = await play(steps('{ text = "a" }', step))
    [broken] = [event for event in events if isinstance(event, CallBroken)]
    assert broken.call.name == name
    assert not any(isinstance(event, CallReady) for event in events)
    assert events[-1] == Finished(StopReason.OUTPUT_LIMIT, "max_tokens")


async def test_a_cut_call_may_end_otherwise():
    events = await play(turn('steps = [{ cut = "arguments" }]', 'stop = "refusal"'))
    assert events[-1] == Finished(StopReason.REFUSAL, "refusal")


@pytest.mark.parametrize("stop", list(StopReason))
async def test_every_stop_reason_can_be_scripted(stop):
    [finished] = [event for event in await play(turn(f'stop = "{stop}"')) if isinstance(event, Finished)]
    assert finished.stop is stop


async def test_usage_is_reported():
    text = turn("usage = { input = 10, output = 5, cache_read = 3, cache_write = 2 }", 'steps = [{ text = "a" }]')
    events = [event for read in await reads_of(client_of(text)) for event in read]
    last = [event.usage for event in events if isinstance(event, UsageSeen)][-1]
    assert (last.input, last.output, last.cache_read, last.cache_write, last.prompt) == (10, 5, 3, 2, 15)


async def test_calls_get_ids_of_their_own_in_every_turn():
    text = steps('{ call = "a" }', '{ call = "b" }') + steps('{ call = "c", id = "" }')
    client = client_of(text)
    events = [event for _ in range(2) for read in await reads_of(client) for event in read]
    ids = [event.call.id for event in events if isinstance(event, CallReady)]
    assert len(set(ids)) == 3
    assert all(ids)


# --- faults -------------------------------------------------------------------------------------------------------


async def test_disconnect_is_a_network_failure_after_what_came_before():
    client = client_of(steps('{ text = "half" }', "{ disconnect = true }"))
    seen = []
    with pytest.raises(ModelFailed) as caught:
        await reads_of(client, seen=seen)
    assert caught.value.failure == Failure(FailureKind.NETWORK, "the scripted connection broke", retryable=True)
    assert (TextDelta(0, "half"),) in seen


@pytest.mark.parametrize(
    ("word", "kind", "retryable"),
    [
        ("overloaded", FailureKind.OVERLOADED, True),
        ("rate_limit", FailureKind.RATE_LIMIT, True),
        ("server", FailureKind.SERVER, True),
        ("authentication", FailureKind.AUTHENTICATION, False),
        ("invalid_request", FailureKind.INVALID_REQUEST, False),
        ("overloaded_error", FailureKind.OVERLOADED, True),
    ],
)
async def test_br_090_an_error_in_the_stream_is_classed_like_a_refusal(word, kind, retryable):
    failure = await failure_of(steps('{ text = "Partial" }', f'{{ error = "{word}", message = "so sorry" }}'))
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert "so sorry" in failure.message


async def test_br_094_a_status_carries_its_retry_after():
    failure = await failure_of(steps("{ status = 429, retry_after = 1.5 }"))
    assert (failure.kind, failure.retryable, failure.retry_after) == (FailureKind.RATE_LIMIT, True, 1.5)
    assert failure.status == 429


async def test_each_request_takes_the_next_turn_also_after_a_fault():
    client = client_of(steps("{ disconnect = true }") + steps("{ status = 529 }") + steps('{ text = "third" }'))
    for _ in range(2):
        with pytest.raises(ModelFailed):
            await reads_of(client)
    assert (TextDelta(0, "third"),) in await reads_of(client)


async def test_a_script_that_is_over_says_so():
    client = client_of(steps('{ text = "only" }'))
    await reads_of(client)
    with pytest.raises(ModelFailed) as caught:
        await reads_of(client)
    failure = caught.value.failure
    assert (failure.kind, failure.retryable) == (FailureKind.INVALID_REQUEST, False)
    assert failure.message.startswith("s.toml: the script has 1 turn(s), and this is request 2")


# --- expectations -------------------------------------------------------------------------------------------------

EXPECTS = turn('expect = { result = "README" }', 'steps = [{ text = "Done." }]')


async def test_expected_results_are_looked_for_among_all_that_came():
    assert TextDelta(0, "Done.") in await play(EXPECTS, answered("nothing", "a README b"))


@pytest.mark.parametrize(
    ("history", "found"),
    [(answered("LICENSE"), "it found 'LICENSE'"), (ASKED, "it found no result at all")],
    ids=["another", "none"],
)
async def test_other_results_are_a_failure_that_shows_both(history, found):
    failure = await failure_of(EXPECTS, history)
    assert (failure.kind, failure.retryable) == (FailureKind.INVALID_REQUEST, False)
    assert failure.message == f"s.toml: turn 1 expects 'README' in the results it is given; {found}"


async def test_results_of_an_earlier_exchange_do_not_count():
    later = answered("README").with_exchange(Exchange(Assistant((Text("well"),)))).with_user(User.said("go on"))
    failure = await failure_of(EXPECTS, later)
    assert failure.message.endswith("it found no result at all")


# --- time ---------------------------------------------------------------------------------------------------------


async def test_pauses_pass_on_the_trio_clock_and_are_told(autojump_clock):
    times = []
    text = steps('{ pause = 2 }, { text = "a" }', "{ pause = 0.5 }") + steps("{ pause = 1 }", "{ status = 500 }")
    client = client_of(text, times.append)
    began = trio.current_time()
    await reads_of(client)
    with pytest.raises(ModelFailed):
        await reads_of(client)
    assert times == [2.0, 2.5, 3.5]
    assert trio.current_time() - began == pytest.approx(3.5)


async def test_a_pause_can_be_cancelled(autojump_clock):
    client = client_of(steps("{ pause = 1000 }"))
    with trio.move_on_after(1) as scope:
        await reads_of(client)
    assert scope.cancelled_caught


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_whole_script_is_read():
    text = """
    [[turn]]
    steps = [
      { text = "hi", fragments = 2 },
      { call = "shell", arguments = { command = "ls" }, id = "c", fragments = 3 },
    ]
    stop = "tool_use"
    usage = { input = 1, output = 2 }
    expect = { result = ["a", "b"] }

    [simulate.files]
    "a.txt" = "one"
    """
    hello = TextStep("hi", 2)
    ls = CallStep("shell", '{"command": "ls"}', "c", 3)
    only = ScriptTurn((hello, ls), StopReason.TOOL_USE, ScriptUsage(1, 2), Expectation(("a", "b")))
    assert parse_script(text, "s") == Script("s", (only,), {"files": {"a.txt": "one"}})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "s.toml: turn = []; expected at least one [[turn]]"),
        ("turn = 1", "s.toml: turn = 1; expected [[turn]] tables, one for each reply"),
        ("turns = []", "s.toml: turns = []; expected one of the keys turn, simulate"),
        ("[[turn]\n", "the script 's.toml' is not TOML: "),
        ("turn = [1]", "s.toml: turn 1 is 1; expected a table"),
        (turn("step = []"), "s.toml: turn 1: step = []; expected one of the keys steps, stop, usage, expect"),
        (turn('stop = "halt"'), "s.toml: turn 1: stop = 'halt'; expected one of end, tool_use, output_limit, refusal"),
        (turn("usage = { input = -1 }"), "s.toml: turn 1, usage: input = -1; expected a whole number from 0"),
        (turn("usage = { in = 1 }"), "s.toml: turn 1, usage: in = 1; expected one of the keys input, output"),
        (turn("expect = { result = 1 }"), "s.toml: turn 1, expect: result = 1; expected a text, or a list of texts"),
        (turn("expect = { results = 1 }"), "s.toml: turn 1, expect: results = 1; expected one of the keys result"),
        (steps('{ txt = "a" }'), "s.toml: turn 1, step 1 has none of them in txt; expected exactly one of text, "),
        (steps("{}"), "s.toml: turn 1, step 1 has none of them in an empty table; expected exactly one of text"),
        (steps('{ text = "a", pause = 1 }'), "s.toml: turn 1, step 1 has text and pause; expected exactly one of"),
        (steps("{ text = 1 }"), "s.toml: turn 1, step 1: text = 1; expected a text"),
        (steps('{ text = "a", fragment = 1 }'), "step 1: fragment = 1; expected one of the keys text, fragments"),
        (steps('{ text = "a", fragments = 0 }'), "step 1: fragments = 0; expected a whole number from 1 to 10000"),
        (steps('{ text = "a", fragments = true }'), "step 1: fragments = True; expected a whole number"),
        (steps('{ call = "a", raw = "{", arguments = {} }'), "step 1: raw = '{'; expected either raw or arguments"),
        (steps('{ call = "a", arguments = "x" }'), "step 1: arguments = 'x'; expected a table such as"),
        (steps('{ call = "a", arguments = { d = 2026-01-01 } }'), "expected values that JSON has: no dates"),
        (steps('{ call = "a", arguments = { d = nan } }'), "expected values that JSON has: no dates"),
        (steps('{ cut = "text" }'), "step 1: cut = 'text'; expected \"arguments\""),
        (steps("{ pause = -1 }"), "step 1: pause = -1; expected seconds, 0 or more"),
        (steps("{ pause = inf }"), "step 1: pause = inf; expected seconds, 0 or more"),
        (steps("{ pause = true }"), "step 1: pause = True; expected seconds, 0 or more"),
        (steps("{ disconnect = false }"), "step 1: disconnect = False; expected true"),
        (steps("{ status = 200 }"), "step 1: status = 200; expected a whole number from 400 to 599"),
        (steps('{ status = 429, retry_after = "1" }'), "step 1: retry_after = '1'; expected seconds, 0 or more"),
        (steps('{ text = "a" }', "{ status = 500 }"), "step 2: status = 500; expected nothing but pauses before it"),
        (steps("{ disconnect = true }", '{ text = "a" }'), "step 1 ends the reply; the steps after it never happen"),
        (steps('{ cut = "arguments" }', '{ text = "a" }'), "step 1 ends the reply; the steps after it never happen"),
    ],
)
def test_a_mistake_is_named_with_its_place_its_value_and_what_was_expected(text, says):
    with pytest.raises(InputError) as caught:
        parse_script(text, "s.toml")
    assert says in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_script(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_script(tmp_path)
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        load_script(tmp_path / "bad.toml")


def test_a_file_is_named_in_its_script(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(steps('{ text = "a" }'), encoding="utf-8")
    assert load_script(path) == Script(str(path), (ScriptTurn((TextStep("a"),)),))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # as some editors save it
    assert load_script(path) == Script(str(path), (ScriptTurn((TextStep("a"),)),))


# --- the packaged ones ----------------------------------------------------------------------------------------------

CALC = "def add(a, b):\n    return a - b\n"
TEST = """import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""


async def test_the_tour_mends_a_real_project(tmp_path):
    """Its calls, done by hand and for real in the order it makes them, satisfy its own expectations."""
    (tmp_path / "calc.py").write_text(CALC)
    (tmp_path / "test_calc.py").write_text(TEST)
    client = ModelClient(AnthropicCodec(), ScriptWire(tour_script()), CallIds())
    history, stops, tests = ASKED, [], []
    while not stops or stops[-1] is StopReason.TOOL_USE:
        events = [event for read in await reads_of(client, history) for event in read]
        stops += [event.stop for event in events if isinstance(event, Finished)]
        calls = tuple(event.call for event in events if isinstance(event, CallReady))
        results = [ToolResult.of(call, Outcome.OK, await done(call, tmp_path, tests), began=True) for call in calls]
        if calls:
            history = history.with_exchange(Exchange(Assistant(calls), tuple(results)))
    assert stops == [StopReason.TOOL_USE, StopReason.TOOL_USE, StopReason.END]
    assert tests == [1, 0]


async def test_the_embedded_model_works_in_any_folder_and_changes_nothing():
    client = ModelClient(AnthropicCodec(), ScriptWire(demo_script()), CallIds())
    calls = [event.call for read in await reads_of(client) for event in read if isinstance(event, CallReady)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("glob", {"pattern": "*"}),
        ("shell", {"command": "echo a real process ran"}),
    ]
    ended = [
        event.stop
        for read in await reads_of(client, answered("a", "a real process ran\n"))
        for event in read
        if isinstance(event, Finished)
    ]
    assert ended == [StopReason.END]


async def done(call, folder, tests):
    match call.name, call.arguments:
        case "read", {"path": path}:
            return (folder / path).read_text()
        case "edit", {"path": path, "old": old, "new": new}:
            before = (folder / path).read_text()
            assert before.count(old) == 1
            (folder / path).write_text(before.replace(old, new))
            return "edited"
        case "shell", {"command": "python3 -m unittest -q"}:
            command = [sys.executable, "-m", "unittest", "-q"]
            ran = await trio.run_process(command, cwd=folder, capture_stdout=True, capture_stderr=True, check=False)
            tests.append(ran.returncode)
            return (ran.stdout + ran.stderr).decode()
    raise AssertionError(call)
