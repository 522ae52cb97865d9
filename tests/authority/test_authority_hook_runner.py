"""Hooks as they run: all at once, within their limits, and what follows from their answers."""

from __future__ import annotations

import json

import attrs
import pytest
import trio
from doubles.fake_processes import FakeProcesses
from doubles.hooks import Told, deny, hooks_on, own, pre, says, telling

from novacode.authority.hook_settings import HookSpec, OnFailure
from novacode.authority.hooks import HookAnswer, HookEvent, HookWord, PromptAnswer
from novacode.grace import Grace
from novacode.values.events import HookRan
from novacode.values.ids import CallId
from novacode.values.parts import Text, ToolCall
from novacode.values.results import Outcome, ToolResult

CALL = ToolCall(CallId("a"), 0, "shell", {"command": "touch P"})
DONE = ToolResult.of(CALL, Outcome.OK, "done", began=True)
FAILED = ToolResult.of(CALL, Outcome.ERROR, "exit code 1", began=True)


def calling(**arguments):
    return attrs.evolve(CALL, arguments=arguments)


def on(event, command, **more):
    return HookSpec(HookEvent(event), command, **more)


async def test_without_a_hook_for_it_nothing_is_waited_for(autojump_clock):
    """Also where there are hooks, for other tools and other events."""
    hooks, told, _ = telling({}, pre("x", matcher="Edit"), on("PostToolUse", "x", matcher="Edit"))
    with trio.testing.assert_no_checkpoints():
        assert await hooks.pre_tool_use(CALL) == HookAnswer(CALL)
        assert await hooks.post_tool_use(CALL, DONE) is DONE
        assert await hooks.stopped("x", active=False) == ""
        await hooks.notify("m", "k")
    assert told.events == []


async def test_all_run_at_once_and_are_told_in_the_order_of_the_settings(autojump_clock):
    programs = {"slow": says(seconds=3), "quick": says(deny("no"), seconds=1), "mid": says(seconds=2)}
    hooks, told, processes = telling(programs, *(pre(name) for name in programs))
    assert await hooks.pre_tool_use(CALL) == HookAnswer(CALL, HookWord.DENY, "no")
    assert trio.current_time() == 3
    assert processes.finished == ["quick", "mid", "slow"]
    about = {"call_id": CallId("a"), "name": "shell"}
    assert told.events == [
        HookRan("PreToolUse", "slow", 3.0, "pass", **about),
        HookRan("PreToolUse", "quick", 1.0, "deny", **about, reason="no"),
        HookRan("PreToolUse", "mid", 2.0, "pass", **about),
    ]


async def test_what_a_program_gets(autojump_clock):
    hooks, _, processes = telling({"h": says()}, pre("h"))
    await hooks.pre_tool_use(CALL)
    (command,) = processes.commands
    assert (command.argv, str(command.cwd)) == (("/bin/sh", "-c", "h"), "/world")
    assert command.env == {"NOVACODE_PROJECT_DIR": "/world", "CLAUDE_PROJECT_DIR": "/world"}
    assert command.stdin.endswith(b"}\n")
    told = json.loads(command.stdin)
    assert (told["tool_name"], told["tool_input"], told["turn_id"]) == ("Bash", {"command": "touch P"}, "s-r1")


# --- rewriting ---------------------------------------------------------------------------------------------------


async def test_a_rewritten_call_is_judged_again_by_those_who_have_not_seen_it(autojump_clock):
    """The guard lets the first call pass and must see what it became; the one who rewrote it is not asked twice."""

    def guard(told):
        return json.loads(deny("no rm")) if "rm" in told["tool_input"]["command"] else None

    programs = {"rewrite": says(own(updatedInput={"command": "rm P"}))}
    hooks, told, processes = telling(programs, pre("guard", function=guard), pre("rewrite"))
    assert await hooks.pre_tool_use(CALL) == HookAnswer(calling(command="rm P"), HookWord.DENY, "no rm")
    assert told.outcomes == ["pass", "rewrite", "deny"]
    assert processes.started == ["rewrite"]


async def test_an_allowance_is_for_what_was_seen(autojump_clock):
    """One that would allow the first call and not the other has not allowed the other."""

    def only_touch(told):
        return {"decision": "approve"} if told["tool_input"]["command"].startswith("touch") else None

    programs = {"rewrite": says(own(updatedInput={"command": "make"}))}
    hooks, _, _ = telling(programs, pre("list", function=only_touch), pre("rewrite"))
    assert await hooks.pre_tool_use(CALL) == HookAnswer(calling(command="make"))


async def test_rewrites_of_several_are_put_together_and_confirmed(autojump_clock):
    def in_sh(told):
        given = told["tool_input"]
        return json.loads(own(updatedInput={**given, "command": given["command"].replace("P", "Q")}))

    def for_a_second(told):
        return json.loads(own(updatedInput={**told["tool_input"], "timeout": 1000}))

    hooks, told, _ = telling({}, pre("in_sh", function=in_sh), pre("for_a_second", function=for_a_second))
    assert await hooks.pre_tool_use(CALL) == HookAnswer(calling(command="touch Q", timeout=1.0))
    assert told.outcomes == ["rewrite"] * 4


async def test_hooks_that_never_agree_refuse(autojump_clock):
    def more(told):
        return json.loads(own(updatedInput={**told["tool_input"], "command": told["tool_input"]["command"] + "!"}))

    programs = {"t": says(own(updatedInput={"command": "touch P", "timeout": 5}))}
    hooks, _, _ = telling(programs, pre("more", function=more), pre("t"))
    answer = await hooks.pre_tool_use(CALL)
    assert answer.word is HookWord.DENY
    assert answer.reason == "hooks do not agree on the arguments: `more` wants others once more"


async def test_two_that_contradict_each_other_refuse(autojump_clock):
    programs = {name: says(own(updatedInput={"command": name})) for name in ("f", "g")}
    hooks, _, _ = telling(programs, pre("f"), pre("g"))
    answer = await hooks.pre_tool_use(CALL)
    assert answer == HookAnswer(CALL, HookWord.DENY, "the hooks `f` and `g` want different values for 'command'")


async def test_a_rewrite_nobody_can_read_is_a_failure(autojump_clock):
    read = ToolCall(CallId("b"), 0, "read", {"path": "a"})
    hooks, told, _ = telling({"h": says(own(updatedInput={"path": "b", "file_path": "c"}))}, pre("h"))
    answer = await hooks.pre_tool_use(read)
    assert (answer.call, answer.word) == (read, HookWord.DENY)
    assert answer.reason == "the hook `h` failed: `updatedInput` gives `path` twice, also as `file_path`"
    assert told.outcomes == ["failed"]


# --- failure -----------------------------------------------------------------------------------------------------

BROKEN = {
    "exit 139": (says(code=139), "it ended with exit code 139"),
    "not there": (
        says(code=127, errors=b"sh: no: not found"),
        "it ended with exit code 127 (command not found): sh: no: n",
    ),
    "too slow": (says(seconds=60), "it took longer than its limit of 1 s and was stopped"),
    "exit 1": (says(code=1), "it ended with exit code 1"),
    "rubbish": (says(b"ok!"), "it printed text that is no JSON object: ok!"),
    "allow and exit 1": (says(own(permissionDecision="allow"), code=1), "it ended with exit code 1"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_br_050_a_guard_that_fails_denies_by_default(name, autojump_clock):
    program, words = BROKEN[name]
    hooks, told, processes = telling({"h": program}, pre("h", timeout=1))
    answer = await hooks.pre_tool_use(CALL)
    assert (answer.call, answer.word) == (CALL, HookWord.DENY)
    assert answer.reason.startswith(f"the hook `h` failed: {words}")
    assert told.outcomes == ["timeout" if name == "too slow" else "failed"]
    (warning,) = told.warnings
    assert warning.startswith(f"hook `h` (PreToolUse): {words}")
    assert warning.endswith("; that is a no")
    assert processes.alive == {}


@pytest.mark.parametrize("name", BROKEN)
async def test_br_050_one_that_may_fail_does_not(name, autojump_clock):
    program, words = BROKEN[name]
    hooks, told, _ = telling({"h": program}, pre("h", timeout=1, on_failure=OnFailure.CONTINUE))
    assert await hooks.pre_tool_use(CALL) == HookAnswer(CALL)
    (warning,) = told.warnings
    assert words in warning
    assert warning.endswith("; going on without it")


async def test_a_no_counts_though_the_hook_failed(autojump_clock):
    hooks, _, _ = telling({"h": says(deny("r"), code=1)}, pre("h", on_failure=OnFailure.CONTINUE))
    assert await hooks.pre_tool_use(CALL) == HookAnswer(CALL, HookWord.DENY, "r")


async def test_a_program_that_cannot_be_started_is_a_failure(autojump_clock):
    hooks, _, _ = telling({}, pre("h"))
    answer = await hooks.pre_tool_use(CALL)
    assert answer.word is HookWord.DENY
    assert "could not be started" in answer.reason


async def test_more_than_it_may_print_is_a_failure(autojump_clock):
    hooks, _, _ = telling({"h": says(b" " * (1 << 20) + b"{}")}, pre("h"))
    assert (await hooks.pre_tool_use(CALL)).reason == "the hook `h` failed: it printed more than 1 MiB"


# --- cancellation ------------------------------------------------------------------------------------------------


async def test_br_023_cancelling_stops_every_hook_and_goes_on_upwards(autojump_clock):
    programs = {"polite": says(seconds=60, cleanup=1), "stubborn": says(seconds=60, cleanup=60), "done": says()}
    hooks, told, processes = telling(programs, *(pre(name) for name in programs))
    with trio.move_on_after(5) as scope:
        await hooks.pre_tool_use(CALL)
    assert scope.cancelled_caught
    assert trio.current_time() == 5 + Grace().term
    assert (processes.alive, sorted(processes.cancelled)) == ({}, ["polite", "stubborn"])
    assert told.outcomes == ["cancelled", "cancelled", "pass"]


async def test_br_023_a_hook_that_swallows_the_cancellation_does_not_keep_it_from_going_on(autojump_clock):
    async def swallows(told):
        try:
            await trio.sleep(60)
        except BaseException:  # noqa: BLE001 - what a hook must never do
            return {"decision": "approve"}

    hooks, told, _ = telling({}, pre("swallows", function=swallows))
    with trio.move_on_after(5) as scope:
        await hooks.pre_tool_use(CALL)
    assert scope.cancelled_caught
    assert told.outcomes == ["cancelled"]


async def test_br_023_what_goes_wrong_while_being_cancelled_is_told(autojump_clock):
    async def groups(told):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fails_when_cancelled)
            await trio.sleep(60)

    hooks, told, _ = telling({}, pre("groups", function=groups))
    with trio.move_on_after(5) as scope:
        await hooks.pre_tool_use(CALL)
    assert scope.cancelled_caught
    assert told.warnings == ["hook `groups` (PreToolUse): while it was being cancelled: ValueError: boom"]


async def _fails_when_cancelled():
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("boom")


async def test_a_function_that_takes_too_long_fails_whatever_it_does_about_it(autojump_clock):
    async def swallows(told):
        try:
            await trio.sleep(60)
        except BaseException:  # noqa: BLE001
            return {}

    async def groups(told):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fails_when_cancelled)
            await trio.sleep(60)

    async def sleeps(told):
        await trio.sleep(60)

    for function in (swallows, groups, sleeps):
        hooks, told, _ = telling({}, pre("f", function=function, timeout=2))
        assert (await hooks.pre_tool_use(CALL)).word is HookWord.DENY
        assert told.outcomes in (["timeout"], ["failed"])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda told: 1 / 0, "it raised ZeroDivisionError: division by zero"),
        (lambda told: "yes", "it answered with 'yes', which is no JSON object"),
    ],
)
async def test_a_function_that_fails_is_a_guard_that_fails(function, words):
    hooks, _, _ = telling({}, pre("f", function=function))
    assert (await hooks.pre_tool_use(CALL)).reason == f"the hook `f` failed: {words}"


# --- the other events --------------------------------------------------------------------------------------------


async def test_after_a_tool_what_hooks_say_stands_behind_its_result(autojump_clock):
    programs = {
        "lint": says(code=2, errors=b"line 3 is too long"),
        "note": says(own("PostToolUse", additionalContext="formatted")),
        "quiet": says(b"1 file done"),
        "broken": says(code=1),
    }
    hooks, told, _ = telling(programs, *(on("PostToolUse", name) for name in programs))
    after = await hooks.post_tool_use(CALL, DONE)
    added = Text("\nA hook objects: line 3 is too long\nformatted")
    assert after == attrs.evolve(DONE, content=(Text("done"), added))
    assert told.outcomes == ["deny", "pass", "pass", "failed"]
    assert told.warnings == ["hook `broken` (PostToolUse): it ended with exit code 1; going on without it"]


async def test_a_failure_has_its_own_event(autojump_clock):
    hooks, _, processes = telling({"f": says()}, on("PostToolUse", "x"), on("PostToolUseFailure", "f", matcher="Bash"))
    assert await hooks.post_tool_use(CALL, FAILED) is FAILED
    assert processes.started == ["f"]
    assert json.loads(processes.commands[0].stdin)["error"] == "exit code 1"


async def test_a_prompt_is_refused_by_one_no(autojump_clock):
    programs = {"ok": says(b"context"), "no": says(code=2, errors=b"a key is in it")}
    hooks, _, processes = telling(programs, *(on("UserPromptSubmit", name) for name in programs))
    assert await hooks.prompt_submitted("sk-123") == PromptAnswer(blocked=True, reason="a key is in it")
    assert json.loads(processes.commands[0].stdin)["prompt"] == "sk-123"


async def test_a_prompt_gets_the_context_of_all(autojump_clock):
    programs = {"one": says(b"1"), "two": says(own("UserPromptSubmit", additionalContext="2")), "three": says()}
    hooks, _, _ = telling(programs, *(on("UserPromptSubmit", name) for name in programs))
    assert await hooks.prompt_submitted("hi") == PromptAnswer(context="1\n2")


async def test_a_guard_of_prompts_that_fails_refuses(autojump_clock):
    hooks, _, _ = telling({"h": says(code=1)}, on("UserPromptSubmit", "h"))
    assert await hooks.prompt_submitted("hi") == PromptAnswer(
        blocked=True, reason="the hook `h` failed: it ended with exit code 1"
    )


async def test_stop_hooks_say_what_is_still_to_be_done(autojump_clock):
    programs = {"tests": says(code=2, errors=b"2 tests fail"), "lint": says(b'{"decision": "block"}'), "ok": says()}
    hooks, _, processes = telling(programs, *(on("Stop", name) for name in programs))
    wanted = await hooks.stopped("all done", active=True)
    assert wanted == "2 tests fail\nA hook wants the work to go on; it gave no reason."
    told = json.loads(processes.commands[0].stdin)
    assert (told["stop_hook_active"], told["last_assistant_message"]) == (True, "all done")


async def test_a_stop_hook_that_ends_the_run_lets_it_end(autojump_clock):
    programs = {"go on": says(code=2, errors=b"more"), "end": says(b'{"continue": false, "stopReason": "enough"}')}
    hooks, told, _ = telling(programs, *(on("Stop", name) for name in programs))
    assert await hooks.stopped("done", active=False) == ""
    assert told.stops == []


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Notification", "PreCompact"])
async def test_a_hook_can_end_the_run(event, autojump_clock):
    hooks, told, _ = telling({"h": says(b'{"continue": false, "stopReason": "enough"}')}, on(event, "h"))
    await hooks.pre_tool_use(CALL)
    await hooks.post_tool_use(CALL, DONE)
    await hooks.notify("m", "k")
    await hooks.pre_compact("auto")
    assert told.stops == ["enough"]


async def test_a_session_starts_once_and_its_context_waits_for_a_prompt_that_is_taken(autojump_clock):
    programs = {"start": says(b"branch main"), "guard": says(code=2, errors=b"no"), "end": says()}
    specs = (on("SessionStart", "start", matcher="startup"), on("UserPromptSubmit", "guard"), on("SessionEnd", "end"))
    session, processes = hooks_on(fake := FakeProcesses(programs), *specs), fake
    first, second = Told(), Told()
    hooks = session.for_run(first.run)
    assert await hooks.session_started() == "branch main"
    assert (await hooks.prompt_submitted("bad")).blocked
    processes.programs["guard"] = says()
    hooks = session.for_run(second.run)
    assert await hooks.session_started() == "branch main"
    assert not (await hooks.prompt_submitted("good")).blocked
    assert await hooks.session_started() == ""
    await session.session_ended("other")
    assert processes.started == ["start", "guard", "guard", "end"]
    assert [event.event for event in second.events] == ["UserPromptSubmit", "SessionEnd"]


async def test_a_session_that_never_started_does_not_end(autojump_clock):
    hooks = hooks_on(FakeProcesses({}), on("SessionEnd", "end"))
    await hooks.session_ended("other")


async def test_a_notification_holds_up_neither_question_nor_answer(autojump_clock):
    hooks, told, processes = telling(
        {"bell": says(seconds=60)}, on("Notification", "bell", matcher="permission_prompt")
    )

    async def ask():
        await trio.sleep(3)
        return "yes"

    assert await hooks.while_asking(CALL, "may I?", ask) == "yes"
    assert trio.current_time() == 3
    assert (told.outcomes, processes.alive) == (["cancelled"], {})
    assert json.loads(processes.commands[0].stdin)["message"] == "may I?"


async def test_a_question_without_a_bell_is_only_asked(autojump_clock):
    hooks, _, _ = telling({}, on("Notification", "bell", matcher="idle_prompt"))

    async def ask():
        return "no"

    with trio.testing.assert_no_checkpoints():
        assert await hooks.while_asking(CALL, "may I?", ask) == "no"
