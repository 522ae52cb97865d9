"""Why a model could not answer: one taxonomy for every provider and every way of failing."""

from __future__ import annotations

import enum

import attrs

__all__ = ["Failure", "FailureKind"]


class FailureKind(enum.StrEnum):
    """What went wrong, as far as what to do next depends on it."""

    AUTHENTICATION = "authentication"
    INVALID_REQUEST = "invalid_request"
    CONTEXT_TOO_LONG = "context_too_long"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    NETWORK = "network"
    PROTOCOL = "protocol"


@attrs.frozen
class Failure:
    """One failure of one request.

    `retryable` says whether the same request can succeed later, `retry_after` (seconds) when the provider says so.
    `raw_type` is the provider's own word for it and `status` the HTTP status, where there were any.
    `raw_stop` is the stop word of a response that named one and then failed all the same.
    """

    kind: FailureKind
    message: str
    retryable: bool
    retry_after: float | None = None
    status: int | None = None
    raw_type: str | None = None
    raw_stop: str | None = None
