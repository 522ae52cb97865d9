"""The one reading of failures: HTTP answers and error objects inside a stream, of every provider, to a `Failure`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite

import attrs

from novacode.protocols import jsonio
from novacode.values.failure import Failure, FailureKind
from novacode.values.parts import JSON

__all__ = ["from_error", "from_response"]

_K = FailureKind

_BY_STATUS: Mapping[int, tuple[FailureKind, bool]] = {
    401: (_K.AUTHENTICATION, False),
    402: (_K.RATE_LIMIT, False),  # the account has no credit: waiting does not help
    403: (_K.AUTHENTICATION, False),
    407: (_K.NETWORK, False),
    408: (_K.NETWORK, True),
    409: (_K.SERVER, True),
    413: (_K.CONTEXT_TOO_LONG, False),
    425: (_K.SERVER, True),
    429: (_K.RATE_LIMIT, True),
    498: (_K.OVERLOADED, True),
    499: (_K.SERVER, True),
    501: (_K.INVALID_REQUEST, False),
    503: (_K.OVERLOADED, True),
    529: (_K.OVERLOADED, True),
}

_BY_WORD: Mapping[str, tuple[FailureKind, bool]] = {
    # Anthropic
    "overloaded_error": (_K.OVERLOADED, True),
    "rate_limit_error": (_K.RATE_LIMIT, True),
    "api_error": (_K.SERVER, True),
    "timeout_error": (_K.SERVER, True),
    "authentication_error": (_K.AUTHENTICATION, False),
    "permission_error": (_K.AUTHENTICATION, False),
    "billing_error": (_K.RATE_LIMIT, False),
    "request_too_large": (_K.CONTEXT_TOO_LONG, False),
    "not_found_error": (_K.INVALID_REQUEST, False),
    # OpenAI and its imitators
    "tool_use_failed": (_K.INVALID_REQUEST, True),  # Groq: the model wrote a bad call; it may write a better one
    "insufficient_quota": (_K.RATE_LIMIT, False),
    "billing_hard_limit_reached": (_K.RATE_LIMIT, False),
    "invalid_api_key": (_K.AUTHENTICATION, False),
    "rate_limit_exceeded": (_K.RATE_LIMIT, True),
    "requests": (_K.RATE_LIMIT, True),
    "tokens": (_K.RATE_LIMIT, True),
    "context_length_exceeded": (_K.CONTEXT_TOO_LONG, False),
    "exceed_context_size_error": (_K.CONTEXT_TOO_LONG, False),
    "string_above_max_length": (_K.CONTEXT_TOO_LONG, False),
    "server_error": (_K.SERVER, True),
    "internal_server_error": (_K.SERVER, True),
    "server_is_overloaded": (_K.OVERLOADED, True),
    "slow_down": (_K.OVERLOADED, True),
    "service_unavailable": (_K.OVERLOADED, True),
    "model_not_found": (_K.INVALID_REQUEST, False),
    # Google; the reason stands in the details, and a wrong key is an INVALID_ARGUMENT with status 400
    "API_KEY_INVALID": (_K.AUTHENTICATION, False),
    "UNAUTHENTICATED": (_K.AUTHENTICATION, False),
    "PERMISSION_DENIED": (_K.AUTHENTICATION, False),
    "RESOURCE_EXHAUSTED": (_K.RATE_LIMIT, True),
    "UNAVAILABLE": (_K.OVERLOADED, True),
    "INTERNAL": (_K.SERVER, True),
    "DEADLINE_EXCEEDED": (_K.SERVER, True),
    "ABORTED": (_K.SERVER, True),
    "CANCELLED": (_K.SERVER, True),
    "UNKNOWN": (_K.SERVER, True),
    "INVALID_ARGUMENT": (_K.INVALID_REQUEST, False),
    "FAILED_PRECONDITION": (_K.INVALID_REQUEST, False),
    "NOT_FOUND": (_K.INVALID_REQUEST, False),
}

_VAGUE = frozenset({"invalid_request_error", "BadRequestError"})
"""Words that imitators put beside any refusal, a wrong key's 401 and a rate limit's 429 too: the status says more."""

# Compiled where there is a failure: 3 ms of every start otherwise. Each alternative is one provider's sentence; they
# are looked for only where the request itself was refused.
_TOO_LONG = (
    r"prompt is too long|context.{0,3}(length|window|size)|maximum (context|number of tokens|prompt length)|"
    r"input token count|too many (input )?tokens|input is too long|reduce the length|exceeds? the (available|maximum|"
    r"model'?s?).{0,30}(context|tokens?)|tokens? .{0,40}exceeds? .{0,40}(limit|maximum)|"
    r"max(imum)? .{0,60}\d+ tokens.{0,80}(request|prompt|input|messages).{0,60}\d+|request (entity )?too large|"
    r"input length and .?max_tokens.? exceed|prompt .{0,20}too large"
)
_HTTP_DATE = r"[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OUTPUT_CAP = r"max_(completion_|output_)?tokens.{0,20}(is too large|must be|too high|at most)"


@attrs.frozen(eq=False, repr=False)
class _Report:
    """What an error says of itself, wherever its provider puts it."""

    message: str = ""
    words: tuple[str, ...] = ()
    status: int | None = None
    details: JSON = None
    has_context_size: bool = False

    @property
    def word(self) -> str | None:
        return self.words[0] if self.words else None


def from_response(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return what an HTTP error response means. `headers` have lower-case names. Never raises."""
    report = _read_body(body)
    if not report.message:
        report = attrs.evolve(report, message=_plain_message(status, headers, body))
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")
        return Failure(_K.PROTOCOL, f"the endpoint redirects to {where}; set that as the base URL", False, None, status)
    failure = _judge(report, status)
    return attrs.evolve(failure, retry_after=_retry_after(headers, report.details))


def from_error(error: JSON, *, raw_stop: str | None = None) -> Failure:
    """Return what an error inside a stream means. `error` is the provider's error object, or its text."""
    report = _read_error(error)
    if not report.message:
        report = attrs.evolve(report, message=f"the provider reported an error without a message: {str(error)[:200]}")
    failure = _judge(report, report.status)
    return attrs.evolve(failure, retry_after=_retry_after({}, report.details), raw_stop=raw_stop)


def _judge(report: _Report, status: int | None) -> Failure:
    kind, retryable = _kind(report, status)
    return Failure(kind, report.message, retryable, None, status, report.word)


def _kind(report: _Report, status: int | None) -> tuple[FailureKind, bool]:
    known = next((_BY_WORD[word] for word in _BY_WORD if word in report.words), None)
    refused_as_such = known is None or known[0] is _K.INVALID_REQUEST
    if refused_as_such and (status is None or status in {400, 413, 422, 500}) and _too_long(report):
        return _K.CONTEXT_TOO_LONG, False
    if known is not None:
        return known
    if status is not None and status in _BY_STATUS:
        return _BY_STATUS[status]
    if not _VAGUE.isdisjoint(report.words) or (status is not None and 400 <= status < 500):
        return _K.INVALID_REQUEST, False
    return _K.SERVER, True


def _too_long(report: _Report) -> bool:
    if report.has_context_size:
        return True
    if re.search(_OUTPUT_CAP, report.message, re.IGNORECASE) and "context" not in report.message:
        return False
    return re.search(_TOO_LONG, report.message, re.IGNORECASE | re.DOTALL) is not None


def _read_body(body: bytes) -> _Report:
    try:
        value = jsonio.load(body)
    except (ValueError, RecursionError):
        return _Report()
    if isinstance(value, list) and value:  # Gemini without alt=sse
        value = value[0]
    if not isinstance(value, Mapping):
        return _Report()
    return _read_error(value.get("error") or value.get("errors") or value)


def _read_error(error: JSON) -> _Report:
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, Mapping):
        return _Report(error if isinstance(error, str) else "")
    nested = error.get("error")
    if isinstance(nested, Mapping) and not error.get("message"):
        return _read_error(nested)
    message = error.get("message") or error.get("detail") or error.get("error") or error.get("msg") or ""
    words = [str(error[key]) for key in ("type", "status", "code") if isinstance(error.get(key), str | int)]
    words += _reasons(error.get("details"))
    status = next((error[key] for key in ("status_code", "code", "status") if _is_status(error.get(key))), None)
    text = message if isinstance(message, str) else jsonio.dump_text(message)
    return _Report(text.strip(), tuple(words), status, error.get("details"), "n_ctx" in error)


def _reasons(details: JSON) -> list[str]:
    """Return what Google's `ErrorInfo` details give as the reason."""
    found = details if isinstance(details, list) else []
    return [item["reason"] for item in found if isinstance(item, Mapping) and isinstance(item.get("reason"), str)]


def _is_status(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600


def _plain_message(status: int, headers: Mapping[str, str], body: bytes) -> str:
    """Make one line of a body that is no JSON: proxies answer with whole pages."""
    text = body[:20_000].decode("utf-8", "replace").strip()
    if "html" in headers.get("content-type", "") or text[:200].lstrip().lower().startswith(("<!doctype", "<html")):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        said = f": {' '.join(title[1].split())[:120]}" if title and title[1].strip() else ""
        return (
            f"HTTP {status} with an HTML page instead of an answer{said}; a proxy or a wrong base URL sends such pages"
        )
    line = " ".join(text.split())[:300]
    return f"HTTP {status}: {line}" if line else f"HTTP {status} without a body"


def _retry_after(headers: Mapping[str, str], details: JSON) -> float | None:
    """Return the seconds the provider asks to wait, whichever way it says so."""
    found = _number(headers.get("retry-after-ms"), 1000)
    if found is None:
        found = _number(headers.get("retry-after"), 1)
    if found is None and "retry-after" in headers:
        found = _until(headers["retry-after"], headers.get("date"))
    if found is None and isinstance(details, list):
        for detail in details:
            if isinstance(detail, Mapping) and isinstance(detail.get("retryDelay"), str):
                found = _number(detail["retryDelay"].removesuffix("s"), 1)
    return found


def _number(text: str | None, divisor: int) -> float | None:
    try:
        value = float(text or "") / divisor
    except ValueError:
        return None
    return max(0.0, value) if isfinite(value) else None


def _until(wanted: str, now: str | None) -> float | None:
    """Return the seconds from the server's own clock to the date it names; there is no clock on this floor."""
    then, start = _date(wanted), _date(now or "")
    return None if then is None or start is None else max(0.0, (then - start).total_seconds())


def _date(text: str) -> datetime | None:
    """Return the moment an HTTP date names; read by hand, because `email.utils` brings sockets and chance with it."""
    found = re.fullmatch(_HTTP_DATE, text.strip(), re.ASCII)
    if found is None:
        return None
    day, month, year, hour, minute, second = found.groups()
    try:
        place = _MONTHS.index(month) + 1
        return datetime(int(year), place, int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        return None
