"""The files of the page as text: nothing in them can make markup of a text, load from elsewhere, or keep things."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

PAGE = {
    entry.name: entry.read_text(encoding="utf-8")
    for entry in (files("novacode.remote") / "page").iterdir()
    if entry.name.rpartition(".")[2] in ("html", "js", "css", "svg")
}
SCRIPTS = sorted(name for name in PAGE if name.endswith(".js"))

_NEVER = (
    r"innerHTML|outerHTML|insertAdjacentHTML|DOMParser|createContextualFragment|setHTML|srcdoc",
    r"\bdocument\.write|\beval\(|new Function|setTimeout\(\s*[\"'`]|import\(",
    r"localStorage|sessionStorage|indexedDB|document\.cookie",
    r"setAttribute\(\s*[\"'](style|on)",
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_have_no_way_from_text_to_markup_or_storage(name: str) -> None:
    """Not by mistake either: none of the names by which it is done occurs."""
    assert [found for pattern in _NEVER for found in re.findall(pattern, PAGE[name])] == []


@pytest.mark.parametrize("name", sorted(PAGE))
def test_nothing_is_named_that_is_elsewhere(name: str) -> None:
    """Every address is of the page's own host; names of XML spaces are no addresses."""
    addresses = re.findall(r"(?:https?:)?//[a-z0-9][a-z0-9.-]*\.[a-z]{2,}[^\s\"'`)]*", PAGE[name])
    assert [one for one in addresses if not one.startswith("http://www.w3.org/2000/svg")] == []
    assert "@import" not in PAGE[name]


def test_the_document_has_no_script_or_style_of_its_own() -> None:
    """The policy would not let them run; so there are none."""
    html = PAGE["index.html"]
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", html) == []
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", html) == [
        "/assets/icon.svg",
        "/assets/style.css",
        "/assets/app.js",
        "#prompt",
        "/assets/icon.svg",
    ]


def test_modules_import_what_is_there_and_are_one_subject() -> None:
    """Flat, by relative names, and short."""
    for name in SCRIPTS:
        imported = re.findall(r"from \"\./([^\"]+)\"", PAGE[name])
        assert set(imported) <= set(SCRIPTS), name
        assert len(re.findall(r"^import ", PAGE[name], re.MULTILINE)) == len(imported), name
        assert len(PAGE[name].splitlines()) <= 300, name
