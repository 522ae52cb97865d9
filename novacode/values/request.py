"""What is asked of a model, and the numbers and words that come back with its answer."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from novacode.values.history import History
from novacode.values.parts import JSON

__all__ = ["ModelRequest", "StopReason", "ToolOffer", "Usage"]


class StopReason(enum.StrEnum):
    """Why a response ended, normalised. The provider's own word is kept beside it."""

    END = "end"
    TOOL_USE = "tool_use"
    OUTPUT_LIMIT = "output_limit"
    REFUSAL = "refusal"
    PAUSED = "paused"
    UNKNOWN = "unknown"


@attrs.frozen
class ToolOffer:
    """A tool as the model is told of it. `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, JSON]


@attrs.frozen
class ModelRequest:
    """One request. `model` is the provider's own name for it, without our provider prefix."""

    model: str
    system: str
    history: History
    tools: tuple[ToolOffer, ...] = ()
    max_output_tokens: int | None = None


@attrs.frozen
class Usage:
    """Tokens of one response. `None` means not reported, 0 reported as 0.

    The five numbers are the provider's own, so that they can be checked against its bill. Providers differ in what
    they count; the two flags say how to read them, and the properties give one meaning for all:

    `prompt` every token that was read, cached or not; `fresh` those of them that were not read from a cache;
    `completion` every token that was written, reasoning included.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    input_counts_cache: bool = True
    output_counts_reasoning: bool = True

    @property
    def prompt(self) -> int:
        """Every token that was read."""
        own = self.input or 0
        return own if self.input_counts_cache else own + (self.cache_read or 0) + (self.cache_write or 0)

    @property
    def fresh(self) -> int:
        """Tokens that were read and did not come from a cache; never negative, though some servers add up wrongly."""
        return max(0, self.prompt - (self.cache_read or 0))

    @property
    def completion(self) -> int:
        """Every token that was written."""
        own = self.output or 0
        return own if self.output_counts_reasoning else own + (self.reasoning or 0)
