"""How the servers that imitate Chat Completions differ, as data. A new provider is a new record, not a new branch."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

__all__ = ["QUIRKS", "Quirks", "quirks_for"]


@attrs.frozen
class Quirks:
    """One provider's dialect. The defaults are what most imitators accept.

    `token_limit`: the field that bounds the output. `system_role`: who speaks the system prompt. `stream_options`:
    whether usage may be asked for. `reasoning_back`: the message field in which the provider wants its own reasoning
    back, empty where it wants none. `id_length`, `id_plain`: the longest call id it accepts, and whether only letters
    and digits may occur in it. `images_in_results`: whether a tool message may hold pictures.
    """

    issuer: str = "openai-compatible"
    token_limit: str = "max_tokens"
    system_role: str = "system"
    stream_options: bool = True
    reasoning_back: str = ""
    id_length: int = 64
    id_plain: bool = False
    images_in_results: bool = False


QUIRKS: Mapping[str, Quirks] = {
    "openai": Quirks("openai", token_limit="max_completion_tokens", system_role="developer", id_length=40),
    "azure": Quirks("azure", token_limit="max_completion_tokens", id_length=40),
    "openrouter": Quirks("openrouter", reasoning_back="reasoning_details"),
    "deepseek": Quirks("deepseek", reasoning_back="reasoning_content"),
    "moonshot": Quirks("moonshot", reasoning_back="reasoning_content"),
    "zai": Quirks("zai", reasoning_back="reasoning_content"),
    "alibaba": Quirks("alibaba"),
    "groq": Quirks("groq", token_limit="max_completion_tokens"),
    "xai": Quirks("xai", token_limit="max_completion_tokens"),
    "mistral": Quirks("mistral", stream_options=False, id_length=9, id_plain=True),
    "perplexity": Quirks("perplexity", stream_options=False),
    "ollama": Quirks("ollama"),
    "llamacpp": Quirks("llamacpp"),
    "vllm": Quirks("vllm"),
    "lmstudio": Quirks("lmstudio"),
}


def quirks_for(provider: str) -> Quirks:
    """Return the dialect of `provider`; the defaults, under its own name, where it is not known."""
    known = QUIRKS.get(provider)
    if known is not None:
        return known
    return Quirks(provider) if provider else Quirks()
