"""Providers and prices are data; these tests hold that the data hangs together."""

import json
import subprocess
import sys
from datetime import date
from importlib import resources

import pytest

from novacode.errors import UsageError
from novacode.models import catalog
from novacode.models.catalog import PROVIDERS, auth_headers, context_window, cost_usd, known_models, split_model
from novacode.models.endpoint import Endpoint
from novacode.protocols.quirks import QUIRKS
from novacode.protocols.summary import PROTOCOLS
from novacode.values.request import Usage

TABLE = json.loads((resources.files("novacode.models") / "prices.json").read_text())


def test_the_providers_people_expect_are_there():
    wanted = "anthropic openai openai-responses gemini openrouter deepseek mistral groq xai moonshot qwen zai together"
    wanted += " fireworks azure ollama llamacpp vllm lmstudio"
    assert set(wanted.split()) <= set(PROVIDERS)


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider.name)
def test_every_provider_can_be_used(provider):
    assert provider.protocol in set(PROTOCOLS)
    assert provider.url_env.endswith("_BASE_URL")
    assert provider.base_url or provider.name == "azure"
    if provider.base_url:
        endpoint = Endpoint(provider.base_url)
        assert endpoint.is_local is not provider.needs_key
        assert provider.base_url.startswith("https:") or endpoint.is_local
    if provider.needs_key:
        assert provider.key_env
    if provider.default_model and known_models(provider.name):
        assert cost_usd(f"{provider.name}/{provider.default_model}", Usage(1, 1)) is not None


def test_every_known_dialect_belongs_to_a_provider():
    assert set(QUIRKS) - {"perplexity"} <= {provider.quirks for provider in PROVIDERS.values()}


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("anthropic/claude-x", "anthropic", "claude-x"),
        ("Anthropic/claude-x", "anthropic", "claude-x"),
        ("openrouter/anthropic/claude-x", "openrouter", "anthropic/claude-x"),
        ("openai-responses/gpt-x", "openai-responses", "gpt-x"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b"),
        ("claude-x", "anthropic", "claude-x"),
        ("gpt-x", "openai", "gpt-x"),
        ("gemini-x", "gemini", "gemini-x"),
    ],
)
def test_models_are_split(name, provider, model):
    assert split_model(name) == (PROVIDERS[provider], model)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("antropic/x", "did you mean anthropic?"),
        ("nobody/x", "known are anthropic, openai"),
        ("x", "write provider/model"),
        ("anthropic/", "write anthropic/MODEL"),
        ("", "names no provider"),
    ],
)
def test_models_of_nobody_are_explained(name, says):
    with pytest.raises(UsageError) as caught:
        split_model(name)
    assert says in str(caught.value)
    assert repr(name) in str(caught.value)


def test_keys_travel_in_the_header_of_their_provider():
    headers = {name: auth_headers(PROVIDERS[name], "k") for name in ("anthropic", "openai", "gemini", "azure")}
    assert headers == {
        "anthropic": {"x-api-key": "k"},
        "openai": {"authorization": "Bearer k"},
        "gemini": {"x-goog-api-key": "k"},
        "azure": {"api-key": "k"},
    }
    assert auth_headers(PROVIDERS["openai"], None) == {}


def test_a_key_is_needed_only_at_the_providers_own_endpoint():
    openai, azure, ollama = PROVIDERS["openai"], PROVIDERS["azure"], PROVIDERS["ollama"]
    assert openai.requires_key("https://api.openai.com/v1/")
    assert not openai.requires_key("http://127.0.0.1:9/v1")
    assert azure.requires_key("https://mine.openai.azure.com/openai/v1")
    assert not ollama.requires_key(ollama.base_url)


def test_the_price_table_is_small_dated_and_sound():
    assert len((resources.files("novacode.models") / "prices.json").read_bytes()) < 60_000
    assert date.fromisoformat(catalog.prices_date()).year >= 2026
    for provider, rows in TABLE.items():
        if provider in ("about", "date"):
            continue
        assert provider in PROVIDERS
        for name, row in rows.items():
            assert name == name.lower()
            assert row["input"] >= 0
            assert row["output"] >= 0
            assert set(row) <= {"context", "input", "output", "cache_read", "cache_write", "also", "tiers"}


def row(model):
    provider, _, name = model.partition("/")
    return TABLE[provider][name]


def test_cost_counts_each_kind_of_token_once():
    """Anthropic counts cached tokens beside the input, OpenAI within it: the same usage costs the same."""
    price = row("anthropic/claude-sonnet-5")
    dollars = (100 * price["input"] + 50 * price["output"] + 30 * price["cache_read"] + 20 * price["cache_write"]) / 1e6
    beside = Usage(100, 50, cache_read=30, cache_write=20, input_counts_cache=False)
    within = Usage(150, 50, cache_read=30, cache_write=20, input_counts_cache=True)
    assert cost_usd("anthropic/claude-sonnet-5", beside) == pytest.approx(dollars)
    assert cost_usd("anthropic/claude-sonnet-5", within) == pytest.approx(dollars)


def test_above_a_tier_the_whole_request_costs_more():
    price = row("anthropic/claude-sonnet-4-5")
    [tier] = price["tiers"]
    border = tier["above"]
    assert cost_usd("anthropic/claude-sonnet-4-5", Usage(border, 0)) == pytest.approx(border * price["input"] / 1e6)
    assert cost_usd("anthropic/claude-sonnet-4-5", Usage(border + 1, 0)) == pytest.approx(
        (border + 1) * tier["input"] / 1e6
    )


def test_reasoning_that_is_counted_apart_is_paid_for():
    price = row("gemini/gemini-2.5-pro")
    apart = Usage(0, 10, reasoning=5, output_counts_reasoning=False)
    assert cost_usd("gemini/gemini-2.5-pro", apart) == pytest.approx(15 * price["output"] / 1e6)


@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4.5",
        "anthropic/claude-sonnet-4-5@20250929",
        "anthropic/Claude-Sonnet-4-5-latest",
        "claude-sonnet-4-5",
    ],
)
def test_dated_and_other_names_of_a_model_are_the_same_model(name):
    assert cost_usd(name, Usage(1000, 10)) == cost_usd("anthropic/claude-sonnet-4-5", Usage(1000, 10))
    assert context_window(name) == row("anthropic/claude-sonnet-4-5")["context"]


@pytest.mark.parametrize("name", ["anthropic/claude-nobody-knows", "ollama/qwen3:8b", "script:a.toml", "demo"])
def test_what_is_not_known_is_not_made_up(name):
    assert cost_usd(name, Usage(1, 1)) is None
    assert context_window(name) is None


def test_no_usage_is_no_price():
    assert cost_usd("anthropic/claude-sonnet-5", Usage()) is None


def test_responses_and_chat_share_their_prices():
    usage = Usage(1000, 1000)
    assert cost_usd("openai-responses/gpt-5", usage) == cost_usd("openai/gpt-5", usage)


def test_the_table_is_read_only_when_it_is_needed():
    code = "from novacode.models import catalog; print(catalog._table.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
