"""The page's Markdown renderer, in a real Chromium: what models write looks right, and nothing in it acts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browsers import opened

if TYPE_CHECKING:
    from page_server import PageServer

_RENDER = """async (text) => {
  const { markdown } = await import('/assets/markdown.js');
  const node = document.createElement('div');
  node.append(markdown(text));
  return node.innerHTML;
}"""
_STREAM = """async (pieces) => {
  const { MarkdownStream } = await import('/assets/markdown.js');
  const node = document.createElement('div');
  const stream = new MarkdownStream(node);
  let text = '';
  for (const piece of pieces) { text += piece; stream.show(text, false); }
  stream.show(text, true);
  stream.tail.remove();
  return node.innerHTML;
}"""


@pytest.fixture(scope="module")
def page(browser: Any, serving: PageServer) -> Iterator[Any]:
    with opened(browser, serving.url) as page:
        yield page
        assert page.errors == []


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "<p>plain</p>"),
        ("# One\n## Two", '<h3 class="h1">One</h3><h4 class="h2">Two</h4>'),
        (
            "a **b** *c* ~~d~~ __e__ _f_",
            "<p>a <strong>b</strong> <em>c</em> <del>d</del> <strong>e</strong> <em>f</em></p>",
        ),
        ("***both***", "<p><strong><em>both</em></strong></p>"),
        ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
        ("**open, and ** nothing", "<p>**open, and ** nothing</p>"),
        ("a **** b", "<p>a **** b</p>"),
        ("`a **b** <i>`", "<p><code>a **b** &lt;i&gt;</code></p>"),
        ("``a ` b``", "<p><code>a ` b</code></p>"),
        (r"\*not\* \<b>", "<p>*not* &lt;b&gt;</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- [x] done\n- [ ] not", None),
        ("> a\n> b", "<blockquote><p>a\nb</p></blockquote>"),
        ("---", "<hr>"),
        ("a  \nb", "<p>a<br>b</p>"),
    ],
)
def test_what_models_write(page: Any, text: str, html: str | None) -> None:
    """Each construct gives the nodes it should, and nothing more."""
    made = page.evaluate(_RENDER, text)
    if html is None:
        assert re.findall(r">(☑ |☐ )<", made) == ["☑ ", "☐ "]
    else:
        assert made == html


def test_fences_and_tables(page: Any) -> None:
    """Code keeps every character; tables keep their columns and sides."""
    made = page.evaluate(_RENDER, "```python\nif a < b:\n\n    **x**\n```\nafter")
    assert "<code>if a &lt; b:\n\n    **x**</code>" in made
    assert made.endswith("<p>after</p>")
    made = page.evaluate(_RENDER, "| a | b |\n|---|--:|\n| 1 | `x\\|y` |")
    assert '<th>a</th><th class="right">b</th>' in made
    assert '<td>1</td><td class="right"><code>x|y</code></td>' in made


def test_links_go_where_a_browser_may_go_and_say_where(page: Any) -> None:
    """http, https and mailto; a link whose words hide where it leads says it."""
    made = page.evaluate(_RENDER, "[my bank](https://evil.example/x) <mailto:a@b.example> https://c.example/d.")
    assert 'href="https://evil.example/x"' in made
    assert "my bank" in made
    assert "(evil.example)" in made
    assert 'href="mailto:a@b.example"' in made
    assert ">https://c.example/d</a>." in made
    assert made.count('rel="noopener noreferrer nofollow"') == 3


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example)",
        "[x](https://user:secret@evil.example/)",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        "[a\n](javascript:alert(1))",
    ],
)
def test_no_other_link_is_one(page: Any, text: str) -> None:
    """What is not plainly a link to somewhere stays the text it is."""
    assert "<a" not in page.evaluate(_RENDER, text)


_HTML = (
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    '<a href="javascript:window.hit=1">x</a>',
    "<svg onload=window.hit=1>",
    "</code></pre><iframe srcdoc='<script>parent.hit=1</script>'>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "<!--><img src=x onerror=window.hit=1>",
)
_AROUND = (
    "{}",
    "# {}",
    "- {}",
    "> {}",
    "`{}`",
    "**{}**",
    "```\n{}\n```",
    "```{}\nx\n```",
    "| {} |\n|---|\n| {} |",
    "[{}](https://a.example)",
    "[x](https://a.example/{})",
    "![{}](https://a.example)",
    "[ ] {}",
    "1. a\n   {}",
)
_MAKES = {
    "A",
    "BLOCKQUOTE",
    "BR",
    "CODE",
    "DEL",
    "DIV",
    "EM",
    "FIGCAPTION",
    "FIGURE",
    "H3",
    "H4",
    "H5",
    "H6",
    "HR",
    "LI",
    "OL",
    "P",
    "PRE",
    "SPAN",
    "STRONG",
    "TABLE",
    "TBODY",
    "TD",
    "TH",
    "THEAD",
    "TR",
    "UL",
}


def test_html_is_text_wherever_it_stands(page: Any) -> None:
    """No tag, no handler, no style comes out of a text, in any construct: only the renderer's own elements."""
    text = "\n\n".join(around.replace("{}", html) for around in _AROUND for html in _HTML)
    found = page.evaluate(
        """async (text) => {
          const { markdown } = await import('/assets/markdown.js');
          const node = document.createElement('div');
          node.append(markdown(text));
          document.body.append(node);
          await new Promise((done) => setTimeout(done, 100));
          const all = [...node.querySelectorAll('*')];
          const attributes = new Set(all.flatMap((one) => [...one.attributes].map((attribute) => attribute.name)));
          const found = { tags: [...new Set(all.map((one) => one.tagName))], attributes: [...attributes],
                          hit: window.hit,
                          text: node.textContent };
          node.remove();
          return found;
        }""",
        text,
    )
    assert set(found["tags"]) <= _MAKES
    assert set(found["attributes"]) <= {
        "href",
        "target",
        "rel",
        "title",
        "class",
        "tabindex",
        "role",
        "aria-label",
        "start",
    }
    assert found.get("hit") is None
    assert found["text"].count("<script>window.hit=1</script>") >= len(_AROUND)


def test_random_markdown_makes_nothing_else(page: Any) -> None:
    """Two thousand pieces of what Markdown and HTML are made of, shuffled: never another element, never an error."""
    pieces = [
        *"*_`~[]()<>!#-|>\\\n ",
        "**",
        "```",
        "](",
        "javascript:",
        "https://a.example",
        "<script>",
        "word",
        "1. ",
        "\n\n",
        "    ",
        "> ",
        "|---|",
    ]
    dice = random.Random(7)
    texts = ["".join(dice.choices(pieces, k=40)) for _ in range(2000)]
    tags = page.evaluate(
        """async (texts) => {
          const { markdown } = await import('/assets/markdown.js');
          const tags = new Set();
          for (const text of texts) {
            const node = document.createElement('div');
            node.append(markdown(text));
            for (const one of node.querySelectorAll('*')) tags.add(one.tagName);
          }
          return [...tags];
        }""",
        texts,
    )
    assert set(tags) <= _MAKES


_ANSWER = """Intro with `code`.

- one
- two

  still two

1. x

2. y

```js
const a = 1;

// **not bold**
```

> quote

| a | b |
|---|---|
| 1 | 2 |

End."""


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_text_that_grows_ends_as_if_it_had_come_at_once(page: Any, size: int) -> None:
    """Blocks that are whole are drawn once; however it was cut, the same nodes are there in the end."""
    pieces = [_ANSWER[at : at + size] for at in range(0, len(_ANSWER), size)]
    assert page.evaluate(_STREAM, pieces) == page.evaluate(_RENDER, _ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "**a " * 40_000,
        "`" * 3 + "a`" * 60_000,
        "> " * 60_000,
        "- a\n\n\n\n\n" * 30_000,
        "*" * 150_000,
        "_a" * 70_000,
        "[](" * 60_000,
        "<a" * 70_000,
    ],
    ids=["brackets", "bold", "ticks", "quotes", "blanks", "stars", "underscores", "links", "angles"],
)
def test_no_text_holds_the_page_up(page: Any, text: str) -> None:
    """Texts made to be slow are drawn in linear time; twice as much takes no more than a few times as long."""
    took = page.evaluate(
        """async (text) => {
          const { markdown } = await import('/assets/markdown.js');
          markdown(text.slice(0, 1000));
          const begin = performance.now();
          markdown(text);
          return performance.now() - begin;
        }""",
        text,
    )
    assert took < 5_000  # milliseconds; a hang guard: all of them take well under 200


def test_what_cannot_be_seen_is_written_out(page: Any) -> None:
    """Characters that turn text around or show nothing are escapes; typography and emoji stay in prose."""
    found = page.evaluate(
        """async () => {
          const { visible, marked, oneLine } = await import('/assets/text.js');
          const node = document.createElement('div');
          node.append(marked('rm \\u202e-rf\\u200b x' + ' '.repeat(40) + 'y'));
          return [visible('a\\u202eb\\x1b[31m\\r\\u{e0041}'), visible('a\\xa0b\\u200dc', true), node.textContent,
                  [...node.querySelectorAll('.escape')].map((one) => one.textContent),
                  oneLine('a\\n b  c'.repeat(100), 10),
                  visible('\\ud800')];
        }"""
    )
    assert found == [
        r"a\u202eb\x1b[31m\x0d\U000e0041",
        "a\xa0b\u200dc",
        r"rm \u202e-rf\u200b x [40 spaces] y",
        [r"\u202e", r"\u200b", " [40 spaces] "],
        "a b ca b …",
        r"\ud800",
    ]
