"""A session as text for a person: what was asked, said and done, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator

from novacode.cli.escape import in_one_line, visible
from novacode.sessions.loaded import Loaded
from novacode.values.history import Exchange
from novacode.values.parts import BrokenCall, ServerBlock, Text, Thinking, ToolCall, User, UserPart
from novacode.values.results import Outcome, ResultPart, ToolResult

__all__ = [
    "arguments_text",
    "facts",
    "outcome_words",
    "part_text",
    "plain_text",
    "title_of",
    "user_label",
    "with_results",
]

_RESULT_LINES = 12
_WIDTH = 160


def plain_text(loaded: Loaded, *, full: bool) -> str:
    """Return the whole of a session; results are cut to some lines, unless `full`."""
    lines = [*_head(loaded)]
    for item in loaded.history.items:
        lines.append("")
        if isinstance(item, User):
            lines += _user(item)
        else:
            lines += _exchange(item, full=full)
    return "\n".join(lines) + "\n"


def part_text(part: UserPart | ResultPart) -> str:
    """Return a part of a message as text; a picture by its kind and size."""
    return part.text if isinstance(part, Text) else f"[{part.media_type}, {len(part.data) * 3 // 4} bytes]"


def user_label(user: User) -> str:
    """Return who said it."""
    return "You" if user.origin == "person" else f"NovaCode ({user.origin})"


def arguments_text(call: ToolCall | BrokenCall) -> str:
    """Return a call's arguments as JSON; of a broken one, what came of them."""
    if isinstance(call, BrokenCall):
        return call.raw
    return json.dumps(call.arguments, ensure_ascii=False, default=str)


def outcome_words(result: ToolResult) -> str:
    """Return how a call ended; where that is not plain, whether it had begun."""
    words = result.outcome.value
    if result.exit_code:
        words += f", exit code {result.exit_code}"
    if result.outcome is Outcome.CANCELLED:
        words += " after it had begun" if result.began else " before it began"
    return words


def title_of(loaded: Loaded) -> str:
    """Return what a session is called."""
    return str(loaded.header.session_id) if loaded.header else "A session"


def with_results(exchange: Exchange) -> Iterator[tuple[Text | Thinking | ToolCall | BrokenCall, ToolResult | None]]:
    """Yield what of a response is shown in other forms: each call with its result."""
    results = {result.call_id: result for result in exchange.results}
    for part in exchange.message.parts:
        if isinstance(part, ToolCall | BrokenCall):
            yield part, results[part.id]
        elif isinstance(part, Text | Thinking) and part.text.strip():
            yield part, None


def _head(loaded: Loaded) -> Iterator[str]:
    header = loaded.header
    if header is not None:
        yield f"{header.session_id} in {visible(header.cwd)}"
    yield facts(loaded)


def facts(loaded: Loaded) -> str:
    """Return how many runs there were, with which model, and for how much."""
    runs = f"{loaded.runs} run{'s' * (loaded.runs != 1)}"
    model = f", {visible(loaded.model)}" if loaded.model else ""
    cost = f", ${loaded.cost_usd:.4f}" if loaded.cost_usd else ""
    return f"{runs}{model}{cost}{', the last one without an end' if loaded.interrupted else ''}"


def _user(user: User) -> Iterator[str]:
    text = visible("".join(map(part_text, user.parts)))
    label = "" if user.origin == "person" else f"{user_label(user)}: "
    yield from (f"> {label}{line}" for line in text.splitlines() or [""])


def _exchange(exchange: Exchange, *, full: bool) -> Iterator[str]:
    results = {result.call_id: result for result in exchange.results}
    for part in exchange.message.parts:
        match part:
            case Text(text=text) if text.strip():
                yield from visible(text, prose=True).splitlines()
            case Thinking(text=text) if text.strip():
                yield from (f"~ {line}" for line in visible(text, prose=True).splitlines())
            case ServerBlock(name=name) if name:
                yield f"* {visible(name)} (done by the provider)"
            case ToolCall() | BrokenCall():
                yield from _call(part, results[part.id], full=full)
            case _:
                pass


def _call(call: ToolCall | BrokenCall, result: ToolResult, *, full: bool) -> Iterator[str]:
    shown = visible(arguments_text(call)) if full else in_one_line(arguments_text(call), _WIDTH)
    yield f"* {visible(call.name)} {shown}"
    yield f"  = {outcome_words(result)}"
    lines = visible("".join(map(part_text, result.content))).splitlines()
    kept = lines if full else lines[:_RESULT_LINES]
    yield from (f"    {line if full else line[:_WIDTH]}" for line in kept)
    if len(lines) > len(kept):
        yield f"    ({len(lines) - len(kept)} more lines; --full shows them)"
