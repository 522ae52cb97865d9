"""Hooks and a run: its prompt, its end, its questions, and what the model and the record get of them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from doubles.fake_model import call, end, say
from doubles.fake_processes import FakeProcesses, Program
from doubles.hooks import deny, hooks_on, own, pre, says
from doubles.records import DONE, TOOL_USE, results, trace
from doubles.world import World

from novacode.authority.approvals import Answer
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hooks import HookEvent
from novacode.authority.policy import Ask
from novacode.engine.limits import Limits
from novacode.values.events import ApprovalAsked, HookRan, Notice, RunBegan, RunEnded, RunStatus, UserAdded
from novacode.values.history import History
from novacode.values.parts import User
from novacode.values.results import Outcome


def on(event: str, command: str, **more: Any) -> HookSpec:
    return HookSpec(HookEvent(event), command, **more)


def hooked(replies: Any, programs: Mapping[str, Program], *specs: HookSpec, **more: Any) -> World:
    processes = FakeProcesses(programs)
    services = {"processes": processes, "hooks": hooks_on(processes, *specs)} | more.pop("services", {})
    return World(replies, services=services, **more)


def texts(history: History) -> list[tuple[str, str]]:
    """Return who said what in the user's role."""
    return [(item.origin, item.text) for item in history.items if isinstance(item, User)]


# --- the prompt --------------------------------------------------------------------------------------------------


async def test_a_refused_prompt_never_becomes_history(autojump_clock: Any) -> None:
    """Neither now nor later: the next request does not carry it, and the answer before is not told twice."""
    programs = {"guard": says()}
    world = hooked([[say("first"), end()], [say("third"), end()]], programs, on("UserPromptSubmit", "guard"))
    assert (await world.agent.run("one")).text == "first"
    world.services.processes.programs["guard"] = says(code=2, errors=b"that is a key")  # type: ignore[attr-defined]
    ended = await world.agent.run("sk-123")
    assert (ended.status, ended.reason, ended.text, ended.turns) == (RunStatus.REFUSED, "hook", "", 0)
    assert "a hook refused the prompt: that is a key" in [note.text for note in world.of(Notice)]
    world.services.processes.programs["guard"] = says()  # type: ignore[attr-defined]
    assert (await world.agent.run("two")).text == "third"
    assert texts(world.talk.history) == [("person", "one"), ("person", "two")]
    assert "sk-123" not in str(world.model.requests)
    assert [began.prompt.text for began in world.of(RunBegan)] == ["one", "two"]
    assert [stamped.run_id for stamped in world.events if isinstance(stamped.event, RunEnded)] == [
        "s-r1",
        "s-r2",
        "s-r3",
    ]


async def test_context_of_hooks_stands_behind_the_prompt(autojump_clock: Any) -> None:
    programs = {"start": says(b"branch main"), "prompt": says(b"it is friday")}
    world = hooked([DONE, DONE], programs, on("SessionStart", "start"), on("UserPromptSubmit", "prompt"))
    await world.agent.run("one")
    await world.agent.run("two")
    assert texts(world.talk.history) == [
        ("person", "one"),
        ("hook", "branch main"),
        ("hook", "it is friday"),
        ("person", "two"),
        ("hook", "it is friday"),
    ]
    assert [added.user.origin for added in world.of(UserAdded)] == ["hook"] * 3


async def test_a_run_cancelled_during_the_hooks_of_its_prompt_has_no_prompt(autojump_clock: Any) -> None:
    world = hooked([DONE], {"slow": says(seconds=60)}, on("UserPromptSubmit", "slow"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "one")
        await trio.sleep(1)
        world.agent.cancel("SIGINT")
    (ended,) = world.of(RunEnded)
    assert (ended.status, ended.reason, ended.reaped.processes) == (RunStatus.CANCELLED, "SIGINT", 1)
    assert (texts(world.talk.history), world.model.requests) == ([], [])
    world.services.processes.programs["slow"] = says()  # type: ignore[attr-defined]
    assert (await world.agent.run("two")).status == RunStatus.COMPLETED


# --- the end -----------------------------------------------------------------------------------------------------


async def test_a_stop_hook_makes_the_model_go_on_until_it_is_content(autojump_clock: Any) -> None:
    told: list[bool] = []

    def tests_pass(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
        told.append(payload["stop_hook_active"])
        return {"decision": "block", "reason": "2 tests fail"} if len(told) < 3 else None

    replies = [[say(text), end()] for text in ("done?", "now done?", "done")]
    world = hooked(replies, {}, on("Stop", "tests", function=tests_pass))
    ended = await world.agent.run("go")
    assert (ended.status, ended.text, ended.turns) == (RunStatus.COMPLETED, "done", 3)
    assert told == [False, True, True]
    assert texts(world.talk.history) == [("person", "go"), ("hook", "2 tests fail"), ("hook", "2 tests fail")]


async def test_no_stop_hook_keeps_a_run_going_for_ever(autojump_clock: Any) -> None:
    world = hooked([], {"never": says(code=2, errors=b"more")}, on("Stop", "never"), limits=Limits(stop_hooks=2))
    ended = await world.agent.run("go")
    assert (ended.status, ended.turns) == (RunStatus.COMPLETED, 3)
    told = "hooks have made the run go on 2 times and want it once more; it ends all the same"
    assert told in [note.text for note in world.of(Notice)]


async def test_a_run_that_was_not_completed_asks_no_stop_hook(autojump_clock: Any) -> None:
    world = hooked([[call("a", "work"), TOOL_USE]], {}, on("Stop", "x"), limits=Limits(max_turns=1))
    assert (await world.agent.run("go")).reason == "max_turns"
    assert world.of(HookRan) == []


async def test_a_hook_ends_the_run(autojump_clock: Any) -> None:
    """Every call has its result, nothing more is asked of the model, and the next run works."""
    answer = b'{"continue": false, "stopReason": "budget used up"}'
    first = [call("a", "work", 1, takes=9), call("b", "slow", 2, takes=9), TOOL_USE]
    world = hooked([first, DONE], {"end": says(answer, seconds=1)}, pre("end", matcher="slow"))
    ended = await world.agent.run("go")
    assert (ended.status, ended.reason) == (RunStatus.REFUSED, "hook")
    assert {key: result.outcome for key, result in results(world).items()} == {
        "a": Outcome.CANCELLED,
        "b": results(world)["b"].outcome,
    }
    assert results(world)["b"].outcome in (Outcome.HOOK_DENIED, Outcome.CANCELLED)
    assert len(world.model.requests) == 1
    assert (await world.agent.run("again")).status == RunStatus.COMPLETED


# --- calls -------------------------------------------------------------------------------------------------------


async def test_a_hook_that_denies_is_the_last_that_happens(autojump_clock: Any) -> None:
    """No question, no snapshot, no execution, no later hook."""
    programs = {"guard": says(deny("not on friday"))}
    world = hooked([[call("a", "asks"), TOOL_USE], DONE], programs, pre("guard"), on("PostToolUse", "later"))
    await world.agent.run("go")
    assert results(world)["a"].outcome is Outcome.HOOK_DENIED
    assert results(world)["a"].text == "A hook refused this call: not on friday. Nothing was executed."
    assert (trace(world, "a"), world.of(ApprovalAsked)) == ([], [])
    assert world.services.processes.started == ["guard"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["denied", "off", "nothing"])
async def test_a_call_that_is_refused_for_another_reason_has_no_later_hook(name: str, autojump_clock: Any) -> None:
    programs = {"pre": says(own(permissionDecision="allow"))}
    world = hooked([[call("a", name), TOOL_USE], DONE], programs, pre("pre"), on("PostToolUseFailure", "later"))
    await world.agent.run("go")
    started = world.services.processes.started  # type: ignore[attr-defined]
    assert started == (["pre"] if name == "denied" else [])


async def test_an_allowance_does_not_beat_a_rule_that_asks(autojump_clock: Any) -> None:
    """What the mode would ask a hook may answer; what a person has written down as to be asked it may not."""

    class Written:
        def judge(self, *_: object) -> Ask:
            return Ask("the rule work asks", rule="work")

    programs = {"yes": says(own(permissionDecision="allow"))}
    services = {"permissions": Written()}
    world = hooked([[call("a", "work"), TOOL_USE], DONE], programs, pre("yes"), services=services)
    world.answer_all(allowed=False)
    await world.agent.run("go")
    assert (len(world.of(ApprovalAsked)), results(world)["a"].outcome) == (1, Outcome.DENIED)


async def test_context_of_both_hooks_stands_behind_the_result(autojump_clock: Any) -> None:
    programs = {
        "before": says(own(additionalContext="the file is generated")),
        "after": says(code=2, errors=b"line 3 is too long", seconds=2),
    }
    world = hooked([[call("a", "work", takes=1), TOOL_USE], DONE], programs, pre("before"), on("PostToolUse", "after"))
    await world.agent.run("go")
    text = "done\nA hook objects: line 3 is too long\nthe file is generated"
    assert (results(world)["a"].text, results(world)["a"].outcome) == (text, Outcome.OK)
    assert [(ran.event, ran.outcome, ran.seconds) for ran in world.of(HookRan)] == [
        ("PreToolUse", "pass", 0.0),
        ("PostToolUse", "deny", 2.0),
    ]


async def test_a_bell_rings_where_somebody_is_asked_and_only_there(autojump_clock: Any) -> None:
    for somebody in (True, False):
        programs = {"bell": says()}
        world = hooked([[call("a", "asks"), TOOL_USE], DONE], programs, on("Notification", "bell"), somebody=somebody)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.agent.run, "go")
            await trio.sleep(1)
            for asked in world.of(ApprovalAsked):
                world.agent.answer("s-r1", asked.approval_id, Answer(allowed=True, by="the test"))
        assert world.services.processes.started == ["bell"] * somebody  # type: ignore[attr-defined]
        assert results(world)["a"].outcome is (Outcome.OK if somebody else Outcome.DENIED)


@pytest.mark.parametrize("seed", range(10))
async def test_what_was_approved_is_what_ran_byte_for_byte(seed: int, autojump_clock: Any) -> None:
    """Twenty questions at once, each about a call a hook has rewritten, answered in any order, yes or no."""
    chance = random.Random(seed)

    def rewrite(told: Mapping[str, Any]) -> Mapping[str, Any]:
        number = int(told["tool_use_id"])
        given = {**told["tool_input"], "prints": f"rewritten {number} \N{SNOWMAN}", "takes": number % 3}
        return json.loads(own(updatedInput=given))

    async def look(told: Mapping[str, Any]) -> None:
        await trio.sleep(chance.random())

    calls = [call(str(number), "asks", number + 1, prints=f"first {number}") for number in range(20)]
    specs = (pre("rewrite", function=rewrite), pre("look", function=look))
    world = hooked([[*calls, TOOL_USE], DONE], {}, *specs)
    ran: dict[str, Any] = {}
    for tool in world.tools:
        _note_permits(tool, ran)
    wanted = {str(number): chance.random() < 0.5 for number in range(20)}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.agent.run, "go")
        await trio.sleep(5)
        asked = world.of(ApprovalAsked)
        assert len(asked) == 20
        chance.shuffle(asked)
        for one in asked:
            answer = Answer(allowed=wanted[one.call.id], by="the test")
            world.agent.answer("s-r1", one.approval_id, answer)
            await trio.sleep(chance.random())
    approved = {one.call.id: one.call for one in asked if wanted[one.call.id]}
    assert {key: json.dumps(made.arguments) for key, made in ran.items()} == {
        key: json.dumps(made.arguments) for key, made in approved.items()
    }
    assert all(ran[key] is made for key, made in approved.items())
    assert [made.arguments["prints"] for made in ran.values()] == [f"rewritten {key} \N{SNOWMAN}" for key in ran]
    assert {key: result.outcome for key, result in results(world).items()} == {
        key: Outcome.OK if yes else Outcome.DENIED for key, yes in wanted.items()
    }


def _note_permits(tool: Any, ran: dict[str, Any]) -> None:
    run = tool.run

    async def noting(permit: Any, ctx: Any) -> Any:
        assert permit.call.id not in ran
        ran[permit.call.id] = permit.call
        return await run(permit, ctx)

    tool.run = noting
