"""Section A of the specification: eight steps in one order, and a refusal that has no effect at all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
from doubles.fake_model import broken, call, end
from doubles.records import DONE, TOOL_USE, Hook, phases, results, trace
from doubles.world import WorkArgs, World
from hypothesis import given
from hypothesis import strategies as st

from novacode.authority.approvals import Answer, Receipt, Scope
from novacode.authority.hooks import HookWord
from novacode.authority.policy import Allow, Ask, Verdict
from novacode.engine.ledger import NEXT, Slot
from novacode.engine.pipeline import _context, process
from novacode.errors import SettingsError
from novacode.tools.base import Permit, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.toolset import Toolset
from novacode.values.events import LIVE, ApprovalAsked, ApprovalClosed, CallSettled, Level, Notice, Phase
from novacode.values.ids import CallId
from novacode.values.parts import Text, ToolCall
from novacode.values.request import StopReason
from novacode.values.results import Outcome, ToolResult

WHOLE = ["pre", "take", "begin", "end", "post", "record"]
ENTERED = [Phase.SUBMITTED, Phase.AUTHORISING, Phase.QUEUED, Phase.RUNNING]


def one(name: str, **arguments: Any) -> World:
    """A world whose model calls one tool."""
    return World([[call("a", name, 1, **arguments), TOOL_USE], DONE])


async def play(world: World) -> ToolResult:
    await world.agent.run("go")
    return results(world)["a"]


# --- what was executed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fails", "outcome", "exit_code", "text"),
    [
        ("", Outcome.OK, None, "done"),
        ("tool", Outcome.ERROR, None, "the work cannot be done: 3 is not 4"),
        ("bug", Outcome.ERROR, None, "The tool failed: KeyError: 'missing'"),
        ("exit", Outcome.ERROR, 3, "exit code 3"),
    ],
)
async def test_what_ran_goes_through_all_steps_in_order(
    fails: str, outcome: Outcome, exit_code: int | None, text: str, autojump_clock: Any
) -> None:
    world = one("work", fails=fails)
    assert await play(world) == ToolResult("a", "work", outcome, began=True, content=(Text(text),), exit_code=exit_code)  # type: ignore[arg-type]
    assert trace(world, "a") == WHOLE
    assert phases(world, "a") == ENTERED


async def test_a_group_of_failures_is_told_by_its_leaves(autojump_clock: Any) -> None:
    world = one("work", fails="group", takes=1)
    result = await play(world)
    assert result.outcome is Outcome.ERROR
    assert result.text == "The tool failed: ValueError: boom"


async def test_a_timeout_keeps_the_output_and_is_recorded(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=9, cleanup=1, prints="tick"), TOOL_USE], DONE], timeout=2.0)
    result = await play(world)
    assert (result.outcome, result.began) == (Outcome.TIMEOUT, True)
    assert result.text == (
        "Timed out after 2 s and was stopped. What it did until then stays done.\nOutput so far:\ntick"
    )
    assert trace(world, "a") == WHOLE
    assert [event.seconds for event in world.of(CallSettled)] == [3.0]


async def test_a_timeout_without_output_says_so(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=9), TOOL_USE], DONE], timeout=2.0)
    assert (await play(world)).text.endswith("It had printed nothing.")


async def test_a_timeout_with_a_failing_group_is_a_timeout_and_the_failure_is_told(autojump_clock: Any) -> None:
    world = World([[call("a", "work", 1, takes=9, fails="group"), TOOL_USE], DONE], timeout=2.0)
    assert (await play(world)).outcome is Outcome.TIMEOUT
    said = "work a, while it was being cancelled: The tool failed: ValueError: boom"
    assert Notice(Level.WARNING, said) in world.of(Notice)


class Odd:
    """A tool of somebody else's that does not keep its contract: `how` says which part of it."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.spec = ToolSpec("odd", "odd", WorkArgs)

    def claims(self, arguments: Mapping[str, Any], workspace: Any) -> Any:
        raise ZeroDivisionError("claims")

    def effects(self, arguments: Mapping[str, Any], workspace: Any) -> Any:
        if self.how == "effects":
            raise ZeroDivisionError("effects")
        return World().tools[0].effects(arguments, workspace)

    def limit(self, args: Any) -> float | None:
        if self.how == "limit":
            raise ZeroDivisionError("limit")
        return None

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        if self.how == "empty":
            return ToolOutput(())
        if self.how == "exit":
            raise KeyboardInterrupt
        if self.how == "exit in a group":
            raise BaseExceptionGroup("g", [KeyboardInterrupt(), ValueError("boom")])
        if self.how == "cancelled in a group":
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                raise BaseExceptionGroup("g", [cancelled]) from None
        return None  # type: ignore[return-value]


def odd(how: str, **arguments: Any) -> World:
    return World([[call("a", "odd", 1, **arguments), TOOL_USE], DONE], services={"tools": Toolset([Odd(how)])})


@pytest.mark.parametrize(
    ("how", "outcome", "text"),
    [
        (
            "effects",
            Outcome.DENIED,
            "Permission denied: what this call would do could not be worked out (ZeroDivisionError: effects). "
            "Nothing was executed.",
        ),
        ("limit", Outcome.ERROR, "The tool failed: ZeroDivisionError: limit"),
        ("none", Outcome.ERROR, "The tool failed: AttributeError: 'NoneType' object has no attribute 'exit_code'"),
        ("empty", Outcome.OK, "(no output)"),
    ],
)
async def test_a_tool_that_breaks_its_contract_fails_alone(
    how: str, outcome: Outcome, text: str, autojump_clock: Any
) -> None:
    """The run goes on and the call has a result, whatever part of the contract somebody else's tool breaks."""
    world = odd(how)
    result = await play(world)
    assert (result.outcome, result.text) == (outcome, text)
    assert len(world.model.requests) == 2


async def test_arguments_that_cannot_be_judged_or_validated_are_invalid(autojump_clock: Any) -> None:
    world = odd("effects", takes="long")
    assert (await play(world)).outcome is Outcome.INVALID


@pytest.mark.parametrize("how", ["exit", "exit in a group"])
async def test_an_interrupt_out_of_a_tool_goes_through(how: str, autojump_clock: Any) -> None:
    world = odd(how)
    with pytest.raises(BaseExceptionGroup) as caught:
        await world.agent.run("go")
    assert caught.group_contains(KeyboardInterrupt)
    assert results(world)["a"].outcome is Outcome.CANCELLED
    assert world.log[-1] == "run ended"


async def test_a_cancellation_in_a_group_is_a_cancellation(autojump_clock: Any) -> None:
    world = odd("cancelled in a group")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        world.agent.cancel("enough")
    assert results(world)["a"].outcome is Outcome.CANCELLED
    assert [notice.text for notice in world.of(Notice)] == ["cancelled: enough"]


# --- what was refused --------------------------------------------------------------------------------------------


async def refused(world: World, outcome: Outcome, steps: list[str]) -> str:
    """Play, check that there was no effect, and return the words for the model."""
    result = await play(world)
    assert (result.outcome, result.began) == (outcome, False)
    assert trace(world, "a") == steps
    assert Phase.RUNNING not in phases(world, "a")
    assert Phase.QUEUED not in phases(world, "a")
    assert len(world.model.requests) == 2
    return result.text


async def test_unknown_tool_names_what_was_meant(autojump_clock: Any) -> None:
    text = await refused(one("wrok"), Outcome.UNKNOWN_TOOL, [])
    assert text == (
        "There is no tool named 'wrok'. Did you mean work? Available: work, asks, denied, slow. Nothing was executed."
    )


async def test_unknown_tool_without_anything_close(autojump_clock: Any) -> None:
    text = await refused(one("zzzzz"), Outcome.UNKNOWN_TOOL, [])
    assert "Did you mean" not in text


async def test_disabled(autojump_clock: Any) -> None:
    assert await refused(one("off"), Outcome.DISABLED, []) == (
        "The tool 'off' is disabled in this run. Nothing was executed; do it another way or tell the user."
    )


@pytest.mark.parametrize("reason", ["main is protected", ""])
async def test_a_hook_denies_with_its_reason(reason: str, autojump_clock: Any) -> None:
    world = one("work")
    world.agent.services = attrs.evolve(
        world.services, hooks=Hook(world.log, HookWord.DENY, {"takes": 3}, reason=reason)
    )
    text = await refused(world, Outcome.HOOK_DENIED, ["pre"])
    assert text == f"A hook refused this call: {reason or 'it gave no reason'}. Nothing was executed."


async def test_a_rule_denies(autojump_clock: Any) -> None:
    text = await refused(one("denied"), Outcome.DENIED, ["pre"])
    assert text == "Permission denied: the test denies it. Nothing was executed."


async def test_a_rule_denies_before_the_arguments_are_looked_at(autojump_clock: Any) -> None:
    await refused(one("denied", takes="long"), Outcome.DENIED, ["pre"])


async def test_a_person_denies_in_their_words(autojump_clock: Any) -> None:
    world = one("asks")
    answer_with(world, Answer(allowed=False, by="you", words="use the other file"))
    text = await refused(world, Outcome.DENIED, ["pre"])
    assert text == 'Permission denied: refused by you. They said: "use the other file". Nothing was executed.'
    assert phases(world, "a") == [Phase.SUBMITTED, Phase.AUTHORISING, Phase.ASKING]


async def test_invalid_arguments_list_each_field(autojump_clock: Any) -> None:
    text = await refused(one("work", takes="long", reads=3, other=1), Outcome.INVALID, ["pre"])
    assert text.startswith("3 problems with the arguments; nothing was executed.")
    assert all(field in text for field in ("takes", "reads", "other", "long"))


async def test_a_person_is_never_asked_for_arguments_that_cannot_run(autojump_clock: Any) -> None:
    world = one("asks", takes="long")
    await refused(world, Outcome.INVALID, ["pre"])
    assert world.of(ApprovalAsked) == []


async def test_nobody_to_ask_is_a_no_at_once(autojump_clock: Any) -> None:
    """A6: no question, no waiting, and words that say which rule would have allowed it."""

    class Asks:
        def judge(self, *_: Any) -> Verdict:
            return Ask(reason="no rule covers it", would_allow="--allow 'asks' would allow it.")

    world = World([[call("a", "asks", 1), TOOL_USE], DONE], somebody=False, services={"permissions": Asks()})
    text = await refused(world, Outcome.DENIED, ["pre"])
    assert text == (
        "Permission denied: nobody can be asked in this run, and no rule covers it. --allow 'asks' would allow it. "
        "Nothing was executed."
    )
    assert world.of(ApprovalAsked) == []
    assert world.events[-1].at == 0.5  # the sweep of this world; nothing else took time


async def test_a_broken_call_is_settled_and_never_executed(autojump_clock: Any) -> None:
    world = World([[broken("a", "work"), end(StopReason.TOOL_USE)], DONE])
    text = await refused(world, Outcome.BROKEN, [])
    assert text.startswith("This call to 'work' was not executed: its arguments are not one JSON object")


async def test_no_two_kinds_of_refusal_have_the_same_words(autojump_clock: Any) -> None:
    """A1: what went wrong can be told from the first words, so the next step can be chosen."""
    texts = []
    for name, arguments in (
        ("wrok", {}),
        ("off", {}),
        ("denied", {}),
        ("work", {"takes": "x"}),
        ("work", {"fails": "tool"}),
    ):
        texts.append((await play(one(name, **arguments))).text)
    assert len({text[:12] for text in texts}) == len(texts)


# --- hooks and approval ------------------------------------------------------------------------------------------


def answer_with(world: World, answer: Answer) -> None:
    """Answer every question with `answer`, one step later."""

    def on(stamped: Any) -> None:
        if isinstance(stamped.event, ApprovalAsked):
            trio.lowlevel.current_trio_token().run_sync_soon(
                world.agent.answer, stamped.run_id, stamped.event.approval_id, answer
            )

    world.bus.subscribe(on)


async def test_what_a_person_sees_is_what_runs(autojump_clock: Any) -> None:
    """A hook rewrites: approval, permit, execution and the later hooks have exactly the rewritten arguments."""
    world = one("asks", takes=1, prints="old")
    permits: list[Permit[Any]] = []
    whole = world.tools[1].run

    async def run(permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        permits.append(permit)
        return await whole(permit, ctx)

    world.tools[1].run = run  # type: ignore[method-assign]
    hook = Hook(world.log, rewrite={"takes": 2, "prints": "new"})
    world.agent.services = attrs.evolve(world.services, hooks=hook)
    answer_with(world, Answer(allowed=True, by="you"))
    result = await play(world)
    asked = world.of(ApprovalAsked)[0].call
    assert (asked.id, asked.index, asked.name, asked.arguments) == ("a", 1, "asks", {"takes": 2, "prints": "new"})
    assert permits == [Permit(asked, WorkArgs(takes=2, prints="new"), "you")]
    assert permits[0].call is asked
    assert hook.saw_after == [(asked, result)]
    assert result.outcome is Outcome.OK
    assert [event.seconds for event in world.of(CallSettled)] == [2.0]


async def test_a_rewrite_that_does_not_validate_is_invalid(autojump_clock: Any) -> None:
    world = one("asks")
    world.agent.services = attrs.evolve(world.services, hooks=Hook(world.log, rewrite={"takes": "x"}))
    await refused(world, Outcome.INVALID, ["pre"])


async def test_a_hook_that_allows_spares_the_question(autojump_clock: Any) -> None:
    world = one("asks")
    world.agent.services = attrs.evolve(world.services, hooks=Hook(world.log, HookWord.ALLOW, reason="in the list"))
    assert (await play(world)).outcome is Outcome.OK
    assert world.of(ApprovalAsked) == []


@pytest.mark.parametrize("word", [HookWord.ALLOW, HookWord.ASK])
async def test_a_hook_never_overrides_a_deny_rule(word: HookWord, autojump_clock: Any) -> None:
    world = one("denied")
    world.agent.services = attrs.evolve(world.services, hooks=Hook(world.log, word))
    await refused(world, Outcome.DENIED, ["pre"])
    assert world.of(ApprovalAsked) == []


@pytest.mark.parametrize(("allowed", "outcome"), [(True, Outcome.OK), (False, Outcome.DENIED)])
async def test_a_hook_can_ask_where_a_rule_allows(allowed: bool, outcome: Outcome, autojump_clock: Any) -> None:
    world = one("work")
    world.agent.services = attrs.evolve(world.services, hooks=Hook(world.log, HookWord.ASK, reason="it is friday"))
    answer_with(world, Answer(allowed=allowed, by="you"))
    assert (await play(world)).outcome is outcome
    assert world.of(ApprovalAsked)[0].reason == "a hook wants a person to decide (it is friday)"


async def test_a_post_hook_has_the_last_word_on_the_result(autojump_clock: Any) -> None:
    class Redacting(Hook):
        async def post_tool_use(self, call: Any, result: ToolResult) -> ToolResult:
            return attrs.evolve(result, content=(Text("redacted"),))

    world = one("work")
    world.agent.services = attrs.evolve(world.services, hooks=Redacting(world.log))
    assert (await play(world)).text == "redacted"


async def test_what_a_tool_gave_is_kept_where_its_post_hook_is_cut_off(autojump_clock: Any) -> None:
    """The effect is there, so its result is too; the time is the tool's alone."""

    class Slow(Hook):
        async def post_tool_use(self, call: Any, result: ToolResult) -> ToolResult:
            await trio.sleep(60)
            raise AssertionError("it was to be cancelled")

    world = one("work")
    world.agent.services = attrs.evolve(world.services, hooks=Slow(world.log))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(1)
        world.agent.cancel("enough")
    assert results(world)["a"].text == "done"
    assert world.of(CallSettled)[0].seconds == 0.0


# --- remembering -------------------------------------------------------------------------------------------------


class Remembering:
    """Permissions that ask for everything and note what is to be kept."""

    def __init__(self, error: Exception | None = None) -> None:
        self.kept: list[tuple[tuple[str, ...], Scope]] = []
        self._error = error

    def judge(self, call: Any, effects: Any, workspace: Any) -> Any:
        return World().permissions.judge(attrs.evolve(call, name="asks"), effects, workspace)

    def unreadable(self, *_: Any) -> None:
        return None

    def remember(self, rules: tuple[str, ...], scope: Scope) -> None:
        if self._error is not None:
            raise self._error
        self.kept.append((rules, scope))


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (Answer(allowed=True, by="you", scope=Scope.ALWAYS, rules=("work",)), [(("work",), Scope.ALWAYS)]),
        (Answer(allowed=True, by="you"), []),
        (Answer(allowed=False, by="you", scope=Scope.ALWAYS, rules=("work",)), []),
    ],
)
async def test_only_an_allowance_with_rules_is_kept(answer: Answer, kept: Any, autojump_clock: Any) -> None:
    permissions = Remembering()
    world = World([[call("a", "work", 1), TOOL_USE], DONE], services={"permissions": permissions})
    answer_with(world, answer)
    await play(world)
    assert permissions.kept == kept


@pytest.mark.parametrize("error", [SettingsError("'(((' is not a rule"), PermissionError("read-only")])
async def test_a_rule_that_cannot_be_kept_is_told_and_the_call_runs(error: Exception, autojump_clock: Any) -> None:
    permissions = Remembering(error)
    world = World([[call("a", "work", 1), TOOL_USE], DONE], services={"permissions": permissions})
    answer_with(world, Answer(allowed=True, by="you", scope=Scope.ALWAYS, rules=("(((",)))
    assert (await play(world)).outcome is Outcome.OK
    assert Notice(Level.WARNING, f"the rule was not kept: {error}") in world.of(Notice)


# --- the table ---------------------------------------------------------------------------------------------------


async def test_a_call_moves_only_along_the_table() -> None:
    world = one("work")
    kit = world.agent._new_run("r").kit  # type: ignore[arg-type]
    ready = world.model.replies[0][0][1]
    slot = Slot(
        ready.call, kit.gate.take(ready.call.id, kit.tools.claims(ready.call, kit.workspace)), kit.emit, kit.clock
    )
    with pytest.raises(RuntimeError, match="cannot go from submitted to running"):
        slot.to(Phase.RUNNING)
    await process(slot, kit)
    assert slot.settle(attrs.evolve(slot.result, note="second")) is False  # type: ignore[type-var]
    assert all(Phase.SETTLED in NEXT[phase] for phase in Phase if phase is not Phase.SETTLED)
    assert NEXT[Phase.SETTLED] == frozenset()


async def test_a_result_of_another_call_is_refused() -> None:
    world = one("work")
    kit = world.agent._new_run("r").kit  # type: ignore[arg-type]
    ready = world.model.replies[0][0][1].call
    slot = Slot(ready, kit.gate.take(ready.id, kit.tools.claims(ready, kit.workspace)), kit.emit, kit.clock)
    with pytest.raises(RuntimeError, match="work b is no result of work a"):
        slot.settle(ToolResult.of(attrs.evolve(ready, id="b"), Outcome.SKIPPED, "x"))


async def test_allow_is_granted_by_the_rule(autojump_clock: Any) -> None:
    """The permit names the rule; nobody is asked."""
    world = one("work")
    granted: list[str] = []
    whole = world.tools[0].run

    async def run(permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        granted.append(permit.granted_by)
        return await whole(permit, ctx)

    world.tools[0].run = run  # type: ignore[method-assign]
    await play(world)
    assert granted == [Allow(granted_by="the test").granted_by]
    assert world.of(ApprovalAsked) == world.of(ApprovalClosed) == []


async def test_br_059_an_answer_reaches_its_question_and_no_other(autojump_clock: Any) -> None:
    """The second question is allowed, the first denied; results keep the order of the calls."""
    world = World([[call("a", "asks", 1), call("b", "asks", 2), TOOL_USE], DONE])
    asked: list[Any] = []

    def on(stamped: Any) -> None:
        if isinstance(stamped.event, ApprovalAsked):
            asked.append(stamped)
            if len(asked) == 2:
                trio.lowlevel.current_trio_token().run_sync_soon(click)

    receipts: list[Receipt] = []

    def click() -> None:
        by_call = {stamped.event.call.id: stamped for stamped in asked}
        for call_id, allowed in (("b", True), ("a", False)):
            stamped = by_call[call_id]
            receipts.append(
                world.agent.answer(stamped.run_id, stamped.event.approval_id, Answer(allowed=allowed, by="you"))
            )

    world.bus.subscribe(on)
    await world.agent.run("go")
    assert receipts == [Receipt.ACCEPTED, Receipt.ACCEPTED]
    exchange = next(world.talk.history.exchanges)
    assert [(result.call_id, result.outcome) for result in exchange.results] == [
        ("a", Outcome.DENIED),
        ("b", Outcome.OK),
    ]
    assert trace(world, "a") == ["pre"]
    assert trace(world, "b") == WHOLE


# --- live output -------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from(["x\n", "é", "日本", "🙂", "12345678\n"]), st.integers(0, 9_000)), max_size=6),
    st.lists(st.integers(1, 40_000), min_size=1, max_size=8),
)
def test_the_end_of_live_output_is_the_same_however_it_came_in_chunks(
    parts: list[tuple[str, int]], sizes: list[int]
) -> None:
    """Faces see the end of each chunk; in canonical output, the end of all of them together."""
    data = "".join(text * times for text, times in parts).encode()
    assert shown_of([data]) == shown_of(cut(data, sizes)) == data.decode()[-LIVE:]


def shown_of(chunks: list[bytes]) -> str:
    said: list[str] = []
    kit = SimpleNamespace(
        emit=lambda event: said.append(event.text),
        permissions=SimpleNamespace(unreadable=lambda *_: None),
        workspace=None,
        processes=None,
        seen=None,
        spill=None,
        jobs=None,
    )
    slot = SimpleNamespace(call=ToolCall(CallId("a"), 0, "shell", {}), output=SimpleNamespace(feed=lambda _: None))
    context = _context(slot, kit)  # type: ignore[arg-type]
    for chunk in chunks:
        context.output(chunk)
    return "".join(said)[-LIVE:]


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks = []
    for size in itertools.cycle(sizes):
        if not data:
            return chunks
        chunks.append(data[:size])
        data = data[size:]
    return chunks
