"""A session in the forms other programs read: Markdown, an HTML page, messages of a service."""

from __future__ import annotations

import json
from collections.abc import Iterator

from novacode.cli.escape import visible
from novacode.cli.session_html import session_page
from novacode.cli.session_text import arguments_text, outcome_words, part_text, title_of, user_label, with_results
from novacode.protocols.summary import codec_for
from novacode.sessions.loaded import Loaded
from novacode.values.parts import JSON, Text, Thinking, User
from novacode.values.request import ModelRequest

__all__ = ["export", "messages"]

_PROTOCOLS = {"anthropic": "anthropic", "openai": "openai-chat"}


def export(loaded: Loaded, form: str) -> str:
    """Return the session in `form`: `markdown`, `html`, `anthropic` or `openai`."""
    match form:
        case "markdown":
            return "\n".join(_markdown(loaded)) + "\n"
        case "html":
            return session_page(loaded)
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


def _markdown(loaded: Loaded) -> Iterator[str]:
    yield f"# {title_of(loaded)}"
    for item in loaded.history.items:
        if isinstance(item, User):
            yield f"\n## {user_label(item)}\n"
            yield visible("".join(map(part_text, item.parts)), prose=True)
            continue
        for part, result in with_results(item):
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


def _fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence is longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{visible(text)}\n{fence}"
