"""What a person can do about a model that failed."""

from __future__ import annotations

from collections.abc import Mapping

from novacode.values.failure import Failure, FailureKind

__all__ = ["advice_for"]

_GO_ON = "-c goes on with this session."

_ADVICE: Mapping[FailureKind, str] = {
    FailureKind.AUTHENTICATION: "Check the key in the environment; `novacode models` names the one of each provider.",
    FailureKind.INVALID_REQUEST: "Check the name of the model and what it can do; -c goes on with this session.",
    FailureKind.CONTEXT_TOO_LONG: "Start a new session, or use a model with a longer context.",
    FailureKind.RATE_LIMIT: f"Wait a little and run it again; {_GO_ON}",
    FailureKind.OVERLOADED: f"Wait a little and run it again; {_GO_ON}",
    FailureKind.SERVER: f"This is the provider's fault; run it again later. {_GO_ON}",
    FailureKind.NETWORK: f"Check the network and --base-url, and run it again; {_GO_ON}",
    FailureKind.PROTOCOL: "Check that --base-url and the provider before the slash of --model belong together.",
}
_NO_SUCH_MODEL = "Check the name of the model; `novacode models PROVIDER` shows names that are known."
_NO_CREDIT = "Waiting does not help: the provider wants its account to be looked at."


def advice_for(failure: Failure) -> str:
    """Return one or two sentences; for every kind of failure there is something to do."""
    if failure.kind is FailureKind.INVALID_REQUEST and failure.status == 404:
        return _NO_SUCH_MODEL
    if failure.kind is FailureKind.RATE_LIMIT and not failure.retryable:
        return _NO_CREDIT
    return _ADVICE[failure.kind]
