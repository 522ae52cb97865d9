"""How a run ended, for programs: the result object and the exit code. There is one of each on every path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs
import click

from novacode.cli.advice import advice_for
from novacode.errors import (
    CredentialsError,
    InputError,
    ModelFailed,
    NovaError,
    ReplayMismatch,
    SessionError,
    SettingsError,
    UsageError,
)
from novacode.values.events import (
    ApprovalAsked,
    CallMoved,
    CallReady,
    CallSettled,
    Level,
    Notice,
    Phase,
    Reaped,
    RunBegan,
    RunEnded,
    RunStatus,
    Stamped,
    TurnBegan,
)
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import CallId
from novacode.values.parts import JSON, ToolCall
from novacode.values.request import Usage
from novacode.values.results import Outcome

__all__ = ["UNKEPT", "ResultWatch", "build_result", "exit_code", "failure_result", "usage_object"]

_SIGNALS = {"SIGHUP": 129, "SIGINT": 130, "SIGPIPE": 141, "SIGTERM": 143}
_CANCELLED = 130
UNKEPT = 74
"""What happened is not on record: the session could not be written. `EX_IOERR` of sysexits, beside 75."""

_TEMPORARY = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.SERVER, FailureKind.NETWORK})
_DENIALS = frozenset({Outcome.DENIED, Outcome.HOOK_DENIED})

_SUBTYPES: tuple[tuple[type[BaseException], str], ...] = (
    (CredentialsError, "error_auth"),
    (UsageError, "error_usage"),
    (InputError, "error_input"),
    (SettingsError, "error_settings"),
    (SessionError, "error_session"),
    (ReplayMismatch, "error_replay"),
)


@attrs.define(eq=False, repr=False)
class ResultWatch:
    """Subscribes to a run and remembers what its result object needs. `end` is the run's end, once it has come."""

    began_at: float | None = None
    ended_at: float = 0.0
    run_id: str = ""
    end: RunEnded | None = None
    denials: list[Mapping[str, JSON]] = attrs.field(factory=list)
    warned: str = ""
    turns: int = 0
    _calls: dict[CallId, ToolCall] = attrs.field(factory=dict)
    _began: set[CallId] = attrs.field(factory=set)
    _settled: dict[CallId, Outcome] = attrs.field(factory=dict)

    def __call__(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe."""
        match stamped.event:
            case RunBegan():
                # One watch can see several runs of a session; the result is of the last one.
                self.began_at, self.run_id, self.end = stamped.at, stamped.run_id, None
                self.turns = 0
                for seen in (self.denials, self._calls, self._began, self._settled):
                    seen.clear()
            case TurnBegan(number=number):
                self.turns = number
            case CallMoved(call_id=call_id, phase=Phase.RUNNING):
                self._began.add(call_id)
            case CallReady(call=call) | ApprovalAsked(call=call):
                self._calls[call.id] = call  # the later one wins: the arguments as hooks have rewritten them
            case CallSettled(result=result):
                self._settled[result.call_id] = result.outcome
                proposed = self._calls.get(result.call_id)
                if result.outcome in _DENIALS:
                    self.denials.append(
                        {
                            "tool_name": result.name,
                            "tool_use_id": result.call_id,
                            "tool_input": {} if proposed is None else proposed.arguments,
                            "reason": result.text,
                        }
                    )
            case Notice(level=Level.WARNING, text=text):
                self.warned = text  # the last one before the end of a run says why it ended
            case RunEnded() as ended:
                # A run whose prompt a hook refuses ends without having begun.
                self.end, self.ended_at, self.run_id = ended, stamped.at, stamped.run_id
            case _:
                pass

    @property
    def duration_ms(self) -> int:
        """From the prompt to the end, by the run's clock."""
        return 0 if self.began_at is None else max(0, round((self.ended_at - self.began_at) * 1000))

    def cut_short(self, reason: str, survivors: Sequence[int] = ()) -> RunEnded:
        """Return the end of a run that is not waited for any more.

        What has no result is counted as the session says it when it is opened again: `lost` where it had begun, else
        `skipped`.
        """
        calls = Counter(outcome.value for outcome in self._settled.values())
        for call_id in self._calls.keys() - self._settled.keys():
            calls[(Outcome.LOST if call_id in self._began else Outcome.SKIPPED).value] += 1
        return RunEnded(
            RunStatus.CANCELLED,
            reason,
            turns=self.turns,
            calls={"total": calls.total(), **calls},
            reaped=Reaped(tasks=calls[Outcome.LOST.value], survivors=tuple(survivors)),
        )


def build_result(ended: RunEnded, watch: ResultWatch, session_id: str) -> dict[str, JSON]:
    """Return the result object of a run that has ended."""
    result = _object(
        subtype=_subtype(ended),
        is_error=ended.status is not RunStatus.COMPLETED,
        terminal_reason=ended.reason or ended.status.value,
        session_id=session_id,
    )
    result |= {
        "run_id": watch.run_id,
        "result": ended.text,
        "num_turns": ended.turns,
        "duration_ms": watch.duration_ms,
        "total_cost_usd": ended.cost_usd,
        "usage": usage_object(ended.usage),
        "permission_denials": list(watch.denials),
        "calls": _calls(ended.calls),
        "reaped": _reaped(ended.reaped),
    }
    if ended.failure is not None:
        result["error"] = _failure_object(ended.failure)
    elif ended.reason == "replay_mismatch":
        result["error"] = {"kind": ReplayMismatch.__name__, "message": watch.warned}
    return result


def failure_result(error: BaseException, session_id: str = "", watch: ResultWatch | None = None) -> dict[str, JSON]:
    """Return the result object where there is no `RunEnded`: the failure came before the run, or is a bug."""
    failure = error.failure if isinstance(error, ModelFailed) else None
    subtype = _failed(failure) if failure else next((name for kind, name in _SUBTYPES if isinstance(error, kind)), "")
    result = _object(
        subtype=subtype or ("error_usage" if isinstance(error, click.UsageError) else "error_runtime"),
        is_error=True,
        terminal_reason=failure.kind.value
        if failure
        else "not_started"
        if isinstance(error, NovaError)
        else "internal",
        session_id=session_id,
    )
    if watch is not None:
        result |= {"run_id": watch.run_id, "permission_denials": list(watch.denials)}
    words = error.format_message() if isinstance(error, click.ClickException) else str(error)
    result["error"] = (
        _failure_object(failure) if failure else {"kind": type(error).__name__, "message": words or repr(error)}
    )
    return result


def exit_code(outcome: RunEnded | BaseException) -> int:
    """Return what the process ends with, after the table in the documentation of the command line."""
    match outcome:
        case RunEnded(status=RunStatus.COMPLETED):
            return 0
        case RunEnded(status=RunStatus.LIMIT):
            return 53
        case RunEnded(status=RunStatus.CANCELLED, reason=reason):
            return _SIGNALS.get(reason, _CANCELLED)
        case RunEnded(status=RunStatus.FAILED, reason="replay_mismatch"):
            return ReplayMismatch.exit_code
        case RunEnded(status=RunStatus.FAILED, reason="session_error"):
            return UNKEPT
        case RunEnded(failure=failure):
            return _failure_code(failure)
        case ModelFailed(failure=failure):
            return _failure_code(failure)
        case NovaError() | click.ClickException():
            return outcome.exit_code
        case KeyboardInterrupt():
            return _CANCELLED
        case _:
            return 1


def usage_object(usage: Usage) -> dict[str, JSON]:
    """Return token counts under the names that are widely parsed; `null` where the provider did not report."""
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def _object(*, subtype: str, is_error: bool, terminal_reason: str, session_id: str) -> dict[str, JSON]:
    """Return a result object with every field, as it is where nothing has happened."""
    return {
        "type": "result",
        "subtype": subtype,
        "is_error": is_error,
        "session_id": session_id,
        "run_id": "",
        "result": "",
        "num_turns": 0,
        "duration_ms": 0,
        "total_cost_usd": None,
        "usage": usage_object(Usage()),
        "permission_denials": [],
        "terminal_reason": terminal_reason,
        "calls": _calls({}),
        "reaped": _reaped(Reaped()),
    }


def _subtype(ended: RunEnded) -> str:
    match ended.status:
        case RunStatus.COMPLETED:
            return "success"
        case RunStatus.LIMIT:
            return "error_max_turns" if ended.reason == "max_turns" else "error_limit"
        case RunStatus.CANCELLED:
            return "cancelled"
        case RunStatus.REFUSED:
            return "error_refusal"
        case RunStatus.FAILED:
            if ended.reason == "replay_mismatch":
                return "error_replay"
            if ended.reason == "session_error":
                return "error_session"
            return _failed(ended.failure) if ended.failure else "error_runtime"


def _failed(failure: Failure) -> str:
    return "error_auth" if failure.kind is FailureKind.AUTHENTICATION else "error_model"


def _failure_code(failure: Failure | None) -> int:
    if failure is None:
        return 1
    if failure.kind is FailureKind.AUTHENTICATION:
        return CredentialsError.exit_code
    return 75 if failure.kind in _TEMPORARY and failure.retryable else 1


def _failure_object(failure: Failure) -> dict[str, JSON]:
    return {
        "kind": failure.kind.value,
        "message": failure.message,
        "retryable": failure.retryable,
        "retry_after": failure.retry_after,
        "status": failure.status,
        "type": failure.raw_type,
        "advice": advice_for(failure),
    }


def _calls(counted: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the number of calls in all and by outcome, outcomes that did not occur included."""
    return {"total": 0} | {outcome.value: 0 for outcome in Outcome} | dict(counted)


def _reaped(reaped: Reaped) -> dict[str, JSON]:
    return attrs.asdict(reaped) | {"survivors": list(reaped.survivors)}
