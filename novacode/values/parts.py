"""What a message is made of.

Every part of an assistant message may carry `seal`: what its issuer wants back unchanged (a signature, an item id, the
id the call had on the wire). A seal means something to the codec that made it and to nobody else; a codec drops the
seals of other issuers. Reasoning without a seal its issuer accepts is dropped whole, never shortened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from novacode.values.ids import CallId

__all__ = [
    "JSON",
    "Assistant",
    "AssistantPart",
    "BrokenCall",
    "Image",
    "Seal",
    "ServerBlock",
    "Text",
    "Thinking",
    "ToolCall",
    "User",
    "UserPart",
]

JSON: TypeAlias = Any
"""A value of the JSON data model. `Any`, because mypy has no recursive alias that cattrs can structure."""

Seal: TypeAlias = Mapping[str, JSON]


@attrs.frozen
class Text:
    """Visible text."""

    text: str
    seal: Seal | None = None


@attrs.frozen
class Thinking:
    """Reasoning. `text` may be empty where the provider shows none; `seal` then still proves it happened."""

    text: str
    seal: Seal | None = None


@attrs.frozen
class Image:
    """A picture: `data` is base64 text, `media_type` for example `image/png`."""

    media_type: str
    data: str


@attrs.frozen
class ServerBlock:
    """Something the provider did by itself (a web search, its code runner), kept verbatim in `raw`.

    `name` is the tool where this is a use of one, and empty for its results and other blocks.
    """

    name: str
    raw: Mapping[str, JSON]


@attrs.frozen
class ToolCall:
    """A complete call: its arguments are one JSON object. Never mutated; a hook's rewrite makes a new one, same id.

    `index` is the part's position in its response: calls sorted by it are in the order the model opened them.
    """

    id: CallId
    index: int
    name: str
    arguments: Mapping[str, JSON]
    seal: Seal | None = None


@attrs.frozen
class BrokenCall:
    """A call whose arguments ended early or are not one JSON object. It has an identity and is never executed."""

    id: CallId
    index: int
    name: str
    raw: str
    problem: str
    seal: Seal | None = None


UserPart = Text | Image
AssistantPart = Text | Thinking | ServerBlock | ToolCall | BrokenCall


@attrs.frozen
class User:
    """What goes to the model in the user's role. `origin` is who wrote it: `person`, `runtime` (a nudge) or `hook`."""

    parts: tuple[UserPart, ...]
    origin: str = "person"

    @classmethod
    def said(cls, text: str, origin: str = "person") -> User:
        """Return a message of one text."""
        return cls((Text(text),), origin)

    @property
    def text(self) -> str:
        """All its text, joined with nothing between."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@attrs.frozen
class Assistant:
    """One response of a model. `issuer` names the provider whose seals it carries (`anthropic`, `openai`, …)."""

    parts: tuple[AssistantPart, ...]
    issuer: str = ""

    @property
    def text(self) -> str:
        """All its visible text, joined with nothing between."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall | BrokenCall, ...]:
        """Its calls, the broken ones included, in the order the model opened them."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall | BrokenCall))
