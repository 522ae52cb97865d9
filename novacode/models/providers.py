"""Providers as data: where each is, and how it is spoken to. A new provider is a new record, not a new branch."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import attrs

from novacode.errors import UsageError

__all__ = ["PROVIDERS", "Provider", "auth_headers", "split_model"]


@attrs.frozen(eq=False, repr=False)
class Provider:
    """Where a provider is and how it is spoken to.

    `protocol` is the name of a codec, `quirks` the dialect of Chat Completions. `key_env` are the environment variables
    a key is looked for in, in this order; `url_env` the one that moves the endpoint. `base_url` is empty where there is
    no endpoint that is the same for everybody. `auth` is the header that carries the key; in `authorization` it follows
    the word `Bearer`.

    `needs_key` is about the provider's own endpoint, `foreign_needs_key` about any other. `default_model` is what is
    used when a person has a key and names no model; empty where nothing can be assumed.
    """

    name: str
    protocol: str
    base_url: str
    key_env: tuple[str, ...] = ()
    url_env: str = ""
    quirks: str = ""
    auth: str = "authorization"
    needs_key: bool = True
    foreign_needs_key: bool = False
    default_model: str = ""

    def owns(self, base_url: str) -> bool:
        """Whether `base_url` is the provider's own endpoint."""
        return base_url.rstrip("/") == self.base_url.rstrip("/")

    def requires_key(self, base_url: str) -> bool:
        """Whether requests to `base_url` are pointless without a key."""
        return self.needs_key if self.owns(base_url) else self.foreign_needs_key


_CHAT = "openai-chat"

_ALL = (
    Provider(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        auth="x-api-key",
        default_model="claude-sonnet-5-5",
    ),
    Provider(
        "openai",
        _CHAT,
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        quirks="openai",
        default_model="gpt-6.1-terra",
    ),
    Provider(
        "openai-responses",
        "openai-responses",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        default_model="gpt-6.1-terra",
    ),
    Provider(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GEMINI_BASE_URL",
        auth="x-goog-api-key",
        default_model="gemini-3.8-flash",
    ),
    Provider(
        "openrouter",
        _CHAT,
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        "OPENROUTER_BASE_URL",
        quirks="openrouter",
        default_model="anthropic/claude-sonnet-5.5",
    ),
    Provider(
        "deepseek",
        _CHAT,
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        "DEEPSEEK_BASE_URL",
        quirks="deepseek",
        default_model="deepseek-v4-pro",
    ),
    Provider(
        "mistral",
        _CHAT,
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        "MISTRAL_BASE_URL",
        quirks="mistral",
        default_model="mistral-large-4",
    ),
    Provider("groq", _CHAT, "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), "GROQ_BASE_URL", quirks="groq"),
    Provider(
        "xai", _CHAT, "https://api.x.ai/v1", ("XAI_API_KEY",), "XAI_BASE_URL", quirks="xai", default_model="grok-4.7"
    ),
    Provider(
        "moonshot",
        _CHAT,
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        "MOONSHOT_BASE_URL",
        quirks="moonshot",
        default_model="kimi-k3",
    ),
    Provider(
        "qwen",
        _CHAT,
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        "DASHSCOPE_BASE_URL",
        quirks="alibaba",
    ),
    Provider(
        "zai",
        _CHAT,
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY", "ZHIPUAI_API_KEY"),
        "ZAI_BASE_URL",
        quirks="zai",
        default_model="glm-5.3",
    ),
    Provider("together", _CHAT, "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), "TOGETHER_BASE_URL"),
    Provider("fireworks", _CHAT, "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",), "FIREWORKS_BASE_URL"),
    Provider(
        "azure",
        _CHAT,
        "",  # https://RESOURCE.openai.azure.com/openai/v1
        ("AZURE_OPENAI_API_KEY",),
        "AZURE_OPENAI_BASE_URL",
        quirks="azure",
        auth="api-key",
        foreign_needs_key=True,
    ),
    Provider("ollama", _CHAT, "http://127.0.0.1:11434/v1", (), "OLLAMA_BASE_URL", quirks="ollama", needs_key=False),
    Provider("ollama-native", "ollama", "http://127.0.0.1:11434", (), "OLLAMA_NATIVE_BASE_URL", needs_key=False),
    Provider(
        "llamacpp", _CHAT, "http://127.0.0.1:8080/v1", (), "LLAMACPP_BASE_URL", quirks="llamacpp", needs_key=False
    ),
    Provider("vllm", _CHAT, "http://127.0.0.1:8000/v1", (), "VLLM_BASE_URL", quirks="vllm", needs_key=False),
    Provider(
        "lmstudio", _CHAT, "http://127.0.0.1:1234/v1", (), "LMSTUDIO_BASE_URL", quirks="lmstudio", needs_key=False
    ),
)

PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider if provider.quirks else attrs.evolve(provider, quirks=provider.name) for provider in _ALL
}
"""By name, in the order in which they are considered when a person has keys and names no model."""

_BARE = (
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini-", "gemini"),
    ("deepseek-", "deepseek"),
    ("mistral-", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("grok-", "xai"),
    ("kimi-", "moonshot"),
    ("qwen", "qwen"),
    ("glm-", "zai"),
)


def split_model(name: str) -> tuple[Provider, str]:
    """Return the provider and its own name of the model, of `provider/model` or of a well-known model alone.

    Raises `UsageError` where the provider is not known or there is no model.
    """
    prefix, slash, model = name.partition("/")
    if not slash:
        for start, owner in _BARE:
            if name.lower().startswith(start):
                return PROVIDERS[owner], name
        raise UsageError(f"the model {name!r} names no provider; write provider/model, for example anthropic/{name}")
    provider = PROVIDERS.get(prefix.lower())
    if provider is None:
        close = difflib.get_close_matches(prefix.lower(), PROVIDERS, 3, 0.6)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(PROVIDERS)}"
        raise UsageError(f"the provider {prefix!r} of the model {name!r} is not known; {hint}")
    if not model:
        raise UsageError(f"{name!r} names no model; write {prefix}/MODEL")
    return provider, model


def auth_headers(provider: Provider, key: str | None) -> dict[str, str]:
    """Return the headers that carry `key`; none where there is no key."""
    if not key:
        return {}
    return {provider.auth: f"Bearer {key}" if provider.auth == "authorization" else key}
