"""A session as one page: light and dark, for wide and narrow screens, with nothing to load and nothing that runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from novacode.cli.escape import in_one_line, visible
from novacode.cli.session_text import (
    arguments_text,
    facts,
    outcome_words,
    part_text,
    title_of,
    user_label,
    with_results,
)
from novacode.sessions.loaded import Loaded
from novacode.values.parts import BrokenCall, Text, Thinking, ToolCall, User
from novacode.values.results import Outcome, ToolResult

__all__ = ["session_page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #5b6470; --paper: #fff; --panel: #f4f5f7; --line: #d8dce1;
  --you: #3b76c4; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa3ae; --paper: #14171b; --panel: #1f242a; --line: #363d46; --you: #5b93dd;
    --bad: #f0857b; }
}
* { box-sizing: border-box; }
body { color: var(--ink); background: var(--paper); font: 16px/1.55 system-ui, sans-serif; max-width: 52rem;
  margin: 2rem auto; padding: 0 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: .95rem; margin: 2.2rem 0 .4rem; color: var(--soft); }
.facts { color: var(--soft); margin: .2rem 0 0; font-size: .9rem; }
.user { background: var(--panel); border-left: 4px solid var(--you); border-radius: 0 6px 6px 0; padding: .6rem .9rem; }
.user, .said { white-space: pre-wrap; }
.said { margin: 1rem 0; }
pre, code { font: .85rem/1.45 ui-monospace, monospace; background: var(--panel); }
code { padding: .1em .3em; border-radius: 4px; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin: .5rem 0; max-height: 26rem;
  overflow: auto; white-space: pre-wrap; }
details { margin: .45rem 0; } details > pre:first-of-type { max-height: 12rem; }
summary { cursor: pointer; color: var(--soft); } summary b { color: var(--ink); }
.what { font: .85rem ui-monospace, monospace; }
.bad { color: var(--bad); }
@media print { pre { max-height: none; } }
"""
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```[^\S\n]*$\n?", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


def session_page(loaded: Loaded) -> str:
    """Return the page of one session."""
    title = escape(title_of(loaded))
    where = f" in {visible(loaded.header.cwd)}" if loaded.header and loaded.header.cwd else ""
    body = "\n".join(_items(loaded))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n"
        f'<h1>{title}</h1>\n<p class="facts">{escape(facts(loaded) + where)}</p>\n{body}\n</html>\n'
    )


def _items(loaded: Loaded) -> Iterator[str]:
    for item in loaded.history.items:
        if isinstance(item, User):
            text = escape(visible("".join(map(part_text, item.parts)), prose=True))
            yield f'<h2>{escape(user_label(item))}</h2>\n<div class="user">{text}</div>'
            continue
        for part, result in with_results(item):
            match part:
                case Text(text=text):
                    yield from _prose(text)
                case Thinking(text=text):
                    said = escape(visible(text, prose=True))
                    yield f'<details><summary>reasoning</summary><div class="said">{said}</div></details>'
                case _ if result is not None:
                    yield _call(part, result)


def _prose(text: str) -> Iterator[str]:
    """Yield what the model said: as it is, with code told from words, which is all of Markdown that needs a look."""
    at = 0
    text = visible(text, prose=True)
    for block in _FENCED.finditer(text):
        yield from _words(text[at : block.start()])
        yield f"<pre>{escape(block[1].removesuffix(chr(10)))}</pre>"
        at = block.end()
    yield from _words(text[at:])


def _words(text: str) -> Iterator[str]:
    if text := text.strip("\n"):
        marked = _CODE.sub(r"<code>\1</code>", escape(text))
        yield f'<div class="said">{marked}</div>'


def _call(call: ToolCall | BrokenCall, result: ToolResult) -> str:
    """Return a call in one line, which opens to its arguments and its result."""
    mark = "" if result.outcome is Outcome.OK else ' class="bad"'
    said = escape(visible("".join(map(part_text, result.content))))
    return (
        f"<details><summary><b>{escape(visible(call.name))}</b>"
        f' <span class="what">{escape(in_one_line(_gist(call), 80))}</span>'
        f" <span{mark}>{escape(outcome_words(result))}</span></summary>"
        f"<pre>{escape(visible(arguments_text(call)))}</pre><pre>{said}</pre></details>"
    )


def _gist(call: ToolCall | BrokenCall) -> str:
    """Return the argument that says most about a call: its first text."""
    if isinstance(call, BrokenCall):
        return call.raw
    return next((value for value in call.arguments.values() if isinstance(value, str)), "")
