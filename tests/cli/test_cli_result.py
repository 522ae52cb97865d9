"""The result object and the exit code, on every path."""

import json

import attrs
import click
import pytest
from cli_events import DENIED, EDIT, ENDED, whole_run

from novacode import errors
from novacode.cli.result import ResultWatch, build_result, exit_code, failure_result
from novacode.cli.text_output import answer_bytes, failure_text
from novacode.values.events import Reaped, RunEnded, RunStatus
from novacode.values.failure import Failure, FailureKind
from novacode.values.request import Usage
from novacode.values.results import Outcome


def failed(kind, retryable=True):
    failure = Failure(kind, "no luck", retryable, status=500)
    return RunEnded(RunStatus.FAILED, kind.value, "half an answ", failure=failure)


def test_br_148_a_completed_run_with_its_denial():
    watch = ResultWatch()
    for one in whole_run():
        watch(one)
    assert build_result(ENDED, watch, "s") == {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "session_id": "s",
        "run_id": "s-r1",
        "result": "Done.",
        "num_turns": 2,
        "duration_ms": 2900,
        "total_cost_usd": 0.25,
        "usage": {
            "input_tokens": 30,
            "output_tokens": 7,
            "cache_read_input_tokens": None,
            "cache_creation_input_tokens": None,
            "reasoning_tokens": None,
        },
        "permission_denials": [
            {
                "tool_name": "edit",
                "tool_use_id": "c2",
                "tool_input": EDIT.arguments,
                "reason": DENIED.text,
            }
        ],
        "terminal_reason": "completed",
        "calls": {"total": 2} | {outcome.value: 0 for outcome in Outcome} | {"ok": 1, "denied": 1},
        "reaped": {"tasks": 0, "processes": 0, "escalated": 0, "survivors": [], "ms": 0},
    }


KINDS = {
    FailureKind.AUTHENTICATION: 41,
    FailureKind.INVALID_REQUEST: 1,
    FailureKind.CONTEXT_TOO_LONG: 1,
    FailureKind.RATE_LIMIT: 75,
    FailureKind.OVERLOADED: 75,
    FailureKind.SERVER: 75,
    FailureKind.NETWORK: 75,
    FailureKind.PROTOCOL: 1,
}


@pytest.mark.parametrize("kind", FailureKind)
def test_br_147_a_failed_model_is_never_a_success(kind):
    ended = failed(kind)
    result = build_result(ended, ResultWatch(), "s")
    assert result["is_error"] is True
    assert result["subtype"] == ("error_auth" if kind is FailureKind.AUTHENTICATION else "error_model")
    assert result["error"]["message"] == "no luck"
    assert exit_code(ended) == exit_code(errors.ModelFailed(ended.failure)) == KINDS[kind]
    assert answer_bytes(ended, terminal=False) == b""
    assert "no luck" in failure_text(ended)
    temporary = exit_code(failed(kind, retryable=False))
    assert temporary == (1 if KINDS[kind] == 75 else KINDS[kind]), "75 says that trying again later may help"


ENDINGS = [
    (RunEnded(RunStatus.COMPLETED, "completed"), "success", "completed", 0),
    (RunEnded(RunStatus.LIMIT, "max_turns"), "error_max_turns", "max_turns", 53),
    (RunEnded(RunStatus.LIMIT, "max_seconds"), "error_limit", "max_seconds", 53),
    (RunEnded(RunStatus.CANCELLED, "SIGINT"), "cancelled", "SIGINT", 130),
    (RunEnded(RunStatus.CANCELLED, "SIGTERM"), "cancelled", "SIGTERM", 143),
    (RunEnded(RunStatus.CANCELLED, "SIGHUP"), "cancelled", "SIGHUP", 129),
    (RunEnded(RunStatus.CANCELLED, "SIGPIPE"), "cancelled", "SIGPIPE", 141),
    (RunEnded(RunStatus.CANCELLED, "stopped by the person"), "cancelled", "stopped by the person", 130),
    (RunEnded(RunStatus.REFUSED, "refusal"), "error_refusal", "refusal", 1),
    (RunEnded(RunStatus.FAILED, "internal_error"), "error_runtime", "internal_error", 1),
    (RunEnded(RunStatus.FAILED, "replay_mismatch"), "error_replay", "replay_mismatch", 55),
]


@pytest.mark.parametrize(("ended", "subtype", "reason", "code"), ENDINGS)
def test_every_ending_has_its_subtype_reason_and_code(ended, subtype, reason, code):
    result = build_result(ended, ResultWatch(), "s")
    told = (result["subtype"], result["terminal_reason"], result["is_error"], exit_code(ended))
    assert told == (subtype, reason, code != 0, code)
    assert (failure_text(ended) == "") is (code == 0)


@pytest.mark.parametrize(
    ("error", "subtype", "code"),
    [
        (errors.CredentialsError("no key"), "error_auth", 41),
        (errors.UsageError("bad flag"), "error_usage", 2),
        (errors.InputError("no prompt"), "error_input", 42),
        (errors.SettingsError("bad file"), "error_settings", 52),
        (errors.SessionError("locked"), "error_session", 42),
        (errors.ReplayMismatch("other request"), "error_replay", 55),
        (click.UsageError("no such option"), "error_usage", 2),
        (KeyboardInterrupt(), "error_runtime", 130),
        (ZeroDivisionError("oh"), "error_runtime", 1),
    ],
)
def test_a_failure_before_the_run_has_the_same_fields(error, subtype, code):
    result = failure_result(error, "s")
    whole = build_result(ENDED, ResultWatch(), "s")
    assert result.keys() == whole.keys() | {"error"}
    assert (result["subtype"], result["is_error"], exit_code(error)) == (subtype, True, code)
    assert result["error"]["message"]
    json.dumps(result)


def test_what_stopping_took_is_told():
    reaped = Reaped(tasks=2, processes=1, escalated=1, survivors=(77,), ms=40)
    ended = RunEnded(RunStatus.CANCELLED, "SIGINT", reaped=reaped)
    assert build_result(ended, ResultWatch(), "s")["reaped"] == attrs.asdict(reaped) | {"survivors": [77]}
    assert failure_text(ended) == (
        "cancelled (SIGINT): 1 process and 2 tasks stopped, 1 had to be killed, still alive: 77, 40 ms."
        " What was done until then stays done."
    )


def test_the_second_run_of_a_session_has_its_own_denials():
    watch = ResultWatch()
    for one in (*whole_run(), whole_run()[0]):
        watch(one)
    assert (watch.denials, watch.end) == ([], None)


def test_the_answer_on_stdout():
    ended = RunEnded(RunStatus.COMPLETED, "completed", "red \x1b[31m\n", usage=Usage())
    assert answer_bytes(ended, terminal=False) == b"red \x1b[31m\n"
    assert answer_bytes(ended, terminal=True) == b"red \\x1b[31m\n"
    assert answer_bytes(RunEnded(RunStatus.COMPLETED, "completed", "no newline \ud800"), terminal=False) == (
        b"no newline \\ud800\n"
    )
    assert answer_bytes(RunEnded(RunStatus.COMPLETED, "completed", ""), terminal=False) == b""
