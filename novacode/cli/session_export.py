"""A session in the forms other programs read: Markdown, an HTML page, messages of a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from novacode.cli.escape import visible
from novacode.cli.session_text import arguments_text, outcome_words, part_text, user_label
from novacode.protocols.summary import codec_for
from novacode.sessions.fold import Loaded
from novacode.values.history import Exchange
from novacode.values.parts import JSON, BrokenCall, Text, Thinking, ToolCall, User
from novacode.values.request import ModelRequest
from novacode.values.results import Outcome, ToolResult

__all__ = ["export", "messages"]

_PROTOCOLS = {"anthropic": "anthropic", "openai": "openai-chat"}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #5b6470; --paper: #fff; --panel: #f4f5f7; --line: #d8dce1; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa3ae; --paper: #14171b; --panel: #1f242a; --line: #363d46; }
}
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .6rem; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
.user { border-left: 4px solid #3b76c4; padding-left: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; }
.soft, summary { color: var(--soft); }
.bad { color: #c0392b; }
"""


def export(loaded: Loaded, form: str) -> str:
    """Return the session in `form`: `markdown`, `html`, `anthropic` or `openai`."""
    match form:
        case "markdown":
            return "\n".join(_markdown(loaded)) + "\n"
        case "html":
            return _page(loaded)
        case _:
            return json.dumps({"messages": messages(loaded, form)}, indent=2, ensure_ascii=False) + "\n"


def messages(loaded: Loaded, form: str) -> list[JSON]:
    """Return the history as the messages of a service, as its codec would send them."""
    body = json.loads(codec_for(_PROTOCOLS[form]).encode(ModelRequest("", "", loaded.history)).body)
    for message in body["messages"]:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            block.pop("cache_control", None)  # a wish about one request, no part of what was said
    found: list[JSON] = body["messages"]
    return found


def _title(loaded: Loaded) -> str:
    return str(loaded.header.session_id) if loaded.header else "A session"


def _markdown(loaded: Loaded) -> Iterator[str]:
    yield f"# {_title(loaded)}"
    for item in loaded.history.items:
        if isinstance(item, User):
            yield f"\n## {user_label(item)}\n"
            yield visible("".join(map(part_text, item.parts)), prose=True)
            continue
        for part, result in _parts(item):
            yield ""
            match part:
                case Text(text=text):
                    yield visible(text, prose=True)
                case Thinking(text=text):
                    yield "\n".join(f"> {line}" for line in visible(text, prose=True).splitlines())
                case _ if result is not None:
                    yield f"**{visible(result.name)}** ({outcome_words(result)})\n"
                    yield _fenced(arguments_text(part), "json")
                    yield ""
                    yield _fenced("".join(map(part_text, result.content)))


def _parts(exchange: Exchange) -> Iterator[tuple[Text | Thinking | ToolCall | BrokenCall, ToolResult | None]]:
    """Yield what of a response is shown: each call with its result."""
    results = {result.call_id: result for result in exchange.results}
    for part in exchange.message.parts:
        if isinstance(part, ToolCall | BrokenCall):
            yield part, results[part.id]
        elif isinstance(part, Text | Thinking) and part.text.strip():
            yield part, None


def _fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence is longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{visible(text)}\n{fence}"


def _page(loaded: Loaded) -> str:
    body = "\n".join(_html(loaded))
    title = escape(_title(loaded))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
        f"<h1>{title}</h1>\n{body}\n</html>\n"
    )


def _html(loaded: Loaded) -> Iterator[str]:
    for item in loaded.history.items:
        if isinstance(item, User):
            text = escape(visible("".join(map(part_text, item.parts)), prose=True))
            yield f'<h2>{escape(user_label(item))}</h2>\n<div class="user">{text}</div>'
            continue
        for part, result in _parts(item):
            match part:
                case Text(text=text):
                    yield f'<div class="said">{escape(visible(text, prose=True))}</div>'
                case Thinking(text=text):
                    said = escape(visible(text, prose=True))
                    yield f'<details><summary>reasoning</summary><div class="said soft">{said}</div></details>'
                case _ if result is not None:
                    yield _html_call(part, result)


def _html_call(call: ToolCall | BrokenCall, result: ToolResult) -> str:
    mark = "" if result.outcome is Outcome.OK else ' class="bad"'
    said = escape(visible("".join(map(part_text, result.content))))
    return (
        f"<details><summary><b>{escape(visible(call.name))}</b> <span{mark}>{escape(outcome_words(result))}</span>"
        f"</summary><pre>{escape(visible(arguments_text(call)))}</pre><pre>{said}</pre></details>"
    )
