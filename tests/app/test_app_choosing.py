"""From the name of a model to what answers: every provider of the catalog, and whose seals count where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from doubles.model_server import Answer, Seen, serving
from doubles.rules import violations
from doubles.spoken import Asks, Say, Think, body

from novacode.app.choosing import choose
from novacode.errors import CredentialsError, InputError, ModelFailed, UsageError
from novacode.models.catalog import PROVIDERS, Provider
from novacode.models.client import ModelClient
from novacode.values.events import CallReady, Finished
from novacode.values.failure import Failure, FailureKind
from novacode.values.history import Exchange, History
from novacode.values.ids import CallIds
from novacode.values.parts import Assistant, Text, Thinking, User
from novacode.values.request import ModelRequest, ToolOffer

ALL = [pytest.param(provider, id=provider.name) for provider in PROVIDERS.values()]
OFFER = ToolOffer("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def request(history: History | None = None) -> ModelRequest:
    return ModelRequest("m", "Be brief.", history or History((User.said("hello"),)), (OFFER,))


def environ_of(provider: Provider) -> dict[str, str]:
    return dict.fromkeys(provider.key_env[:1], f"key-{provider.name}")


def reply(protocol: str) -> bytes:
    if protocol == "ollama":
        call = {"function": {"name": "read", "arguments": {"path": "a"}}}
        lines = [{"message": {"role": "assistant", "content": "Hi.", "tool_calls": [call]}}, {"done": True}]
        return b"".join(json.dumps(line | {"model": "m"}).encode() + b"\n" for line in lines)
    frames = body(protocol, [Think("hm"), Say("Hi."), Asks("c1", "read", {"path": "a"})], "tool_use")
    return b"".join(frame for frame in frames if isinstance(frame, bytes))


@pytest.mark.parametrize("provider", ALL)
async def test_every_provider_is_asked_in_its_protocol_with_its_key(provider: Provider) -> None:
    """Against a server that refuses what the real one would, and answers in that protocol."""
    answer = Answer((reply(provider.protocol),), headers=(("content-type", "text/event-stream"),))
    async with serving([answer]) as server:
        version = provider.base_url.rpartition("/")[2]
        url = f"{server.url}/{version}" if version.startswith("v") else server.url
        choice = choose(f"{provider.name}/m", url, environ_of(provider))
        client = choice.client(CallIds(), 5.0, lambda _: None)
        events: list[Any] = []
        async with client.stream(request()) as stream:
            while more := await stream.receive():
                events += more
        await client.aclose()
    [seen] = server.requests
    assert violations(provider.protocol, seen.body) == []
    assert [event.call.arguments for event in events if isinstance(event, CallReady)] == [{"path": "a"}]
    assert isinstance(events[-1], Finished)
    assert choice.label == f"{provider.name}/m"
    assert _key_of(seen, provider) == (f"key-{provider.name}" if provider.key_env else None)
    assert seen.path.count("/v1") <= 1


def _key_of(seen: Seen, provider: Provider) -> str | None:
    value = seen.headers.get(provider.auth)
    return value.removeprefix("Bearer ") if value is not None else None


async def failure_of(client: ModelClient, asked: ModelRequest) -> Failure:
    with pytest.raises(ModelFailed) as caught:
        async with client.stream(asked):
            pass
    await client.aclose()
    return caught.value.failure


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "gemini", "deepseek"])
async def test_seals_of_another_endpoint_are_not_sent(provider: str) -> None:
    """A local server that speaks the protocol signs for itself: the provider would refuse the next request for it."""
    environ = environ_of(PROVIDERS[provider])
    own = choose(f"{provider}/m", None, environ).client(CallIds(), 5.0, lambda _: None).issuer
    seal = {"signature": "s", "encrypted_content": "s", "thoughtSignature": "s", "field": "reasoning_content"}
    history = History((User.said("a"), Exchange(Assistant((Thinking("secret", seal), Text("b")), own)), User.said("c")))
    async with serving(lambda seen: Answer.error(401, {})) as server:
        for url in (server.url, f"{server.url}/"):
            client = choose(f"{provider}/m", url, environ).client(CallIds(), 5.0, lambda _: None)
            assert client.issuer == f"{own} at {server.url.removeprefix('http://')}"
            assert (await failure_of(client, request(history))).kind is FailureKind.AUTHENTICATION
    assert all(b"secret" not in seen.body and b'"s"' not in seen.body for seen in server.requests)


@pytest.mark.parametrize(
    ("wanted", "url", "error", "says"),
    [
        ("anthropic/m", None, CredentialsError, "set ANTHROPIC_API_KEY"),
        ("gemini/m", None, CredentialsError, "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (None, None, CredentialsError, "novacode demo"),
        ("azure/m", None, InputError, "--base-url or AZURE_OPENAI_BASE_URL"),
        ("azure/m", "https://x.openai.azure.com/openai/v1", CredentialsError, "AZURE_OPENAI_API_KEY"),
        ("antropic/m", None, UsageError, "did you mean anthropic?"),
    ],
)
def test_what_is_missing_is_named(wanted: str | None, url: str | None, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        choose(wanted, url, {})
    assert says in str(caught.value)


def test_a_key_is_only_required_where_the_endpoint_is_the_providers_own() -> None:
    assert choose("anthropic/m", "http://127.0.0.1:8080", {}).label == "anthropic/m"
    assert choose("ollama-native/qwen3", None, {}).label == "ollama-native/qwen3"
