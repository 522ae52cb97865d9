"""One reading of failures."""

import json

import pytest
from codec_checks import decode
from hypothesis import given
from hypothesis import strategies as st
from wire_bodies import sse

from novacode.protocols.failures import from_error, from_response
from novacode.protocols.summary import PROTOCOLS, codec_for
from novacode.values.failure import Failure, FailureKind

K = FailureKind


def answer(status, error, headers=None):
    return from_response(status, headers or {}, error if isinstance(error, bytes) else json.dumps(error).encode())


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "x", "type": "invalid_request_error"}}),
        (400, {"error": {"type": "exceed_context_size_error", "message": "x", "n_ctx": 4096, "n_prompt_tokens": 9000}}),
        (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
        (413, b"<html><title>413 Request Entity Too Large</title></html>"),
        (
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
                "(4000 in the messages, 1000 in the completion).",
                "type": "BadRequestError",
                "code": 400,
            },
        ),
        (400, {"error": {"code": 400, "message": "max 8192 tokens; your request has 9000", "type": "BadRequestError"}}),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (9).",
                    "status": "INVALID_ARGUMENT",
                }
            },
        ),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 209000 tokens > 200000 maximum",
                },
            },
        ),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
                },
            },
        ),
    ],
)
def test_br_141_too_long_in_every_shape(status, error):
    failure = answer(status, error)
    assert (failure.kind, failure.retryable) == (K.CONTEXT_TOO_LONG, False)
    assert failure.status == status


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"type": "invalid_request_error", "message": "messages: text content blocks must be non-empty"}},
        {
            "error": {
                "type": "invalid_request_error",
                "message": "max_tokens: 100000 > 8192, the maximum allowed number of output tokens",
            }
        },
        {"error": {"code": 400, "message": "Please use a valid role", "status": "INVALID_ARGUMENT"}},
        {"error": {"message": "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"}},
        {"error": {"code": "invalid_value", "message": "Unknown parameter: 'contextual'"}},
    ],
)
def test_br_141_other_refusals_do_not_compact(error):
    assert answer(400, error).kind is K.INVALID_REQUEST


def test_a_rate_limit_that_speaks_of_tokens_is_no_overflow():
    error = {
        "error": {
            "message": "Request too large for gpt on tokens per min (TPM)",
            "type": "tokens",
            "code": "rate_limit_exceeded",
        }
    }
    failure = answer(429, error)
    assert (failure.kind, failure.retryable) == (K.RATE_LIMIT, True)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, K.INVALID_REQUEST, False),
        (401, K.AUTHENTICATION, False),
        (402, K.RATE_LIMIT, False),
        (403, K.AUTHENTICATION, False),
        (404, K.INVALID_REQUEST, False),
        (408, K.NETWORK, True),
        (422, K.INVALID_REQUEST, False),
        (429, K.RATE_LIMIT, True),
        (500, K.SERVER, True),
        (502, K.SERVER, True),
        (503, K.OVERLOADED, True),
        (504, K.SERVER, True),
        (529, K.OVERLOADED, True),
    ],
)
def test_a_status_alone_says_what_to_do(status, kind, retryable):
    assert answer(status, b"") == Failure(kind, f"HTTP {status} without a body", retryable, None, status)


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (
            429,
            {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"}},
            K.RATE_LIMIT,
            False,
        ),
        (400, {"error": {"status": "UNAUTHENTICATED", "message": "m"}}, K.AUTHENTICATION, False),
        (400, {"type": "error", "error": {"type": "billing_error", "message": "m"}}, K.RATE_LIMIT, False),
        (500, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, K.OVERLOADED, True),
        (429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m"}}], K.RATE_LIMIT, True),
        (401, {"error": "m"}, K.AUTHENTICATION, False),
        (422, {"detail": "m"}, K.INVALID_REQUEST, False),
        (400, {"error": {"error": {"message": "m"}}}, K.INVALID_REQUEST, False),
    ],
)
def test_the_providers_word_counts_more_than_the_status(status, error, kind, retryable):
    failure = answer(status, error)
    assert (failure.kind, failure.retryable, failure.message) == (kind, retryable, "m")


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, K.INVALID_REQUEST, False),
        (401, K.AUTHENTICATION, False),
        (403, K.AUTHENTICATION, False),
        (404, K.INVALID_REQUEST, False),
        (429, K.RATE_LIMIT, True),
        (500, K.INVALID_REQUEST, False),
        (503, K.OVERLOADED, True),
    ],
)
@pytest.mark.parametrize("word", ["invalid_request_error", "BadRequestError"])
def test_a_word_that_stands_beside_any_refusal_leaves_it_to_the_status(status, kind, retryable, word):
    failure = answer(status, {"error": {"message": "Incorrect API key", "type": word}})
    assert failure == Failure(kind, "Incorrect API key", retryable, None, status, word)


def test_a_wrong_key_as_google_says_it():
    """A plain bad argument by its status and its word; the reason stands in the details."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": details}
    expected = Failure(K.AUTHENTICATION, "API key not valid.", False, None, 400, "INVALID_ARGUMENT")
    assert answer(400, {"error": error}) == expected


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Tue, 01 Dec 2026 10:00:30 GMT", "date": "Tue, 01 Dec 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Tue, 01 Dec 2026 09:00:00 GMT", "date": "Tue, 01 Dec 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Tue, 01 Dec 2026 10:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers, seconds):
    assert answer(429, {"error": {"message": "m"}}, headers).retry_after == seconds


def test_how_long_to_wait_as_google_says_it():
    details = [
        {"@type": "type.googleapis.com/google.rpc.Help"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13.5s"},
    ]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": details}
    assert answer(429, {"error": error}).retry_after == 13.5
    assert from_error(error).retry_after == 13.5


def test_a_page_of_a_proxy_becomes_one_line():
    page = b"<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title></head><body>" + b"x" * 5000
    failure = answer(502, page, {"content-type": "text/html"})
    assert failure.message.startswith("HTTP 502 with an HTML page instead of an answer: 502 Bad Gateway;")
    assert "\n" not in failure.message
    assert len(failure.message) < 200


def test_a_redirect_says_where_to():
    failure = answer(308, b"", {"location": "https://new.example/v1"})
    assert "https://new.example/v1" in failure.message
    assert not failure.retryable


def test_plain_text_is_shown_in_one_line():
    assert answer(503, b"upstream\n  connect error").message == "HTTP 503: upstream connect error"


@given(
    st.integers(100, 599),
    st.dictionaries(st.sampled_from(["retry-after", "date", "content-type"]), st.text()),
    st.binary(),
)
def test_any_answer_is_a_failure(status, headers, body):
    for protocol in PROTOCOLS:
        assert isinstance(codec_for(protocol).refused(status, headers, body), Failure)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "type", "code", "status", "details", "retryDelay"]), inner
        )
    ),
)


@given(json_values)
def test_any_error_object_is_a_failure(error):
    assert isinstance(from_error(error), Failure)
    assert isinstance(answer(400, {"error": error}), Failure)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_plain_json_error_with_status_200(protocol):
    body = b'{\n  "type": "error",\n  "error": {"type": "overloaded_error", "message": "busy"}\n}\n'
    if protocol == "ollama":
        body = b"".join(body.split(b"\n"))
    _, error = decode(protocol, body)
    assert error.failure.message == "busy"


def test_the_type_is_the_providers_own_word():
    for error, word in [
        ({"type": "t", "code": "c", "message": "m"}, "t"),
        ({"code": 400, "message": "m"}, "400"),
        ({"code": 499, "status": "CANCELLED", "message": "m"}, "CANCELLED"),
        ({"message": "m"}, None),
    ]:
        _, found = decode("openai-chat", sse({"error": error}))
        assert found.failure.raw_type == word
