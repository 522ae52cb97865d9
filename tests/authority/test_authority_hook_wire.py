"""What a hook's exit code and output mean, and what it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doubles.hooks import deny, own
from hypothesis import given
from hypothesis import strategies as st

from novacode.authority.hook_wire import (
    HookFacts,
    HookOutput,
    HookSaid,
    about_call,
    about_result,
    payload,
    understand,
    understood,
)
from novacode.authority.hooks import HookEvent, HookWord
from novacode.authority.modes import Mode
from novacode.values.ids import CallId, RunId
from novacode.values.parts import ToolCall
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.paths import Workspace

PRE, POST, PROMPT = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT
STOP, START = HookEvent.STOP, HookEvent.SESSION_START
NO, YES, ASK, PASS = HookWord.DENY, HookWord.ALLOW, HookWord.ASK, HookWord.PASS


def says(stdout: bytes = b"", code: int = 0, stderr: bytes = b"", **more) -> HookOutput:
    return HookOutput(code, stdout, stderr, **more)


@pytest.mark.parametrize(
    ("event", "output", "meaning"),
    [
        # Nothing said is no objection.
        (PRE, says(), HookSaid()),
        (PRE, says(b" \n"), HookSaid()),
        (PRE, says(b"{}"), HookSaid()),
        (PRE, says(stderr=b"just a log line"), HookSaid()),
        # BR-049, h1 to h7.
        (PRE, says(deny("h1")), HookSaid(NO, "h1")),
        (PRE, says(code=2, stderr=b"h2\n"), HookSaid(NO, "h2")),
        (PRE, says(deny("h3"), 2, b"noise"), HookSaid(NO, "h3")),
        (PRE, says(deny("h4"), 1), HookSaid(NO, "h4", failure="it ended with exit code 1")),
        (
            PRE,
            says(own(permissionDecision="refuse")),
            HookSaid(
                NO,
                "its decision is 'refuse', which is none of allow, ask, deny, approve, block",
                failure="its decision is 'refuse', which is none of allow, ask, deny, approve, block",
            ),
        ),
        (PRE, says(b"all fine"), HookSaid(failure="it printed text that is no JSON object: all fine")),
        (
            PRE,
            says(b"checking...\n" + deny("h7")),
            HookSaid(NO, "h7", warning="it printed other text around its JSON"),
        ),
        (
            PRE,
            says(own(permissionDecision="allow") + b"\ndone"),
            HookSaid(YES, warning="it printed other text around its JSON"),
        ),
        # Two answers are none, unless one of them is a no.
        (PRE, says(b"{}\n{}"), HookSaid(failure="it printed 2 JSON objects, and one was expected")),
        (PRE, says(b"{}\n" + deny("one")), HookSaid(NO, "one")),
        # The older and shorter forms.
        (PRE, says(b'{"decision": "block", "reason": "r"}'), HookSaid(NO, "r")),
        (PRE, says(b'{"decision": "approve"}'), HookSaid(YES)),
        (PRE, says(own(permissionDecision="ask", permissionDecisionReason="r")), HookSaid(ASK, "r")),
        (PRE, says(b'{"continue": false, "stopReason": "s"}'), HookSaid(NO, "s", stop="s")),
        (PRE, says(b'{"continue": false}'), HookSaid(NO, "it gave no reason", stop="it gave no reason")),
        (PRE, says(b'{"continue": true, "systemMessage": "m", "suppressOutput": true}'), HookSaid(message="m")),
        # A rewrite.
        (PRE, says(own(updatedInput={"a": 1})), HookSaid(updated={"a": 1})),
        (POST, says(own("PostToolUse", updatedInput={"a": 1})), HookSaid()),
        (PRE, says(own(updatedInput=[1])), HookSaid(failure="`updatedInput` is [1], which is no JSON object")),
        (PRE, says(own(additionalContext="c")), HookSaid(context="c")),
        # What cannot be understood.
        (PRE, says(b"{broken"), HookSaid(failure="it printed text that is no JSON object: {broken")),
        (PRE, says(b"[1]"), HookSaid(failure="it printed text that is no JSON object: [1]")),
        (
            PRE,
            says(b'{"hookSpecificOutput": 1}'),
            HookSaid(failure="`hookSpecificOutput` is 1, which is no JSON object"),
        ),
        (
            PRE,
            says(own("PostToolUse", permissionDecision="allow")),
            HookSaid(YES, failure="`hookEventName` is 'PostToolUse', but the event is PreToolUse"),
        ),
        (PRE, says(b"x", cut=True), HookSaid(failure="it printed more than 1 MiB")),
        (PRE, says(code=1, stderr=b"Traceback"), HookSaid(failure="it ended with exit code 1: Traceback")),
        (PRE, says(code=127), HookSaid(failure="it ended with exit code 127 (command not found)")),
        (PRE, says(code=-11), HookSaid(failure="it was killed by signal 11")),
        (PRE, says(own(permissionDecision="allow"), 1), HookSaid(failure="it ended with exit code 1")),
        # Text is context where that is what the event is for, and nothing where it means nothing.
        (PROMPT, says(b"the branch is main\n"), HookSaid(context="the branch is main")),
        (PROMPT, says(b"{oops"), HookSaid(failure="it printed text that is no JSON object: {oops")),
        (PROMPT, says(own("UserPromptSubmit", additionalContext="c")), HookSaid(context="c")),
        (PROMPT, says(code=2, stderr=b"no secrets"), HookSaid(NO, "no secrets")),
        (START, says(b"context"), HookSaid(context="context")),
        (POST, says(b"formatted 1 file"), HookSaid()),
        (POST, says(code=2, stderr=b"lint: line 3"), HookSaid(NO, "lint: line 3")),
        (POST, says(b'{"decision": "block", "reason": "r"}'), HookSaid(NO, "r")),
        (
            POST,
            says(b'{"decision": "perhaps"}'),
            HookSaid(
                reason="its decision is 'perhaps', which is none of allow, ask, deny, approve, block",
                failure="its decision is 'perhaps', which is none of allow, ask, deny, approve, block",
            ),
        ),
        (STOP, says(code=2, stderr=b"tests fail"), HookSaid(NO, "tests fail")),
        (STOP, says(b'{"decision": "block", "reason": "r"}'), HookSaid(NO, "r")),
    ],
)
def test_what_an_answer_means(event, output, meaning):
    assert understand(event, output) == meaning


@given(st.sampled_from(HookEvent), st.binary(max_size=60), st.integers(-64, 255), st.binary(max_size=20), st.booleans())
def test_no_output_is_too_strange(event, stdout, code, stderr, cut):
    said = understand(event, HookOutput(code, stdout, stderr, cut))
    assert code in (0, 2) or said.failure
    assert code != 2 or said.word is NO


@given(st.sampled_from(HookEvent), st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner)))
def test_no_answer_of_a_function_is_too_strange(event, answer):
    said = understood(event, {"decision": answer, "hookSpecificOutput": {"permissionDecision": answer}})
    assert said.word is not YES or answer in ("allow", "approve")


def test_an_answer_is_found_behind_lines_that_look_like_one():
    assert understand(PRE, says(b"{\n{a\n" * 50 + deny("at last"))).word is NO


def test_a_megabyte_of_such_lines_is_given_up_at_once():
    """Each try costs a look at all before it, so their number is bounded; what stands behind them is not understood."""
    said = understand(PRE, says(b"{\n" * 500_000 + own(permissionDecision="allow")))
    assert (said.word, said.failure[:40]) == (PASS, "it printed text that is no JSON object: ")


def test_what_a_hook_is_told():
    workspace = Workspace(Path("/nonexistent/w"))
    facts = HookFacts("s", workspace, "/nonexistent", "m", "/t.jsonl")
    call = ToolCall(CallId("a"), 0, "shell", {"command": "ls"})
    failed = ToolResult(CallId("a"), "shell", Outcome.ERROR, True, (), exit_code=3)
    told = payload(PRE, facts, RunId("s-r1"), Mode.ACCEPT_EDITS) | about_call(call, workspace) | about_result(failed)
    assert json.loads(json.dumps(told)) == {
        "session_id": "s",
        "turn_id": "s-r1",
        "transcript_path": "/t.jsonl",
        "cwd": "/nonexistent/w",
        "hook_event_name": "PreToolUse",
        "permission_mode": "acceptEdits",
        "model": "m",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "a",
        "novacode_tool_name": "shell",
        "novacode_tool_input": {"command": "ls"},
        "tool_response": {
            "success": False,
            "outcome": "error",
            "content": "",
            "exit_code": 3,
            "interrupted": False,
            "stdout": "",
            "stderr": "",
        },
        "error": "",
        "is_interrupt": False,
    }
