"""What a scripted model is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from novacode.values.parts import JSON
from novacode.values.request import StopReason

__all__ = [
    "CallStep",
    "DisconnectStep",
    "ErrorStep",
    "Expectation",
    "PauseStep",
    "Script",
    "ScriptTurn",
    "ScriptUsage",
    "StatusStep",
    "Step",
    "TextStep",
    "ThinkingStep",
]


@attrs.frozen
class TextStep:
    """Visible text, written in `fragments` pieces."""

    text: str
    fragments: int = 1


@attrs.frozen
class ThinkingStep:
    """Reasoning, sealed with `signature`."""

    text: str
    signature: str = "scripted"
    fragments: int = 1


@attrs.frozen
class CallStep:
    """A call whose arguments are the text `raw`, written in `fragments` pieces.

    `id` is what the wire says: `None` stands for one made from the turn and the position. Where `cut` is set the
    arguments stop half way, the block is never closed, and the reply ends.
    """

    name: str
    raw: str
    id: str | None = None
    fragments: int = 1
    cut: bool = False


@attrs.frozen
class PauseStep:
    """Say nothing for `seconds`."""

    seconds: float


@attrs.frozen
class DisconnectStep:
    """The connection breaks."""


@attrs.frozen
class ErrorStep:
    """The provider reports an error in the middle of the stream. `error` is its own word for it."""

    error: str
    message: str


@attrs.frozen
class StatusStep:
    """The request is answered with an HTTP error; `retry_after` is in seconds."""

    status: int
    message: str
    retry_after: float | None = None


Step: TypeAlias = TextStep | ThinkingStep | CallStep | PauseStep | DisconnectStep | ErrorStep | StatusStep


@attrs.frozen
class ScriptUsage:
    """Tokens, in Anthropic's way of counting: `input` is what came from no cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@attrs.frozen
class Expectation:
    """What the results that a request brings must contain, each of them somewhere."""

    result: tuple[str, ...] = ()


@attrs.frozen
class ScriptTurn:
    """One reply. `stop` is `None` where it follows from the steps."""

    steps: tuple[Step, ...]
    stop: StopReason | None = None
    usage: ScriptUsage = attrs.field(factory=ScriptUsage)
    expect: Expectation = attrs.field(factory=Expectation)

    @property
    def reason(self) -> StopReason:
        """Why the reply ends."""
        if self.stop is not None:
            return self.stop
        calls = [step for step in self.steps if isinstance(step, CallStep)]
        if any(call.cut for call in calls):
            return StopReason.OUTPUT_LIMIT
        return StopReason.TOOL_USE if calls else StopReason.END


@attrs.frozen
class Script:
    """A model written down. `source` is the file it comes from; `simulate` is the world it is played in, as written."""

    source: str
    turns: tuple[ScriptTurn, ...]
    simulate: Mapping[str, JSON] = attrs.field(factory=dict)
